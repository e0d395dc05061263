//! RFC 9000 §20, RFC 9001 §4.8: why a connection has ended, in words.

use bolide_semantics::CloseReason;
use quinn_proto::{ConnectionError, TransportErrorCode};

/// H3_NO_ERROR (RFC 9114 §8.1).
pub(crate) const NO_ERROR: u64 = 0x100;

/// Start of the codes of TLS's alerts (RFC 9000 §20.1).
const CRYPTO_ERROR: u64 = 0x100;

/// The alert of a peer that has no protocol in common (RFC 7301 §3.2).
const NO_APPLICATION_PROTOCOL: u64 = 120;

/// Why the transport ended.
pub(crate) fn close_reason(error: &ConnectionError) -> CloseReason {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == NO_ERROR => {
            CloseReason::orderly("eof", "the peer closed the connection")
        }
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
        {
            CloseReason::peer("refused", "the peer refused the connection")
        }
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
            CloseReason::peer("peer-error", "the peer closed the connection with an error")
        }
        ConnectionError::TransportError(_) => {
            CloseReason::peer("transport-error", "the peer violated QUIC or its handshake failed")
        }
        ConnectionError::VersionMismatch => {
            CloseReason::peer("quic-version", "the peer does not speak version 1 of QUIC")
        }
        ConnectionError::Reset => {
            CloseReason::peer("reset", "the peer has forgotten the connection")
        }
        ConnectionError::TimedOut => {
            CloseReason::circumstance("silent", "the peer was silent for too long")
        }
        ConnectionError::LocallyClosed => {
            CloseReason::orderly("closed", "the connection was closed")
        }
        ConnectionError::CidsExhausted => {
            CloseReason::circumstance("no-identifiers", "no identifier is left for the connection")
        }
    }
}

/// Returns what was wrong with TLS, if that ended a connection (RFC 9001 §4.8), by us or by the peer.
pub(crate) fn tls_failure(error: &ConnectionError) -> Option<String> {
    let (code, text) = match error {
        ConnectionError::TransportError(error) => (error.code, error.reason.clone()),
        ConnectionError::ConnectionClosed(close) => {
            let text = String::from_utf8_lossy(&close.reason[..close.reason.len().min(200)]);
            (close.error_code, text.escape_debug().to_string())
        }
        _ => return None,
    };
    let alert = u64::from(code).checked_sub(CRYPTO_ERROR).filter(|alert| *alert <= 255)?;
    Some(match alert {
        NO_APPLICATION_PROTOCOL => "the peer does not speak HTTP/3 (ALPN `h3`)".to_owned(),
        _ if text.is_empty() => format!("alert {alert}"),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn_proto::TransportError;

    use super::*;

    fn failed(code: u64, reason: &str) -> ConnectionError {
        let code = TransportErrorCode::crypto(code as u8);
        ConnectionError::TransportError(TransportError {
            code,
            frame: None,
            reason: reason.to_owned(),
        })
    }

    fn closed(error_code: TransportErrorCode, reason: &'static [u8]) -> ConnectionError {
        let reason = Bytes::from_static(reason);
        ConnectionError::ConnectionClosed(quinn_proto::ConnectionClose {
            error_code,
            frame_type: None,
            reason,
        })
    }

    #[test]
    fn what_tls_finds_wrong_is_told_in_words() {
        let unknown = "invalid peer certificate: UnknownIssuer";
        assert_eq!(tls_failure(&failed(48, unknown)).as_deref(), Some(unknown));
        for error in [failed(120, "none"), closed(TransportErrorCode::crypto(120), b"")] {
            let said = tls_failure(&error).unwrap_or_default();
            assert_eq!(said, "the peer does not speak HTTP/3 (ALPN `h3`)");
        }
        let said = tls_failure(&closed(TransportErrorCode::crypto(40), b"")).unwrap_or_default();
        assert_eq!(said, "alert 40");
        // What a peer says is shown, and does nothing to a terminal.
        let said = tls_failure(&closed(TransportErrorCode::crypto(42), b"\x1b[2J\xff"));
        assert_eq!(said.as_deref(), Some("\\u{1b}[2J\u{fffd}"));
        assert_eq!(tls_failure(&ConnectionError::TimedOut), None);
        assert_eq!(tls_failure(&closed(TransportErrorCode::NO_ERROR, b"x")), None);
    }

    #[test]
    fn ends_have_names() {
        for (error, name) in [
            (closed(TransportErrorCode::CONNECTION_REFUSED, b""), "refused"),
            (closed(TransportErrorCode::NO_ERROR, b""), "peer-error"),
            (failed(48, ""), "transport-error"),
            (ConnectionError::VersionMismatch, "quic-version"),
            (ConnectionError::Reset, "reset"),
            (ConnectionError::TimedOut, "silent"),
            (ConnectionError::LocallyClosed, "closed"),
        ] {
            assert_eq!(close_reason(&error).name, name, "{error}");
        }
    }
}
