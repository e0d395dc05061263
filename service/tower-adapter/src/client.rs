//! Facts about a request's client.

use std::net::SocketAddr;
use std::sync::Arc;

use bolide_server::{HandshakeFacts, Request};

use crate::tls_info::TlsInfo;

/// Puts something into the extensions of a request.
pub(crate) type Extend = Arc<dyn Fn(&Client<'_>, &mut http::Extensions) + Send + Sync>;

/// The client of a request, as its connection knows it.
///
/// What a handler needs of it is put into the request's extensions by
/// [`Serve::extension`](crate::Serve::extension).
#[derive(Debug)]
pub struct Client<'a> {
    request: &'a Request<'a>,
}

impl<'a> Client<'a> {
    pub(crate) fn of(request: &'a Request<'a>) -> Self {
        Self { request }
    }

    /// Its address; none on a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.request.peer()
    }

    /// Returns what the TLS handshake agreed on, shared by the requests of a connection. None over cleartext.
    #[must_use]
    pub fn tls_info(&self) -> Option<TlsInfo> {
        self.request.tls_shared().map(TlsInfo::new)
    }

    /// Returns what the TLS handshake agreed on: version, cipher suite, ALPN, the server's name as the client
    /// asked for it. None over cleartext.
    #[must_use]
    pub fn tls(&self) -> Option<HandshakeFacts> {
        self.request.tls()
    }
}
