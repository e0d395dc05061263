//! WebSocket, without I/O: RFC 6455 with permessage-deflate (RFC 7692), over HTTP/1.1 and over HTTP/2
//! (RFC 8441).
//!
//! A [`Codec`] takes the bytes of a tunnel and reports [`Event`]s; orders are given by its `send_…` methods,
//! and what is to leave is taken from it with [`Codec::pop_output`]. It serves both roles. Messages of any
//! size pass piece by piece, without a copy where the protocol allows it; [`Assembly`] puts them together for
//! those who want them whole. The handshake's checks are in [`handshake`].
//!
//! ```
//! use bolide_semantics::{End, Role};
//! use bolide_websocket::{Codec, Event, Kind, Settings};
//! use bytes::Bytes;
//!
//! let mut client = Codec::new(Role::Client, Settings { mask_seed: 7, ..Settings::default() });
//! let mut server = Codec::new(Role::Server, Settings::default());
//! client.send(Kind::Text, Bytes::from_static(b"hello")).unwrap();
//! while let Some(mut bytes) = client.pop_output() {
//!     while let Some(event) = server.receive(&mut bytes) {
//!         let Event::Message { kind, payload, end } = event else { panic!("{event:?}") };
//!         assert_eq!((kind, end), (Kind::Text, End::Yes));
//!         assert_eq!(payload.into_bytes(), "hello");
//!     }
//! }
//! ```
//!
//! This crate must never know sockets, a clock, threads or a random source: masks are made from a seed that
//! comes in.

mod assembly;
mod close;
mod codec;
mod deflate;
mod event;
mod extension;
mod failure;
mod frame;
pub mod handshake;
mod inflate;
pub mod limits;
mod mask;
mod outbox;
mod payload;
mod receive;
mod receiver;
mod send;
mod utf8;

pub use assembly::Assembly;
pub use close::{Close, CloseCode};
pub use codec::{Codec, Misuse, Settings};
pub use event::{Event, Kind};
pub use extension::{Deflate, DeflatePolicy};
pub use failure::Failure;
pub use limits::Limits;
pub use payload::Payload;
