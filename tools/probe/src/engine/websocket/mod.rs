//! RFC 6455, RFC 8441: a WebSocket connection of the load: a handshake, then messages, each of which is a request to
//! the pacer and the accounting.

mod handshake;
mod messenger;
mod tally;

use bolide_semantics::ExchangeId;
use bolide_websocket::{Codec, Kind, Limits};

pub(super) use self::messenger::Messenger;
pub(super) use self::tally::WebSocketTally;
use super::script::Request;
use crate::plan::{Plan, RequestPlan, WebSocketPlan};
use crate::report::Failure;

/// What all WebSocket connections of a run have in common.
#[derive(Debug)]
pub(super) struct WebSocketTask {
    plan: WebSocketPlan,
    /// The request that asks for a connection, without what depends on the version.
    handshake: Request,
    /// The subprotocols that it offers.
    offered: Vec<String>,
    /// The kind of each message of the script.
    kinds: Vec<Kind>,
    /// How long the server may take to accept a connection, and to reply to a close frame, in nanoseconds.
    patience_ns: u64,
}

impl WebSocketTask {
    /// Prepares the connections of a plan with at least one request.
    pub(super) fn new(plan: &Plan, of: WebSocketPlan) -> Self {
        let first = &plan.requests[0];
        let kind = |request: &RequestPlan| match std::str::from_utf8(&request.body) {
            Ok(_) if !of.binary => Kind::Text,
            _ => Kind::Binary,
        };
        Self {
            plan: of,
            handshake: Request::new(&handshake::plan(first, of.deflate), 0),
            offered: handshake::offered(first),
            kinds: plan.requests.iter().map(kind).collect(),
            patience_ns: u64::try_from(plan.timeouts.connect_timeout.as_nanos())
                .unwrap_or(u64::MAX / 2),
        }
    }

    /// What is reported of a phase.
    pub(super) fn report(&self, tally: Option<WebSocketTally>) -> crate::report::WebSocketReport {
        tally.unwrap_or_default().report(self.plan.one_way)
    }
}

/// Received messages are counted and compared piece by piece, so only what they make the generator compute is bounded.
fn limits() -> Limits {
    Limits { message_bytes: u64::MAX, fragments_count: u32::MAX, ..Limits::default() }
}

/// One WebSocket connection, from the end of TCP's or TLS's handshake on.
#[derive(Debug, Default)]
pub(super) struct Socket {
    /// The exchange whose tunnel it is, once its handshake is sent.
    id: Option<ExchangeId>,
    /// What the server proves that it has understood.
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
