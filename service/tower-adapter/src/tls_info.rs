//! Facts for a request's handler about the TLS connection that it has come by.

use std::fmt;
use std::sync::Arc;

use bolide_server::{ClientCertificate, HandshakeFacts};

/// The facts of a request's TLS connection (RFC 8446), in the extensions of each request of a server that was told
/// to [offer them](crate::Serve::tls_info); over cleartext there is none. Made once for each connection, and
/// cheap to clone.
///
/// ```
/// use bolide_tower_adapter::TlsInfo;
///
/// fn who(extensions: &http::Extensions) -> Option<&str> {
///     let certificate = extensions.get::<TlsInfo>()?.client_certificate()?;
///     Some(&certificate.subject)
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TlsInfo(Arc<HandshakeFacts>);

impl TlsInfo {
    pub(crate) fn new(facts: Arc<HandshakeFacts>) -> Self {
        Self(facts)
    }

    /// `TLSv1.3` or `TLSv1.2`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.0.version
    }

    /// The cipher suite by its registered name, such as `TLS_AES_128_GCM_SHA256`.
    #[must_use]
    pub fn cipher(&self) -> &str {
        &self.0.cipher
    }

    /// The application protocol that was agreed on (RFC 7301), `h2` or `http/1.1`, if one was.
    #[must_use]
    pub fn alpn(&self) -> Option<&'static str> {
        self.0.alpn.and_then(|alpn| std::str::from_utf8(alpn.as_bytes()).ok())
    }

    /// The name of the server that the client asked for (RFC 6066 §3), if it asked for one.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.0.server_name.as_deref()
    }

    /// The certificate that the client has shown, and that was checked; none when it was not asked, or had none.
    #[must_use]
    pub fn client_certificate(&self) -> Option<&ClientCertificate> {
        self.0.client.as_deref()
    }

    /// The rest of what the handshake agreed on.
    #[must_use]
    pub fn facts(&self) -> &HandshakeFacts {
        &self.0
    }
}

impl fmt::Debug for TlsInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("TlsInfo").field(&self.0).finish()
    }
}
