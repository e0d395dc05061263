//! What a download through the proxy holds in memory while its client reads slowly.

#[cfg(test)]
mod slow_download;
