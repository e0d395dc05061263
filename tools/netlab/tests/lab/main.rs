//! Labs as they are: made, measured, used, killed and removed. They need root, or a user namespace.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod leftovers;
#[cfg(test)]
mod program;
#[cfg(test)]
mod rootless;
#[cfg(test)]
mod shaped;
