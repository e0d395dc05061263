//! RFC 6455 and RFC 8441: WebSocket connections in a handler.
//!
//! [`WebSocket::accept`] answers the request, over HTTP/1.1 by 101 and over HTTP/2 by 200, and puts an
//! [`Owner`] on the connection. Everything happens on the worker's thread.
//!
//! ```
//! use bolide_server::websocket::{Kind, Options, Owner, Payload, Socket, WebSocket};
//! use bolide_server::{End, Request, Router};
//!
//! #[derive(Debug)]
//! struct Echo;
//!
//! impl Owner for Echo {
//!     fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
//!         // Piece by piece: a message of any size takes no more memory than one piece. (A client that reads
//!         // nothing before it has sent all of a large message wants it whole: see `Assembly`.)
//!         let _ = socket.send_piece(kind, payload.into_bytes(), end);
//!     }
//! }
//!
//! let options = Options::new().protocol("echo");
//! let router = Router::new().websocket("/ws", move |request: &mut Request<'_>| {
//!     WebSocket::accept(request, &options, Echo)
//! });
//! assert!(router.check().is_ok());
//! ```
//!
//! Pings are answered, silent peers are pinged, and both closing handshakes are kept without a word of the
//! owner. Nothing more is received while [more than enough](Options::output_bytes_max) waits to be sent.

mod accept;
mod exchange;
mod options;
mod socket;

pub use bolide_websocket::{
    Assembly, Close, CloseCode, DeflatePolicy, Kind, Limits, Misuse, Payload,
};
pub use exchange::WebSocket;
pub use options::Options;
pub use socket::{Owner, Socket};
