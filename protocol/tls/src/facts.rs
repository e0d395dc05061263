//! RFC 8446 §4, RFC 7301: what a handshake agreed on, and what TLS says of a connection.

use std::sync::Arc;

/// Outcome of [`TlsLayer::receive_some`](crate::TlsLayer::receive_some).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// All that was there is open.
    All,
    /// As much is open as is opened at once: the rest may follow in this turn.
    Part,
    /// Records are left for the next turn.
    Cut,
    /// The peer has ended its side with `close_notify`.
    Ended,
}

/// An application protocol (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`
    H2,
    /// `http/1.1`
    Http11,
    /// `h3`, over QUIC (RFC 9114 §3.1).
    H3,
}

impl Alpn {
    /// The name as it goes on the wire.
    #[must_use]
    pub fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::H2 => b"h2",
            Self::Http11 => b"http/1.1",
            Self::H3 => b"h3",
        }
    }
}

/// Results of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeFacts {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher suite by its registered name, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher: String,
    /// The group that the keys were agreed on in, such as `X25519MLKEM768`; none when an old session's serve.
    pub group: Option<&'static str>,
    /// The application protocol, when one was agreed on.
    pub alpn: Option<Alpn>,
    /// The name that the client asked for (servers only).
    pub server_name: Option<String>,
    /// True if an earlier session was resumed.
    pub resumed: bool,
    /// The certificate that the client has shown (servers only); none when it was not asked, or had none.
    pub client: Option<Arc<ClientCertificate>>,
}

/// The certificate that a client has shown, and that was checked against those that the server trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate itself, in DER (RFC 5280 §4.1).
    pub der: Box<[u8]>,
    /// SHA-256 of its DER form.
    pub fingerprint: [u8; 32],
    /// Its subject as RFC 4514 writes it, the most specific part first: `CN=alice,O=Example`. Empty when it
    /// has none.
    pub subject: String,
}

impl ClientCertificate {
    /// The fingerprint in hexadecimal, in lower case.
    #[must_use]
    pub fn fingerprint_hex(&self) -> String {
        hex(&self.fingerprint)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
