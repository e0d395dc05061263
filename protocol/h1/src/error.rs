//! Errors, and how they are told: to the peer by a status, to the owner by a reason.

use bolide_semantics::{AbortReason, Blame, CloseReason};
use http::StatusCode;

/// Why a message is refused or a connection ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Status with which a server responds, when it still can.
    pub(crate) status: StatusCode,
    pub(crate) close: CloseReason,
}

impl Failure {
    const fn refused(status: StatusCode, what: &'static str) -> Self {
        Self { status, close: CloseReason::peer("bad-message", what) }
    }

    const fn bad(what: &'static str) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, what)
    }

    const fn timeout(name: &'static str, what: &'static str) -> Self {
        let close = CloseReason::circumstance(name, what);
        Self { status: StatusCode::REQUEST_TIMEOUT, close }
    }

    const fn orderly(name: &'static str, what: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, close: CloseReason::orderly(name, what) }
    }

    /// Returns what the end of the connection means for an exchange that is still open.
    pub(crate) fn abort_reason(&self, untouched: bool) -> AbortReason {
        let blame = self.close.blame.unwrap_or(Blame::Circumstance);
        let CloseReason { name, what, .. } = self.close;
        AbortReason { blame, untouched, name, what }
    }
}

/// Why a parser stopped before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// More bytes are needed.
    Incomplete,
    /// No further bytes can mend it.
    Fault(&'static Failure),
}

impl From<&'static Failure> for Stop {
    #[inline]
    fn from(failure: &'static Failure) -> Self {
        Self::Fault(failure)
    }
}

macro_rules! failures {
    ($($name:ident = $value:expr;)*) => { $(pub(crate) static $name: Failure = $value;)* };
}

failures! {
    // Heads (RFC 9112 §2 to §5).
    BARE_LF = Failure::bad("a line ended in a bare LF");
    BARE_CR = Failure::bad("a line contained a bare CR");
    CONTROL = Failure::bad("a line contained a control byte");
    EMPTY_LINES = Failure::bad("too many empty lines came before a request");
    BAD_METHOD = Failure::bad("the method was not a token");
    BAD_TARGET = Failure::bad("the request target was malformed");
    BAD_FORM = Failure::bad("the form of the request target did not fit the method");
    NO_VERSION = Failure::bad("the request line had no version");
    BAD_VERSION = Failure::bad("the version was malformed");
    OTHER_VERSION = Failure::refused(
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        "the major version was not 1",
    );
    LINE_TOO_LONG = Failure::refused(StatusCode::URI_TOO_LONG, "the request line was too long");
    HEAD_TOO_LARGE = Failure::refused(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "the head was too large",
    );
    TOO_MANY_FIELDS = Failure::refused(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "there were too many field lines",
    );
    FOLDED = Failure::bad("a field line began with white space");
    BAD_NAME = Failure::bad("a field name was not a token");
    SPACE_BEFORE_COLON = Failure::bad("white space preceded a colon");
    BAD_STATUS_LINE = Failure::bad("the status line was malformed");
    // Host (RFC 9112 §3.2).
    NO_HOST = Failure::bad("the host field was missing");
    REPEATED_HOST = Failure::bad("the host field was repeated");
    BAD_HOST = Failure::bad("the host field was malformed");
    OTHER_HOST = Failure::bad("the host field differed from the target's authority");
    // Framing (RFC 9112 §6).
    LENGTH_AND_CODING = Failure::bad("both a length and a transfer coding were given");
    BAD_LENGTH = Failure::bad("the content length was not a number");
    REPEATED_LENGTH = Failure::bad("the content length was repeated");
    BAD_CODING = Failure::bad("the transfer codings were malformed");
    REPEATED_CODING = Failure::bad("the transfer codings were repeated");
    CODING_IN_1_0 = Failure::bad("a transfer coding was used in HTTP/1.0");
    // 501 would be right, too (§6.1); what can't be framed is answered alike, whatever is wrong with it.
    UNKNOWN_CODING = Failure::bad("a transfer coding was not known");
    CONNECT_WITH_BODY = Failure::bad("a CONNECT request had content");
    // Chunks (RFC 9112 §7.1).
    BAD_CHUNK_SIZE = Failure::bad("a chunk's size was malformed");
    BAD_CHUNK_EXTENSION = Failure::bad("a chunk's extension was malformed");
    BAD_CHUNK_END = Failure::bad("a chunk did not end in CRLF");
    CHUNK_EXTENSIONS_TOO_LARGE = Failure::bad("the chunk extensions were too large");
    TRAILERS_TOO_LARGE = Failure::bad("the trailer section was too large");
    // Not HTTP: a TLS alert (RFC 8446 §6) is what a server of HTTPS has for a request in cleartext.
    SPEAKS_TLS = Failure::bad("the server sent TLS: its port may be one of https://");
    // Responses (RFC 9112 §9.2, RFC 9110 §15.2).
    UNSOLICITED = Failure::bad("bytes came that belong to no response");
    UNASKED_SWITCH = Failure::bad("protocols were switched without a request");
    TOO_MANY_INTERIM = Failure::bad("too many interim responses came");
    // Ends.
    TRUNCATED = Failure {
        status: StatusCode::BAD_REQUEST,
        close: CloseReason::peer("truncated", "the peer ended in the middle of a message"),
    };
    UNREAD = Failure::orderly("unread-body", "the rest of a request's body was not wanted");
    EOF = Failure::orderly("eof", "the peer closed the connection");
    UNANSWERED = Failure {
        status: StatusCode::BAD_REQUEST,
        close: CloseReason::circumstance("eof", "the peer closed before it responded"),
    };
    LAST = Failure::orderly("last", "the last message said that the connection closes");
    LAST_BY_VERSION = Failure::orderly("last", "the last message left the connection no use");
    SHUT_DOWN = Failure::orderly("shutdown", "the connection was shut down");
    TUNNEL_ENDED = Failure::orderly("tunnel", "the tunnel was ended");
    IDLE = Failure::orderly("idle", "no request came");
    ABORTED = Failure {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        close: CloseReason {
            blame: Some(Blame::Caller),
            name: "aborted",
            what: "an exchange was given up",
            reset: false,
        },
    };
    ABORTED_UNFRAMED = Failure {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        close: CloseReason {
            blame: Some(Blame::Caller),
            name: "aborted",
            what: "what ends with its connection was given up",
            reset: true,
        },
    };
    HEAD_TIMED_OUT = Failure::timeout("head-timeout", "the head took too long");
    BODY_TIMED_OUT = Failure::timeout("body-timeout", "the body came too slowly");
    WRITE_TIMED_OUT = Failure::timeout("write-timeout", "the peer took too little for too long");
}
