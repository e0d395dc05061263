//! The server through real sockets, byte by byte.

#![cfg(test)]

mod clock;
mod handover;
mod http3;
mod kept;
mod responses;

mod limits;
mod observed;
mod outward;
mod profiled;
mod raw_client;
mod reload;
mod shutdown;
mod websocket;
