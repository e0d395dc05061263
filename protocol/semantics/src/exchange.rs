//! RFC 9110 §3.4: the one vocabulary in which every version speaks of exchanges.

use bytes::Bytes;
use http::StatusCode;

use crate::Deadline;

/// Which end of a connection a core plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends requests.
    Client,
    /// Answers them.
    Server,
}

/// One request and its response, within its connection.
///
/// In HTTP/2 the number of the stream; in HTTP/1.1 a count of the requests, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub u32);

/// A mark on a part of a message: whether it is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// More follows.
    No,
    /// The message is complete.
    Yes,
}

/// An event of one exchange: an action of the peer, or something that has become possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeEvent {
    /// A request's head, or a final response's, stands in the context's head. With [`End::Yes`]
    /// there is no body.
    Head(End),
    /// The request can't be served as it stands (server only): answer with this status or a more
    /// fitting one. What stands in the context's head may be incomplete. In HTTP/1.1 the connection
    /// closes after the response; in HTTP/2 only the stream ends.
    Rejected(StatusCode),
    /// A 1xx response's head stands in the context's head (client only).
    Informational,
    /// A piece of the body, or of a tunnel's bytes. The bytes count against the receive window
    /// until they are reported as consumed.
    Data(Bytes, End),
    /// Trailers stand in the context's head; the message is complete.
    Trailers,
    /// Everything given for this exchange has been framed: more may be given. Reported once for
    /// each chunk that could not be framed at once, or that left room.
    Sendable,
    /// The exchange has ended before its time; its number means nothing any more.
    Aborted(AbortReason),
}

/// The party that caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The other end of the connection.
    Peer,
    /// The code that drives the connection.
    Caller,
    /// A limit, a deadline or the network.
    Circumstance,
}

/// Why an exchange ended before it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortReason {
    /// The party that caused it.
    pub blame: Blame,
    /// True if the peer has certainly not acted on the request: repeating it is safe.
    pub untouched: bool,
    /// A short fixed name of it, for counters: `client-reset`, `eof`, `handler-panic` …
    pub name: &'static str,
    /// Description for a log: one fixed sentence.
    pub what: &'static str,
}

impl AbortReason {
    /// The name of a reason: the server says that it does not go on (HTTP/2's CANCEL).
    pub const CANCELLED: &'static str = "server-cancelled";

    /// The name of a reason: the server says that it does not take the request (REFUSED_STREAM of HTTP/2,
    /// H3_REQUEST_REJECTED).
    pub const REFUSED: &'static str = "refused";

    /// A reason that doesn't say that the request is untouched. `name` is short and fixed, `what` one fixed sentence.
    #[must_use]
    pub const fn new(blame: Blame, name: &'static str, what: &'static str) -> Self {
        Self { blame, untouched: false, name, what }
    }

    /// The same, and the peer has certainly not acted on the request.
    #[must_use]
    pub const fn untouched(self) -> Self {
        Self { untouched: true, ..self }
    }

    /// Returns whether the peer ended the connection before the message was complete.
    #[must_use]
    pub fn is_by_end(&self) -> bool {
        matches!(self.name, "eof" | "truncated")
    }
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseReason {
    /// The party that caused it; `None` for an orderly end.
    pub blame: Option<Blame>,
    /// A short fixed name, for counters: `eof`, `idle`, `protocol-error`, `rapid-reset` …
    pub name: &'static str,
    /// Description for a log: one fixed sentence.
    pub what: &'static str,
    /// An orderly end would pass for the end of the message that was under way: the transport is to
    /// be reset.
    pub reset: bool,
}

impl CloseReason {
    /// An end for which neither side is to blame.
    #[must_use]
    pub const fn orderly(name: &'static str, what: &'static str) -> Self {
        Self { blame: None, name, what, reset: false }
    }

    /// An end that the peer caused.
    #[must_use]
    pub const fn peer(name: &'static str, what: &'static str) -> Self {
        Self { blame: Some(Blame::Peer), name, what, reset: false }
    }

    /// An end by a limit, a deadline or the network.
    #[must_use]
    pub const fn circumstance(name: &'static str, what: &'static str) -> Self {
        Self { blame: Some(Blame::Circumstance), name, what, reset: false }
    }
}

/// An event of the connection as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The peer will take or send no new exchange; those with a higher number were not acted on.
    Draining {
        /// The last exchange that the peer has acted on or may act on.
        last: ExchangeId,
    },
    /// The peer's limit on concurrent exchanges is known or has changed (client only).
    Concurrency {
        /// How many exchanges may be open at once.
        exchanges_max: u32,
    },
}

/// A report of a connection that is polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Something about one exchange.
    Exchange(ExchangeId, ExchangeEvent),
    /// Something about the connection.
    Connection(ConnectionEvent),
    /// The connection is over: send what is queued, then close the socket.
    Closed(CloseReason),
    /// Drained: nothing more until there are new bytes, an order, room in the output, or this time.
    Wait(Option<Deadline>),
}

/// A call that the state of the connection or exchange does not allow. The call had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// The exchange is not open: it never was, has ended, or was aborted. Harmless when the peer
    /// aborted it and the report has not been read yet.
    UnknownExchange,
    /// A head was sent already, or data was sent before a head, or after the end.
    OutOfOrder,
    /// The chunk before this one has not been framed yet.
    Busy,
    /// The head can't be sent: a field name, value or pseudo-field is not allowed by RFC 9110.
    InvalidHead,
    /// More or fewer body bytes than the head announced.
    WrongLength,
    /// No new exchange can be opened (the connection drains, or the peer's limit is reached).
    Refused,
}
