//! RFC 9110 §9.2.2: why there is no response, in which phase, and whether the request may be sent again.

use std::fmt;
use std::io;

use bolide_semantics::{AbortReason, Blame};

use crate::{Ending, Step};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL or the request can't be sent as it stands.
    Request,
    /// The server's name has no address.
    Resolve,
    /// No connection could be made: there is no listener, or there is no way there.
    Connect,
    /// The TLS handshake failed, or its certificate is not trusted.
    Tls,
    /// A phase took too long.
    Timeout,
    /// Too many requests wait for a connection.
    Full,
    /// The server broke the rules of HTTP.
    Protocol,
    /// The connection or the exchange ended before the response was complete.
    Closed,
    /// The response is larger than the caller wants it, or is not what was asked for.
    Response,
    /// Redirections went too far, or somewhere that is not followed.
    Redirect,
    /// The caller's body failed.
    Body,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    kind: ErrorKind,
    what: String,
    untouched: bool,
    /// The connection came to its end while the request was on it, and no response had begun.
    pub(crate) unanswered: bool,
}

impl ClientError {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), untouched: true, unanswered: false }
    }

    /// The server may have acted on the request.
    pub(crate) fn touched(mut self) -> Self {
        self.untouched = false;
        self
    }

    /// Returns what went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the server has certainly not acted on the request: to send it again is safe, whatever it is.
    /// Otherwise that is safe only when the request is idempotent (RFC 9110 §9.2.2).
    #[must_use]
    pub fn is_retry_safe(&self) -> bool {
        self.untouched
    }

    pub(crate) fn ended(ending: &Ending, sent: bool) -> Self {
        let (kind, what) = match (ending.step, &ending.tls) {
            _ if ending.socket == Some(io::ErrorKind::TimedOut) && ending.is_untouched() => {
                (ErrorKind::Timeout, "the connection took too long".to_owned())
            }
            (Step::Connecting, _) if ending.is_refused() => {
                (ErrorKind::Connect, "connection refused".to_owned())
            }
            (Step::Connecting, _) => {
                let why = ending
                    .socket
                    .map_or_else(|| ending.reason.what.to_owned(), |kind| kind.to_string());
                (ErrorKind::Connect, format!("can't connect: {why}"))
            }
            (Step::Handshaking, Some(tls)) => {
                (ErrorKind::Tls, format!("the TLS handshake failed: {tls}"))
            }
            (Step::Handshaking, None) => {
                (ErrorKind::Tls, format!("the TLS handshake failed: {}", ending.reason.what))
            }
            (Step::Ready, _) if ending.reason.name == "protocol-error" => {
                (ErrorKind::Protocol, ending.reason.what.to_owned())
            }
            (Step::Ready, _) => (ErrorKind::Closed, ending.reason.what.to_owned()),
        };
        Self { kind, what, untouched: !sent || ending.is_untouched(), unanswered: sent }
    }

    pub(crate) fn aborted(reason: &AbortReason) -> Self {
        let ended = reason.is_by_end();
        let kind = match reason.blame {
            _ if ended || reason.untouched => ErrorKind::Closed,
            Blame::Peer => ErrorKind::Protocol,
            Blame::Circumstance => ErrorKind::Timeout,
            Blame::Caller => ErrorKind::Closed,
        };
        Self { kind, what: reason.what.to_owned(), untouched: reason.untouched, unanswered: ended }
    }

    pub(crate) fn unconnected(error: &io::Error) -> Self {
        Self::new(ErrorKind::Connect, format!("can't connect: {error}"))
    }

    pub(crate) fn timeout(what: &str) -> Self {
        Self::new(ErrorKind::Timeout, what)
    }

    /// The same with what was asked for in front.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.what = format!("{what}: {}", self.what);
        self
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for ClientError {}

impl From<ClientError> for io::Error {
    fn from(error: ClientError) -> Self {
        let kind = match error.kind {
            ErrorKind::Timeout => io::ErrorKind::TimedOut,
            ErrorKind::Protocol => io::ErrorKind::InvalidData,
            ErrorKind::Closed => io::ErrorKind::UnexpectedEof,
            ErrorKind::Connect => io::ErrorKind::ConnectionRefused,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
