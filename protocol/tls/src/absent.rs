//! RFC 8446: what stands for TLS in programs that are built without it. Nothing here has a value, so nothing of it is ever
//! called: who asks for TLS is told that there is none.

use std::io::{self, Write};
use std::sync::Arc;

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};

use crate::{Alpn, ClientOptions, HandshakeFacts, IdentityError, Opened, ServerOptions};
use crate::{TlsFailure, Trust, WallClock};

/// Other crates do not see that it has no values, and so no code of theirs that is never reached.
#[derive(Debug, Clone)]
enum Never {}

fn absent() -> IdentityError {
    IdentityError::Unusable("TLS is not part of this program (feature `tls`)".to_owned())
}

/// A certificate chain and its key.
#[derive(Debug, Clone)]
pub struct Identity(Never);

impl Identity {
    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn from_pem(_: &[u8], _: &[u8]) -> Result<Self, IdentityError> {
        Err(absent())
    }

    /// The end-entity certificate, in DER.
    #[must_use]
    pub fn certificate_der(&self) -> &[u8] {
        match self.0 {}
    }
}

/// Certificates that come while a server runs.
#[derive(Debug, Clone)]
pub struct Issued(Never);

/// A client's settings.
#[derive(Debug, Clone)]
pub struct ClientTls(Never);

impl ClientTls {
    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn new(_: &Trust, _: &[Alpn], _: WallClock) -> Result<Self, IdentityError> {
        Err(absent())
    }

    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn with(_: &ClientOptions<'_>, _: WallClock) -> Result<Self, IdentityError> {
        Err(absent())
    }

    /// The layer of a connection.
    ///
    /// # Errors
    ///
    /// None: it is never called.
    pub fn connect(&self, _: &str) -> Result<TlsLayer, IdentityError> {
        match self.0 {}
    }
}

/// A server's settings.
#[derive(Debug, Clone)]
pub struct ServerTls(Never);

impl ServerTls {
    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn new(_: &Identity, _: WallClock) -> Result<Self, IdentityError> {
        Err(absent())
    }

    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn with(_: &ServerOptions<'_>, _: WallClock) -> Result<Self, IdentityError> {
        Err(absent())
    }

    /// Replaces what new connections get.
    ///
    /// # Errors
    ///
    /// None: it is never called.
    pub fn replace(&self, _: &ServerOptions<'_>) -> Result<(), IdentityError> {
        match self.0 {}
    }

    /// Returns whether QUIC can be spoken.
    #[must_use]
    pub fn allows_quic(&self) -> bool {
        match self.0 {}
    }

    /// The layer of a connection.
    ///
    /// # Errors
    ///
    /// None: it is never called.
    pub fn accept(&self) -> Result<TlsLayer, IdentityError> {
        match self.0 {}
    }
}

/// The layer of a connection.
#[derive(Debug)]
pub struct TlsLayer(Never);

#[allow(clippy::missing_errors_doc, reason = "none of it is ever called")]
impl TlsLayer {
    /// Returns whether the handshake is under way.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        match self.0 {}
    }

    /// Returns what the handshake agreed on.
    #[must_use]
    pub fn facts(&self) -> Option<HandshakeFacts> {
        match self.0 {}
    }

    /// The same, shared.
    #[must_use]
    pub fn shared_facts(&self) -> Option<Arc<HandshakeFacts>> {
        match self.0 {}
    }

    /// The application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<Alpn> {
        match self.0 {}
    }

    /// Opens all records.
    pub fn receive(
        &mut self,
        _: &mut ReceiveBuffer,
        _: &mut ReceiveBuffer,
    ) -> Result<bool, TlsFailure> {
        match self.0 {}
    }

    /// Opens some records.
    pub fn receive_some(
        &mut self,
        _: &mut ReceiveBuffer,
        _: &mut ReceiveBuffer,
    ) -> Result<Opened, TlsFailure> {
        match self.0 {}
    }

    /// Keeps what was not used.
    pub fn keep_rest(&mut self, _: &mut ReceiveBuffer) {
        match self.0 {}
    }

    /// Nothing more is sent.
    pub fn close(&mut self) {
        match self.0 {}
    }

    /// Seals and writes.
    pub fn flush(&mut self, _: &mut SendQueue, _: &mut (impl Write + ?Sized)) -> io::Result<Flush> {
        match self.0 {}
    }

    /// Returns what it keeps, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns whether there is something to write.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        match self.0 {}
    }
}
