//! RFC 9000 §2, §10: one connection: datagrams out, a deadline, and its streams.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::DatagramBatch;
use bolide_h3::{Quic, QuicEvent, Read};
use bolide_semantics::{CloseReason, End, Priority};
use bolide_tls::{Alpn, ClientCertificate, HandshakeFacts, full_handshakes_count};
use bytes::Bytes;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{
    ConnectionHandle, Dir, EndpointEvent, Event, ReadError, StreamEvent, StreamId, Transmit,
    VarInt, WriteError,
};

use crate::endpoint::{Delivery, Endpoint, Key};
use crate::facts::QuicStats;
use crate::limits::{BATCH_COUNT, RESERVED_STREAMS_COUNT};
use crate::reasons::{NO_ERROR, close_reason, tls_failure};
use crate::windows::{Receiving, Sending};

/// The longest piece that is read of a stream at once, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Size that every path lets through (RFC 9000 §14), in bytes: no datagram of a handshake is larger.
const DATAGRAM_BYTES_MIN: usize = 1200;

/// Returns what quinn-proto wants to be sent, in our words.
pub(crate) fn batch(transmit: &Transmit) -> DatagramBatch {
    DatagramBatch {
        to: transmit.destination,
        from: transmit.src_ip,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        bytes: transmit.size,
        segment_bytes: transmit.segment_size,
    }
}

/// One connection.
///
/// After a datagram was [delivered](Self::deliver), after the deadline and after orders: let HTTP/3 poll it, then
/// [send](Self::send) until there is nothing more. When it [is over](Self::is_over) it may be dropped.
#[derive(Debug)]
pub struct Connection {
    handle: ConnectionHandle,
    inner: quinn_proto::Connection,
    now: Instant,
    events: VecDeque<QuicEvent>,
    /// Streams that were opened ahead: how many more the peer allows is not known otherwise.
    reserved: VecDeque<u64>,
    receiving: Receiving,
    sending: Sending,
    /// It counts among the endpoint's handshakes of clients whose addresses are not validated.
    is_unvalidated: bool,
    /// Bytes that may be sent before the client's address is validated; `None`: anything.
    allowance: Option<usize>,
    tls_failure: Option<String>,
    /// A client's first packet may carry requests.
    began_early: bool,
    /// The server has shown its certificate: no session was resumed.
    is_full: bool,
}

impl Connection {
    pub(crate) fn new(
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        now: Instant,
        receiving: Receiving,
        allowance: Option<usize>,
    ) -> Self {
        let (events, reserved) = (VecDeque::new(), VecDeque::new());
        let began_early = inner.side().is_client() && inner.has_0rtt();
        Self {
            handle,
            inner,
            now,
            events,
            reserved,
            receiving,
            sending: Sending::default(),
            is_unvalidated: allowance.is_some(),
            allowance,
            tls_failure: None,
            began_early,
            is_full: false,
        }
    }

    /// The same after a first datagram with which a server has shown its certificate, or has not.
    pub(crate) fn with_full_handshake(self, is_full: bool) -> Self {
        Self { is_full, ..self }
    }

    /// Its name at its endpoint.
    #[must_use]
    pub fn key(&self) -> Key {
        Key(self.handle)
    }

    /// A datagram is for this connection.
    pub fn deliver(&mut self, endpoint: &mut Endpoint, delivery: Delivery, now: Instant) {
        self.now = now;
        self.allowance = self.allowance.zip(delivery.allowance).map(|(left, more)| left + more);
        self.receiving.arrived(delivery.bytes);
        let full = full_handshakes_count();
        self.inner.handle_event(delivery.event);
        self.is_full |= full_handshakes_count() != full;
        if let Some(window) = self.sending.follow(self.inner.congestion_state().window()) {
            self.inner.set_send_window(window);
        }
        self.settle(endpoint);
    }

    /// The time of a turn: what is due is done.
    pub fn advance(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.now = now;
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.inner.handle_timeout(now);
        }
        self.settle(endpoint);
    }

    /// The next batch of datagrams that is to be sent, in `buffer`, which is emptied first.
    pub fn send(&mut self, endpoint: &mut Endpoint, buffer: &mut Vec<u8>) -> Option<DatagramBatch> {
        buffer.clear();
        if let Some(window) = self.receiving.pause() {
            self.inner.set_receive_window(VarInt::from_u32(window));
        }
        // The transport sends a datagram while anything is left, however large it is.
        let most = self.allowance.map_or(BATCH_COUNT, |left| left / DATAGRAM_BYTES_MIN);
        if most == 0 {
            return None;
        }
        let transmit = self.inner.poll_transmit(self.now, most.min(BATCH_COUNT), buffer);
        let sent = transmit.as_ref().map_or(0, |transmit| transmit.size);
        self.allowance = self.allowance.map(|left| left.saturating_sub(sent));
        self.settle(endpoint);
        transmit.map(|transmit| batch(&transmit))
    }

    /// When it must be called even if nothing comes.
    pub fn deadline(&mut self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    /// Returns whether it has ended and been forgotten by its endpoint.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_drained()
    }

    /// RFC 8446 §8: whether what comes could be a replay: the handshake is not complete, and a client that resumes a session has
    /// sent requests with its first packet.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.inner.side().is_server() && self.inner.is_handshaking()
    }

    /// Protects what follows by new keys (RFC 9001 §6), which otherwise happens after as many packets as a key may protect.
    pub fn update_keys(&mut self) {
        self.inner.force_key_update();
    }

    /// Ends the connection at once, whatever is open; the peer is told with the next datagrams.
    pub fn end(&mut self) {
        self.inner.close(self.now, number(NO_ERROR), Bytes::new());
    }

    /// Forgets the connection: what still comes for it gets a stateless reset (RFC 9000 §10.3).
    pub fn forget(mut self, endpoint: &mut Endpoint) {
        self.validated(endpoint);
        if !self.inner.is_drained() {
            endpoint.inner.handle_event(self.handle, EndpointEvent::drained());
        }
    }

    /// Returns what it has counted, and its path.
    #[must_use]
    pub fn stats(&self) -> QuicStats {
        let stats = self.inner.stats();
        QuicStats {
            datagrams_sent: stats.udp_tx.datagrams,
            datagrams_received: stats.udp_rx.datagrams,
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            rtt: stats.path.rtt,
        }
    }

    /// Returns what was wrong with TLS, in words, if that ended the handshake.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&str> {
        self.tls_failure.as_deref()
    }

    /// Returns what the handshake agreed on, once it is complete. quinn-proto does not tell the cipher suite.
    #[must_use]
    pub fn facts(&self) -> Option<HandshakeFacts> {
        if self.inner.is_handshaking() {
            return None;
        }
        let session = self.inner.crypto_session();
        let data = session.handshake_data()?.downcast::<HandshakeData>().ok()?;
        Some(HandshakeFacts {
            version: "TLSv1.3",
            cipher: "unknown".to_owned(),
            group: None,
            alpn: Some(Alpn::H3),
            server_name: data.server_name,
            resumed: !self.is_full,
            client: session
                .peer_identity()
                .filter(|_| self.inner.side().is_server())
                .and_then(ClientCertificate::of_peer)
                .map(Arc::new),
        })
    }

    /// The handshake does not count as one with an address that is not validated any more.
    fn validated(&mut self, endpoint: &mut Endpoint) {
        if std::mem::take(&mut self.is_unvalidated) {
            endpoint.unvalidated -= 1;
        }
    }

    /// Tells the endpoint what it must know, and the connection what it answers.
    fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(event) = endpoint.inner.handle_event(self.handle, event) {
                self.inner.handle_event(event);
            }
        }
        if !self.inner.is_handshaking() && !self.inner.is_closed() {
            self.allowance = None;
        }
        if self.is_unvalidated && (!self.inner.is_handshaking() || self.inner.is_closed()) {
            self.validated(endpoint);
        }
        self.reserve();
    }

    /// Opens streams ahead, as far as the peer allows (client).
    fn reserve(&mut self) {
        if self.inner.side().is_server() {
            return;
        }
        while self.reserved.len() < RESERVED_STREAMS_COUNT
            && let Some(id) = self.inner.streams().open(Dir::Bi)
        {
            self.reserved.push_back(id.into());
        }
    }

    /// Nothing more comes on a stream, or is wanted of it.
    fn end_reading(&mut self, stream: u64) {
        self.receiving.end(stream, || self.inner.stats().frame_rx.stream);
    }

    /// Returns what the transport keeps at most of what was written, and of what has come and was not read, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.receiving.held_bytes(self.inner.stats().frame_rx.stream) + self.sending.held_bytes()
    }

    /// Turns an event of the transport into those that HTTP/3 knows.
    fn happened(&mut self, event: Event) {
        match event {
            Event::ConnectionLost { reason } => {
                self.tls_failure = tls_failure(&reason);
                self.events.push_back(QuicEvent::Closed(close_reason(&reason)));
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = self.inner.streams().accept(dir) {
                    self.receiving.begin(id.into());
                    self.events.push_back(QuicEvent::Opened(id.into()));
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.events.push_back(QuicEvent::Readable(id.into()));
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                self.events.push_back(QuicEvent::Writable(id.into()));
            }
            Event::Stream(StreamEvent::Finished { id }) => self.sending.acknowledged(id.into()),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                self.sending.acknowledged(id.into());
                self.events.push_back(QuicEvent::Stopped(id.into(), error_code.into_inner()));
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => {
                self.reserve();
                self.events.push_back(QuicEvent::Openable);
            }
            Event::DatagramReceived => {
                while let Some(bytes) = self.inner.datagrams().recv() {
                    self.events.push_back(QuicEvent::Datagram(bytes));
                }
            }
            // The server has forgotten the session, and everything that was sent: none of it was processed.
            Event::Connected if self.began_early && !self.inner.accepted_0rtt() => {
                self.inner.close(self.now, number(NO_ERROR), Bytes::new());
                let why = "the server accepted no early data, and ignored what was sent";
                let reason = CloseReason::circumstance("early-data-ignored", why);
                self.events.push_back(QuicEvent::Closed(reason));
            }
            Event::Connected
            | Event::HandshakeDataReady
            | Event::DatagramsUnblocked
            | Event::Stream(StreamEvent::Available { .. }) => {}
        }
    }
}

fn number(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

/// The transport's number for a priority: the larger come first, and equals take turns. 0 is that of all streams at first.
fn rank(stream: u64, priority: Priority) -> i32 {
    /// So many streams of one urgency have an order of their own.
    const STREAMS: i32 = 1 << 28;
    let urgency = (3 - i32::from(priority.urgency.min(7))) * STREAMS;
    let place = (stream >> 2) as i32 & (STREAMS - 1);
    if priority.incremental { urgency } else { urgency + STREAMS - 1 - place }
}

fn id_of(stream: u64) -> StreamId {
    StreamId::from(number(stream))
}

impl Quic for Connection {
    fn event(&mut self) -> Option<QuicEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let Some(event) = self.inner.poll() else {
                self.receiving.knows_all();
                return None;
            };
            self.happened(event);
        }
    }

    fn open_bidirectional(&mut self) -> Option<u64> {
        let id = self.reserved.pop_front()?;
        self.receiving.begin(id);
        self.reserve();
        Some(id)
    }

    fn open_unidirectional(&mut self) -> Option<u64> {
        self.inner.streams().open(Dir::Uni).map(Into::into)
    }

    /// A client that may send early data need not wait.
    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking() && !self.began_early
    }

    fn is_acknowledged(&self) -> bool {
        self.sending.is_acknowledged()
    }

    fn openable(&self) -> u64 {
        self.reserved.len() as u64
    }

    fn read(&mut self, stream: u64) -> Read {
        let mut receiving = self.inner.recv_stream(id_of(stream));
        let Ok(mut chunks) = receiving.read(true) else { return Read::Nothing };
        let read = match chunks.next(READ_BYTES) {
            Ok(Some(chunk)) => {
                // A read of no bytes says whether more is left, and saves looking the stream up again.
                let ends = matches!(chunks.next(0), Ok(None));
                Read::Data(chunk.bytes, if ends { End::Yes } else { End::No })
            }
            Ok(None) => Read::End,
            Err(ReadError::Blocked) => Read::Nothing,
            Err(ReadError::Reset(code)) => Read::Reset(code.into_inner()),
        };
        // Windows that are opened leave with the next datagrams, which are asked for in any case.
        let _ = chunks.finalize();
        match &read {
            Read::Data(data, end) => {
                if let Some(window) = self.receiving.read(stream, data.len()) {
                    self.inner.set_receive_window(VarInt::from_u32(window));
                }
                if *end == End::Yes {
                    self.end_reading(stream);
                }
            }
            Read::Nothing => self.receiving.drained(stream),
            Read::End | Read::Reset(_) => self.end_reading(stream),
        }
        read
    }

    fn reset_code(&mut self, stream: u64) -> Option<u64> {
        let mut receiving = self.inner.recv_stream(id_of(stream));
        let code = receiving.received_reset().ok().flatten().map(VarInt::into_inner);
        if code.is_some() {
            self.end_reading(stream);
        }
        code
    }

    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.inner.send_stream(id_of(stream)).write(&bytes[taken..]) {
                Ok(count) => taken += count,
                Err(WriteError::Blocked) => break,
                // The peer reads no more, which is reported: what is written is dropped.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return bytes.len(),
            }
        }
        self.sending.written(stream, taken);
        taken
    }

    fn write_chunk(&mut self, stream: u64, chunk: &mut Bytes) {
        let offered = chunk.len();
        while !chunk.is_empty() {
            match self.inner.send_stream(id_of(stream)).write_chunks(std::slice::from_mut(chunk)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return chunk.clear(),
            }
        }
        self.sending.written(stream, offered - chunk.len());
    }

    fn finish(&mut self, stream: u64) {
        let _ = self.inner.send_stream(id_of(stream)).finish();
    }

    fn reset(&mut self, stream: u64, code: u64) {
        self.sending.acknowledged(stream);
        let _ = self.inner.send_stream(id_of(stream)).reset(number(code));
    }

    fn stop(&mut self, stream: u64, code: u64) {
        let _ = self.inner.recv_stream(id_of(stream)).stop(number(code));
        self.end_reading(stream);
    }

    fn prioritise(&mut self, stream: u64, priority: Priority) {
        let _ = self.inner.send_stream(id_of(stream)).set_priority(rank(stream, priority));
    }

    fn send_datagram(&mut self, datagram: Bytes) -> bool {
        self.inner.datagrams().send(datagram, true).is_ok()
    }

    fn close(&mut self, code: u64, reason: &str) {
        self.inner.close(self.now, number(code), Bytes::copy_from_slice(reason.as_bytes()));
    }
}
