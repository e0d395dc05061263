//! Labs as they are: made, measured, used, killed and removed. They need root, or a user namespace.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(all(test, target_os = "linux"))]
mod leftovers;
#[cfg(all(test, target_os = "linux"))]
mod program;
#[cfg(all(test, target_os = "linux"))]
mod rootless;
#[cfg(all(test, target_os = "linux"))]
mod shaped;
