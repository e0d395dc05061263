//! Labs as they are: made, measured, used, killed and removed. They need root, or a user namespace.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod leftovers;
mod program;
mod rootless;
mod shaped;
