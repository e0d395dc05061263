//! RFC 9000: what stands for QUIC in programs that are built without TLS. No endpoint, and so no connection, has a value.

use std::net::SocketAddr;
use std::time::Instant;

use bolide_buffers::{BpfInstruction, Datagram, DatagramBatch};
use bolide_h3::{Quic, QuicEvent, Read};
use bolide_semantics::Priority;
use bolide_tls::{ClientTls, HandshakeFacts, ServerTls, WallClock};
use bytes::Bytes;

use crate::{Congestion, Membership, QuicError, QuicStats};

/// Other crates do not see that it has no values, and so no code of theirs that is never reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Never {}

/// The name of a connection at its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Never);

impl Key {
    /// A small number.
    #[must_use]
    pub fn index(self) -> usize {
        match self.0 {}
    }
}

/// No program: there are no datagrams.
#[must_use]
pub fn steering(_workers: usize) -> Vec<BpfInstruction> {
    Vec::new()
}

/// Something for a connection.
#[derive(Debug)]
pub struct Delivery(Never);

/// Result of a datagram.
#[derive(Debug)]
pub enum Arrived {
    /// Nothing that the caller must do.
    Nothing,
    /// It is for a connection of another worker.
    Elsewhere(usize, Datagram),
    /// It is for an earlier process.
    Earlier(u8, Option<u16>, Datagram),
    /// It is for the successor.
    Unclaimed(Datagram),
    /// It is for this connection.
    For(Key, Delivery),
    /// A client begins a connection.
    New(Key, Box<Connection>),
    /// The endpoint itself has something to send.
    Reply(DatagramBatch),
}

/// The connections of one UDP socket.
#[derive(Debug)]
pub struct Endpoint(Never);

impl Endpoint {
    /// Has no result but an error.
    ///
    /// # Errors
    ///
    /// There is no TLS.
    pub fn of(
        _: Option<&ServerTls>,
        _: WallClock,
        _: [u8; 32],
        _: Membership,
    ) -> Result<Self, QuicError> {
        Err(QuicError::Tls("TLS is not part of this program (feature `tls`)".to_owned()))
    }

    /// Begins a connection.
    ///
    /// # Errors
    ///
    /// None: it is never called.
    pub fn connect(
        &mut self,
        _: &ClientTls,
        _: SocketAddr,
        _: &str,
        _: u32,
        _: Instant,
    ) -> Result<(Key, Connection), QuicError> {
        match self.0 {}
    }

    /// The same with this congestion control.
    #[must_use]
    pub fn with_congestion(self, _: Congestion) -> Self {
        match self.0 {}
    }

    /// Sets whether connections are accepted.
    pub fn accept(&mut self, _: bool, _: bool) {
        match self.0 {}
    }

    /// Another process accepts connections from here on.
    pub fn leave(&mut self) {
        match self.0 {}
    }

    /// A datagram came.
    pub fn receive(&mut self, _: Datagram, _: bool, _: Instant, _: &mut Vec<u8>) -> Arrived {
        match self.0 {}
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection(Never);

impl Connection {
    /// Its name at its endpoint.
    #[must_use]
    pub fn key(&self) -> Key {
        match self.0 {}
    }

    /// A datagram is for this connection.
    pub fn deliver(&mut self, _: &mut Endpoint, _: Delivery, _: Instant) {
        match self.0 {}
    }

    /// The time of a turn.
    pub fn advance(&mut self, _: &mut Endpoint, _: Instant) {
        match self.0 {}
    }

    /// Returns what is to be sent.
    pub fn send(&mut self, _: &mut Endpoint, _: &mut Vec<u8>) -> Option<DatagramBatch> {
        match self.0 {}
    }

    /// When it must be called.
    pub fn deadline(&mut self) -> Option<Instant> {
        match self.0 {}
    }

    /// Ends it at once.
    pub fn end(&mut self) {
        match self.0 {}
    }

    /// Drops it unused.
    pub fn forget(self, _: &mut Endpoint) {
        match self.0 {}
    }

    /// Returns whether what comes could be a replay.
    #[must_use]
    pub fn is_early(&self) -> bool {
        match self.0 {}
    }

    /// Returns what it has counted.
    #[must_use]
    pub fn stats(&self) -> QuicStats {
        match self.0 {}
    }

    /// Returns what TLS found wrong.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&str> {
        match self.0 {}
    }

    /// Returns what the handshake agreed on.
    #[must_use]
    pub fn facts(&self) -> Option<HandshakeFacts> {
        match self.0 {}
    }

    /// Returns what it keeps, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match self.0 {}
    }
}

impl Quic for Connection {
    fn event(&mut self) -> Option<QuicEvent> {
        match self.0 {}
    }

    fn open_bidirectional(&mut self) -> Option<u64> {
        match self.0 {}
    }

    fn open_unidirectional(&mut self) -> Option<u64> {
        match self.0 {}
    }

    fn openable(&self) -> u64 {
        match self.0 {}
    }

    fn is_handshaking(&self) -> bool {
        match self.0 {}
    }

    fn is_acknowledged(&self) -> bool {
        match self.0 {}
    }

    fn read(&mut self, _: u64) -> Read {
        match self.0 {}
    }

    fn reset_code(&mut self, _: u64) -> Option<u64> {
        match self.0 {}
    }

    fn write(&mut self, _: u64, _: &[u8]) -> usize {
        match self.0 {}
    }

    fn write_chunk(&mut self, _: u64, _: &mut Bytes) {
        match self.0 {}
    }

    fn finish(&mut self, _: u64) {
        match self.0 {}
    }

    fn reset(&mut self, _: u64, _: u64) {
        match self.0 {}
    }

    fn stop(&mut self, _: u64, _: u64) {
        match self.0 {}
    }

    fn prioritise(&mut self, _: u64, _: Priority) {
        match self.0 {}
    }

    fn send_datagram(&mut self, _: Bytes) -> bool {
        match self.0 {}
    }

    fn close(&mut self, _: u64, _: &str) {
        match self.0 {}
    }
}
