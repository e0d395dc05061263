//! The whole proxy on a simulated network, with faults on both of its sides.

#![cfg(test)]

mod isolation;
mod party;
mod roles;
mod runs;
