//! Memory that a download through the proxy holds while its client reads slowly.

#![cfg(test)]

mod slow_download;
