//! RFC 9209: what went wrong behind the proxy, and what the client is told.

use std::io;

use bolide_client::{Ending, Step};
use bolide_semantics::{AbortReason, Blame};
use bolide_server::{Response, StatusCode};

use crate::counters::Counters;

/// Permission to send a request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The upstream may have acted on it.
    Never,
    /// It may have acted, but acting twice is the same as once.
    Idempotent,
    /// It has certainly not acted.
    Always,
    /// The request has not come to it: a repetition is no more work for it.
    Unreached,
    /// It was not asked: the same upstream is asked over HTTP/1.1.
    OverHttp1,
}

/// Why an upstream did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    /// The type of the error (RFC 9209 §2.3).
    pub(crate) error: &'static str,
    /// Description of the error: one fixed sentence.
    pub(crate) what: &'static str,
    pub(crate) repeat: Repeat,
    /// True if it speaks against the upstream's health.
    pub(crate) counts: bool,
    /// The upstream says itself that it does not go on.
    pub(crate) cancelled: bool,
}

impl Failure {
    const fn gateway(error: &'static str, what: &'static str, repeat: Repeat) -> Self {
        Self {
            status: StatusCode::BAD_GATEWAY,
            error,
            what,
            repeat,
            counts: true,
            cancelled: false,
        }
    }

    const fn timeout(error: &'static str, what: &'static str, repeat: Repeat) -> Self {
        Self {
            status: StatusCode::GATEWAY_TIMEOUT,
            error,
            what,
            repeat,
            counts: true,
            cancelled: false,
        }
    }

    const fn refused(status: StatusCode, error: &'static str, what: &'static str) -> Self {
        Self { status, error, what, repeat: Repeat::Never, counts: false, cancelled: false }
    }

    /// The response's head did not come in time.
    pub(crate) const SILENT: Self = Self::timeout(
        "http_response_timeout",
        "the upstream did not respond in time",
        Repeat::Never,
    );

    /// A body stood still.
    pub(crate) const STALLED: Self = Self::timeout(
        "connection_read_timeout",
        "the upstream paused for too long in a body",
        Repeat::Never,
    );

    /// No connection became free in time.
    pub(crate) const WAITED: Self = Self::refused(
        StatusCode::SERVICE_UNAVAILABLE,
        "connection_limit_reached",
        "no connection became free in time",
    );

    /// As many requests wait as may.
    pub(crate) const FULL: Self = Self::refused(
        StatusCode::SERVICE_UNAVAILABLE,
        "connection_limit_reached",
        "too many open requests",
    );

    /// The request can't be written in the upstream's version.
    pub(crate) const UNSENDABLE: Self = Self::refused(
        StatusCode::BAD_REQUEST,
        "http_request_error",
        "the request can't be forwarded",
    );

    /// It asks for another protocol, and the upstream's HTTP/2 takes no such requests: they go elsewhere.
    pub(crate) const OVER_HTTP1: Self = Self {
        repeat: Repeat::OverHttp1,
        ..Self::refused(
            StatusCode::BAD_GATEWAY,
            "http_upgrade_failed",
            "the upstream's HTTP/2 does not support extended CONNECT",
        )
    };

    /// The same, where nothing else may be spoken.
    pub(crate) const NO_EXTENDED_CONNECT: Self = Self::refused(
        StatusCode::BAD_GATEWAY,
        "http_upgrade_failed",
        "the upstream's HTTP/2 does not support extended CONNECT, and HTTP/1.1 is not allowed",
    );

    /// It asks for another protocol, and the upstream can't or won't go on with it.
    pub(crate) const NO_TUNNEL: Self = Self::refused(
        StatusCode::BAD_GATEWAY,
        "http_upgrade_failed",
        "the upstream did not switch to this protocol",
    );

    /// It comes from this proxy.
    pub(crate) const LOOP: Self = Self::refused(
        StatusCode::LOOP_DETECTED,
        "proxy_loop_detected",
        "the request has passed this proxy before: an upstream leads back to it",
    );

    /// The connection could not even begin.
    pub(crate) fn unconnected(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Self::REFUSED,
            io::ErrorKind::TimedOut => Self::LATE,
            _ => Self::UNREACHABLE,
        }
    }

    const REFUSED: Self =
        Self::gateway("connection_refused", "connection refused", Repeat::Unreached);
    const LATE: Self = Self::timeout(
        "connection_timeout",
        "the connection to the upstream took too long",
        Repeat::Unreached,
    );
    const UNREACHABLE: Self = Self::gateway(
        "destination_unavailable",
        "the upstream can't be reached",
        Repeat::Unreached,
    );

    /// The connection ended while it still had this request.
    pub(crate) fn ended(ending: &Ending, sent: bool) -> Self {
        if ending.is_refused() {
            return Self::REFUSED;
        }
        if ending.socket == Some(io::ErrorKind::TimedOut) && ending.is_untouched() {
            return Self::LATE;
        }
        let certificate = |what: &String| what.contains("certificate");
        match ending.step {
            Step::Connecting => Self::UNREACHABLE,
            Step::Handshaking if ending.tls.as_ref().is_some_and(certificate) => Self::gateway(
                "tls_certificate_error",
                "the certificate of the upstream is not trusted",
                Repeat::Always,
            ),
            Step::Handshaking => Self::gateway(
                "tls_protocol_error",
                "the TLS handshake with the upstream failed",
                Repeat::Always,
            ),
            Step::Ready if sent => {
                Self::gateway("connection_terminated", ending.reason.what, Repeat::Idempotent)
            }
            Step::Ready => {
                Self::gateway("connection_terminated", ending.reason.what, Repeat::Unreached)
            }
        }
    }

    /// The exchange ended before its time.
    pub(crate) fn aborted(reason: &AbortReason) -> Self {
        if reason.untouched {
            let refuses = reason.name == AbortReason::REFUSED;
            let repeat = if refuses { Repeat::Always } else { Repeat::Unreached };
            return Self::gateway("connection_terminated", reason.what, repeat);
        }
        if reason.name == AbortReason::CANCELLED {
            let failed = Self::gateway("http_response_incomplete", reason.what, Repeat::Never);
            // As it does with a call whose deadline, which its client has set, has passed.
            return Self { counts: false, cancelled: true, ..failed };
        }
        if reason.is_by_end() {
            return Self::gateway("http_response_incomplete", reason.what, Repeat::Idempotent);
        }
        match reason.blame {
            Blame::Peer => Self::gateway("http_protocol_error", reason.what, Repeat::Never),
            Blame::Circumstance => {
                Self::timeout("connection_read_timeout", reason.what, Repeat::Never)
            }
            Blame::Caller => Self::gateway("connection_terminated", reason.what, Repeat::Never),
        }
    }

    /// Returns whether there was no connection, which was said when that was found out.
    pub(crate) fn is_of_connecting(&self) -> bool {
        matches!(
            self.error,
            "connection_refused"
                | "connection_timeout"
                | "destination_unavailable"
                | "tls_certificate_error"
                | "tls_protocol_error"
        )
    }

    /// Returns what kind it is of, for a log.
    pub(crate) fn summary(&self) -> &'static str {
        match self.error {
            "http_protocol_error" => "its response is not HTTP",
            "http_response_incomplete" => "its response was truncated",
            "connection_terminated" => "the connection ended before a response was complete",
            _ => "a request failed",
        }
    }

    /// Counts it, and its kind.
    pub(crate) fn count(&self, counters: &Counters) {
        counters.failures.count();
        let kind = match self.error {
            _ if self.status == StatusCode::GATEWAY_TIMEOUT => &counters.timeouts,
            "connection_refused" => &counters.refused,
            "destination_unavailable" => &counters.unreachable,
            "tls_certificate_error" | "tls_protocol_error" => &counters.tls_failures,
            "http_protocol_error" => &counters.garbage,
            "http_response_incomplete" | "connection_terminated" => &counters.broken_off,
            "connection_limit_reached" => &counters.overflows,
            _ => &counters.other_failures,
        };
        kind.count();
    }

    /// Returns what the client is told.
    pub(crate) fn response(&self) -> Response {
        let Self { error, what, .. } = self;
        Response::error(self.status)
            .header("proxy-status", format!("bolide; error={error}; details=\"{what}\""))
    }
}
