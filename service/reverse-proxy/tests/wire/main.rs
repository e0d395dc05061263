//! The proxy through real sockets, byte by byte, before upstreams that follow a script.

#![cfg(test)]

mod bodies;
mod checks;
mod failures;
mod heads;
mod interim;
mod journal;
mod limits;
mod logged;
mod proxy_header;
mod scene;
mod sticky;
mod takeover;
mod tls;
mod tunnels;
mod versions;
mod watch;
