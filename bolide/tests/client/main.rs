//! `bolide::client` against Bolide's own server, and against sockets that follow a script.

#![cfg(test)]

mod bodies;
mod events;
mod failures;
mod redirects;
mod scene;
mod versions;
