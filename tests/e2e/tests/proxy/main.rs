//! `bolide serve --proxy` before foreign servers, asked by a foreign client; and `bolide::client`, which asks the
//! same servers itself. What isn't installed is skipped, loudly.

#![cfg(test)]

mod behind;
mod chains;
mod client;
mod grpc;
mod hyper_server;
mod messages;
mod pairs;
mod tunnels;
