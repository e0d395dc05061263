//! RFC 9112: one connection at its public face, bytes and time in, events and bytes out.

#![cfg(test)]

mod abuse;
mod any_split;
mod before_the_request;
mod bodies;
mod client;
mod conversation;
mod deadlines;
mod expect;
mod misuse;
mod oracle;
mod persistence;
mod pipelining;
mod responses;
mod smuggling;
mod tunnel;
mod wire;
