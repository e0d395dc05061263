//! RFC 6455, RFC 8441: a WebSocket connection of the load: a handshake, then messages, each of which is a request to
//! the pacer and the accounting.

mod messenger;
mod task;

use bolide_semantics::ExchangeId;
use bolide_websocket::{Codec, Limits};

pub(super) use self::messenger::Messenger;
pub(super) use self::task::WebSocketTask;
use crate::report::Failure;

/// Received messages are counted and compared piece by piece, so only what they make the generator compute is bounded.
fn limits() -> Limits {
    Limits { message_bytes: u64::MAX, fragments_count: u32::MAX, ..Limits::default() }
}

/// One WebSocket connection, from the end of TCP's or TLS's handshake on.
#[derive(Debug, Default)]
pub(super) struct Socket {
    /// The exchange whose tunnel it is, once its handshake is sent.
    id: Option<ExchangeId>,
    /// Key that the server must have understood.
    key: String,
    /// Once the server has accepted.
    codec: Option<Codec>,
    /// When it became ready, or our close frame was sent, in nanoseconds since the engine began.
    since_ns: u64,
    /// The connection takes more bytes.
    sendable: bool,
    /// The number of the next message.
    next: u32,
    /// A message is being received; whether it is a reply.
    receiving: Option<bool>,
    /// Why there is no connection.
    refusal: Option<(Failure, String)>,
    /// One-way messages wait for the socket to take them.
    pub(super) waits_for_flush: bool,
}
