//! Static files as a client sees them.

#![cfg(test)]

mod changes;
mod client;
mod conditions;
mod otherwise;
mod paths;
mod ranges;
mod repeated;
mod sendfile;
mod slow_disk;
mod variants;
