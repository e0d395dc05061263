//! Memory that foreign bytes make a worker keep: each charge is driven to its bound by a few connections, and what the allocator
//! counts is held against what the worker's account says.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod fills;
mod http3;
mod rows;
mod world;
