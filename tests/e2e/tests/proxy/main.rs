//! `bolide serve --proxy` before foreign servers, asked by a foreign client; and `bolide::client`, which asks the
//! same servers itself. What isn't installed is skipped, loudly.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(test)]
mod behind;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod client;
#[cfg(test)]
mod grpc;
#[cfg(test)]
mod hyper_server;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod tunnels;
