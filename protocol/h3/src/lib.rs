//! The HTTP/3 connection of Bolide, without I/O (RFC 9114, RFC 9218, RFC 9220, RFC 9297).
//!
//! One [`Connection`] serves both roles. The streams of QUIC come and go through the [`Quic`] of a [`Context`]; what they
//! mean is reported by [`poll`](Connection::poll); orders are given by the `send_…` methods.
//!
//! This crate must never know datagrams' packets, sockets, a clock, threads, or what a request is answered with.

mod abuse;
mod connection;
mod control;
mod error;
mod frame;
mod goaway;
mod head_writer;
pub mod limits;
mod priorities;
mod receive_control;
mod receive_head;
mod receive_stream;
mod scan;
mod scheduler;
mod send;
mod send_body;
mod settings;
mod shared_fields;
mod shut_down;
mod stream;
mod streams;
mod transport;
mod varint;

pub use connection::Connection;
pub use error::ErrorCode;
pub use limits::Limits;
pub use shared_fields::SharedFields;
pub use transport::{Context, Quic, QuicEvent, Read};
