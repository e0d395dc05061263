//! RFC 9113 §3, RFC 7301: HTTP/1.1 or HTTP/2, decided once.

use bolide_tls::Alpn;

/// First bytes of a client over HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// Decides by the first bytes of a cleartext connection. `None` while they could still become the
/// preface.
pub(crate) fn by_preface(unread: &[u8]) -> Option<Version> {
    let compared = unread.len().min(PREFACE.len());
    if unread[..compared] != PREFACE[..compared] {
        return Some(Version::Http1);
    }
    (compared == PREFACE.len()).then_some(Version::Http2)
}

/// Decides by what the TLS handshake agreed on: without ALPN it is HTTP/1.1 (RFC 9113 §3.2).
pub(crate) fn by_alpn(alpn: Option<Alpn>) -> Version {
    match alpn {
        Some(Alpn::H2) => Version::Http2,
        // What is agreed on over QUIC does not come up here.
        Some(Alpn::Http11 | Alpn::H3) | None => Version::Http1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_may_be_split_anywhere() {
        for length in 0..PREFACE.len() {
            assert_eq!(by_preface(&PREFACE[..length]), None, "{length} bytes");
        }
        assert_eq!(by_preface(PREFACE), Some(Version::Http2));
        assert_eq!(by_preface(&[&PREFACE[..], b"more"].concat()), Some(Version::Http2));
    }

    #[test]
    fn the_first_other_byte_decides_for_http1() {
        for length in 0..PREFACE.len() {
            let mut bytes = PREFACE[..length].to_vec();
            bytes.push(b'x');
            assert_eq!(by_preface(&bytes), Some(Version::Http1), "{length} bytes");
        }
        assert_eq!(by_preface(b"POST / HTTP/1.1\r\n"), Some(Version::Http1));
        assert_eq!(by_preface(b"\x16\x03"), Some(Version::Http1));
    }
}
