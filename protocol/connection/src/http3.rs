//! RFC 9114 §3: a connection of HTTP/3: the transport, and the core above it.

use std::cell::OnceCell;
use std::sync::Arc;

use bolide_buffers::DatagramBatch;
use bolide_h3::{Context as Http3Context, Quic as _};
use bolide_semantics::Context;
use bolide_tls::{HandshakeFacts, TlsFailure};

/// A batch of datagrams that the socket had no room for.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) batch: DatagramBatch,
    pub(crate) bytes: Vec<u8>,
}

/// A connection of HTTP/3: the transport, and the core above it.
#[derive(Debug)]
pub(crate) struct Http3 {
    pub(crate) quic: bolide_quic::Connection,
    pub(crate) core: bolide_h3::Connection,
    /// The number of its endpoint.
    pub(crate) place: usize,
    pub(crate) unsent: Option<Unsent>,
    /// Results of the handshake, once a share in it was asked for.
    pub(crate) facts: OnceCell<Arc<HandshakeFacts>>,
}

impl Http3 {
    /// The core, and what it works with: the transport is part of its context.
    #[inline]
    pub(crate) fn lend<'a>(
        &'a mut self,
        cx: &'a mut Context<'_>,
    ) -> (&'a mut bolide_h3::Connection, Http3Context<'a, bolide_quic::Connection>) {
        let cx = Http3Context { quic: &mut self.quic, head: &mut *cx.head, now: cx.now };
        (&mut self.core, cx)
    }

    /// The version, once the handshake is complete.
    pub(crate) fn version(&self) -> Option<http::Version> {
        (!self.quic.is_handshaking()).then_some(http::Version::HTTP_3)
    }

    /// Returns what TLS found wrong, if that is why the connection is over.
    pub(crate) fn tls_failure(&self) -> Option<Box<TlsFailure>> {
        let what = self.quic.tls_failure()?.to_owned();
        // An alert after the handshake is rare, and is not asked for.
        Some(Box::new(TlsFailure { what, kind: "other", in_handshake: true }))
    }

    /// Returns whether nothing is under way, and the peer has all that was sent.
    pub(crate) fn is_idle(&self) -> bool {
        let is_established = !self.quic.is_handshaking();
        is_established && self.core.is_idle() && self.quic.is_acknowledged()
    }

    /// Returns what the peer makes the core and the transport keep, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.bytes.capacity());
        self.core.held_bytes() + self.quic.held_bytes() + unsent
    }

    /// Returns what the handshake agreed on, made once.
    pub(crate) fn shared_facts(&self) -> Option<Arc<HandshakeFacts>> {
        if self.facts.get().is_none() {
            // None was there, so this one stays.
            let _ = self.facts.set(Arc::new(self.quic.facts()?));
        }
        self.facts.get().cloned()
    }
}
