//! Each example is started as a user would, and used.

#![cfg(test)]

mod grpc;
#[cfg(all(test, target_os = "linux"))]
mod memory;
mod program;
mod web;
