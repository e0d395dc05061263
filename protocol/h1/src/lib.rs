//! The HTTP/1.1 connection of Bolide, without I/O (RFC 9112).
//!
//! One [`Connection`] plays either role. Bytes and time come in through a
//! [`Context`](bolide_semantics::Context); events, bytes and one deadline go out. Whatever could be
//! read in two ways is refused, so that no intermediary and this engine ever disagree about where a
//! message ends.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bolide_buffers::{ReceiveBuffer, SendQueue};
//! use bolide_h1::{Connection, Limits};
//! use bolide_semantics::{Content, Context, ExchangeEvent, Head, Output, ResponseHead, Role};
//!
//! let now = std::time::Instant::now();
//! let mut connection = Connection::new(Role::Server, &Arc::new(Limits::default()), now);
//! let (mut input, mut output) = (ReceiveBuffer::new(65536), SendQueue::new());
//! input.extend(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n");
//! let mut cx = Context {
//!     input: &mut input,
//!     output: &mut output,
//!     output_limit: 65536,
//!     head: &mut Head::default(),
//!     now,
//! };
//! while let Output::Exchange(id, ExchangeEvent::Head(_)) = connection.poll(&mut cx) {
//!     let head = ResponseHead::new(http::StatusCode::OK, &[]);
//!     let sent = connection.send_response(&mut cx, id, &head, Content::None);
//!     sent.expect("the exchange is open");
//! }
//! assert_eq!(output.tail(), b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
//! ```
//!
//! This crate must never know a socket or a clock, and nothing of HTTP/2.

mod body;
mod chunked;
mod connection;
mod deadlines;
mod encode;
mod error;
mod exchanges;
mod field_lines;
mod framing;
mod gate;
mod head_scan;
pub mod limits;
mod persistence;
mod poll;
mod progress;
mod receive_body;
mod receive_request;
mod receive_response;
mod request_head;
mod response_head;
mod scan;
mod send;
mod send_request;
mod sending;
mod shared_fields;
mod target;

pub use connection::Connection;
pub use limits::{LEAVE_NOTICE, Limits};
pub use shared_fields::SharedFields;
