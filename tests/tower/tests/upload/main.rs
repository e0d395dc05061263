//! Uploads that are larger than what may be held, as multipart, to one axum application under `axum::serve`
//! and under Bolide. The servers and the client are in one process, whose memory is looked at.

#![cfg(test)]

mod client;
mod content;
mod multipart;
mod servers;
