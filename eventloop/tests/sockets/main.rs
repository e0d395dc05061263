//! The loop over real sockets.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod datagrams;
#[path = "../echo/mod.rs"]
mod echo;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod gathering;
mod loopback;
mod outward;
mod outward_datagrams;
