//! RFC 6455 §5.4 to §5.6: what the peer did.

use bolide_semantics::End;
use bytes::Bytes;

use crate::{Close, Failure, Payload};

/// The kind of a message (RFC 6455 §5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8, which is checked when it is received.
    Text,
    /// Any bytes.
    Binary,
}

/// An action of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A piece of a message; with [`End::Yes`] its last, which may be empty. A piece of a text may begin and
    /// end within a character; up to the end of each piece the text is valid.
    Message {
        /// The kind of the message.
        kind: Kind,
        /// The piece.
        payload: Payload,
        /// End of the message.
        end: End,
    },
    /// A ping; its pong is sent without further ado.
    Ping(Bytes),
    /// A pong, asked for or not.
    Pong(Bytes),
    /// The peer closes the connection; its close frame is answered, if it is not a response itself. Nothing
    /// follows.
    Closed(Close),
    /// The peer broke a rule or a limit: a close frame says so to it. Nothing follows.
    Failed(Failure),
}
