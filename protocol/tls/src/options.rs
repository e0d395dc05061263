//! RFC 8446 §4: what servers and clients show, ask for and agree to.

use crate::{Alpn, Identity, IssuedNames};

/// Whom a client trusts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The certificates in this PEM text, and those that they signed.
    Pem(Vec<u8>),
    /// These certificates (DER), and those that they signed; what can't be read is passed over, as long
    /// as one is left. Stores of operating systems are handed in like this.
    Der(Vec<Vec<u8>>),
    /// Any server: for tests and measurements on one's own machine.
    Any,
}

/// TLS settings of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions<'a> {
    /// Whom it trusts.
    pub trust: &'a Trust,
    /// Protocols that are offered by ALPN, the preferred first. Empty: nothing.
    pub alpn: &'a [Alpn],
    /// Identity that it shows when the server asks for one. `None`: nothing.
    pub identity: Option<&'a Identity>,
    /// Sessions are resumed where the server gives tickets.
    pub resume: bool,
    /// RFC 9001 §4.6: over QUIC, what is sent before the handshake is complete leaves with its first packet, where the session
    /// that is resumed permits it.
    pub early_data: bool,
}

/// Which clients have to say who they are, by a certificate (RFC 8446 §4.3.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Clients {
    /// No certificate is requested.
    #[default]
    Any,
    /// Everybody is asked; who shows a certificate must show one that the certificates in this PEM text, or
    /// those that they signed, vouch for.
    Optional(Vec<u8>),
    /// The same, and who shows none is refused.
    Required(Vec<u8>),
}

/// TLS settings of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions<'a> {
    /// Its certificates. A client gets the one for the name that it asks for (RFC 6066 §3): the exact name
    /// wins over a wildcard, and of several for the same name the first whose key the client knows how to
    /// check. Without such a name it gets the first of all.
    pub identities: &'a [Identity],
    /// Names whose certificates are issued while it runs. A handshake for one of them fails until it has its certificate.
    pub issued: Option<IssuedNames>,
    /// Which clients have to show a certificate.
    pub clients: Clients,
    /// Rules for handshakes.
    pub rules: HandshakeRules,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// Rules of a server for handshakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeRules {
    /// The oldest version.
    pub least: TlsVersion,
    /// The newest version.
    pub most: TlsVersion,
    /// Cipher suites by their registered names; empty: all that there are.
    pub cipher_suites: Vec<String>,
    /// Application protocols over TCP, the preferred first. What a client that offers none speaks shows in its first bytes.
    pub alpn: Vec<Alpn>,
    /// RFC 9001 §4.6: clients over QUIC that resume a session may send requests with their first packet. What is sent so could
    /// be replayed (RFC 8446 §8); therefore the sessions are kept here in place of the client's ticket, and each is
    /// resumed once.
    pub early_data: bool,
}

/// TLS 1.2 and 1.3 with all cipher suites, `h2` before `http/1.1`, and no early data.
impl Default for HandshakeRules {
    fn default() -> Self {
        Self {
            least: TlsVersion::Tls12,
            most: TlsVersion::Tls13,
            cipher_suites: Vec::new(),
            alpn: vec![Alpn::H2, Alpn::Http11],
            early_data: false,
        }
    }
}
