//! Memory that foreign bytes make a worker keep: each charge is driven to its bound by a few connections, and what the allocator
//! counts is held against what the worker's account says.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[cfg(test)]
mod fills;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod world;
