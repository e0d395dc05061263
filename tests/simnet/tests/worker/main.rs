//! A worker in any network, by seed.

mod echo;
mod relay;
