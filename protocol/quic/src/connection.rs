//! RFC 9000 §2, §10: one connection: datagrams out, a deadline, and its streams.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::DatagramBatch;
use bolide_h3::{Quic, QuicEvent, Read};
use bolide_semantics::CloseReason;
use bolide_tls::{Alpn, ClientCertificate, HandshakeFacts};
use bytes::Bytes;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{
    ConnectionError, ConnectionHandle, Dir, EndpointEvent, Event, ReadError, StreamEvent, StreamId,
    Transmit, TransportErrorCode, VarInt, WriteError,
};

use crate::endpoint::{Delivery, Endpoint, Key};
use crate::facts::QuicStats;
use crate::limits::{
    BATCH_COUNT, CONNECTION_WINDOW_BYTES, FIRST_WINDOW_BYTES, OUTWARD_WINDOW_BYTES,
    RESERVED_STREAMS_COUNT, SEND_WINDOW_BYTES, STREAM_WINDOW_BYTES,
};

/// The longest piece that is read of a stream at once, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// What a piece of a stream takes besides its bytes while it is not read: its place in the order, and what it shares.
const PIECE_BYTES: usize = 160;

/// The most pieces that the transport keeps of one stream: it merges what is beyond, or ends the connection.
const PIECES_COUNT: usize = 2048;

/// What every path lets through (RFC 9000 §14), in bytes: no datagram of a handshake is larger.
const DATAGRAM_BYTES_MIN: usize = 1200;

/// H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;

/// Where the codes of TLS's alerts begin (RFC 9000 §20.1).
const CRYPTO_ERROR: u64 = 0x100;

/// The alert of a peer that has no protocol in common (RFC 7301 §3.2).
const NO_APPLICATION_PROTOCOL: u64 = 120;

/// What quinn-proto wants to be sent, in our words.
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
    /// What was written to each stream of which not everything is acknowledged.
    written: Vec<(u64, u64)>,
    written_bytes: u64,
    /// Streams of requests of which more may come, in order.
    reading: Vec<u64>,
    /// Of the pieces that have come, those that were read or are known not to be kept.
    pieces_read: u64,
    /// What the peer may send before it is read.
    window_bytes: u32,
    /// What was read since the window had this size.
    read_bytes: u64,
    /// It counts among the endpoint's handshakes of clients whose addresses are not validated.
    is_unvalidated: bool,
    /// What may be sent before the client's address is validated, in bytes; `None`: anything.
    allowance: Option<usize>,
    tls_failure: Option<String>,
}

impl Connection {
    pub(crate) fn new(
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        now: Instant,
        allowance: Option<usize>,
    ) -> Self {
        let (events, reserved) = (VecDeque::new(), VecDeque::new());
        let is_server = inner.side().is_server();
        let window_bytes = if is_server { FIRST_WINDOW_BYTES } else { OUTWARD_WINDOW_BYTES };
        Self {
            handle,
            inner,
            now,
            events,
            reserved,
            written: Vec::new(),
            written_bytes: 0,
            reading: Vec::new(),
            pieces_read: 0,
            window_bytes,
            read_bytes: 0,
            is_unvalidated: allowance.is_some(),
            allowance,
            tls_failure: None,
        }
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
        self.inner.handle_event(delivery.event);
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

    /// Whether it has ended and been forgotten by its endpoint.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_drained()
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

    /// What it has counted, and its path.
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

    /// What was wrong with TLS, in words, if that ended the handshake.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&str> {
        self.tls_failure.as_deref()
    }

    /// What the handshake agreed on, once it is complete. quinn-proto does not tell the cipher suite, nor whether a session
    /// was resumed.
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
            resumed: false,
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

    /// So much was written to a stream: what the transport keeps of it until the peer has it, at most. What is written to
    /// unidirectional streams never ends, and is little.
    fn note_written(&mut self, stream: u64, bytes: usize) {
        if stream & 2 != 0 || bytes == 0 {
            return;
        }
        self.written_bytes += bytes as u64;
        match self.written.binary_search_by_key(&stream, |(stream, _)| *stream) {
            Ok(at) => self.written[at].1 += bytes as u64,
            Err(at) => self.written.insert(at, (stream, bytes as u64)),
        }
    }

    /// The transport keeps nothing of a stream any more.
    fn acknowledged(&mut self, stream: u64) {
        if let Ok(at) = self.written.binary_search_by_key(&stream, |(stream, _)| *stream) {
            self.written_bytes -= self.written.remove(at).1;
        }
    }

    /// More may come on a stream. What comes on unidirectional ones is read at once.
    fn begin_reading(&mut self, stream: u64) {
        if stream & 2 == 0
            && let Err(at) = self.reading.binary_search(&stream)
        {
            self.reading.insert(at, stream);
        }
    }

    /// Nothing more comes on a stream, or is wanted of it.
    fn end_reading(&mut self, stream: u64) {
        if let Ok(at) = self.reading.binary_search(&stream) {
            self.reading.remove(at);
        }
        if self.reading.is_empty() {
            // Some have come twice.
            self.pieces_read = self.inner.stats().frame_rx.stream;
        }
    }

    /// What the transport keeps at most of what was written, and of what has come and was not read, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let places = self.written.capacity() * size_of::<(u64, u64)>()
            + self.reading.capacity() * size_of::<u64>();
        let open = self.reading.len();
        let unread = (self.window_bytes as usize).min(STREAM_WINDOW_BYTES as usize * open);
        let pieces = self.inner.stats().frame_rx.stream.saturating_sub(self.pieces_read);
        let pieces = (PIECES_COUNT * open).min(pieces as usize);
        self.written_bytes.min(SEND_WINDOW_BYTES) as usize + unread + pieces * PIECE_BYTES + places
    }

    /// So much was read: who sends a lot may send more ahead.
    fn note_read(&mut self, bytes: usize) {
        self.read_bytes += bytes as u64;
        if self.read_bytes >= self.window_bytes.into()
            && self.window_bytes < CONNECTION_WINDOW_BYTES
        {
            self.read_bytes = 0;
            self.window_bytes = (2 * self.window_bytes).min(CONNECTION_WINDOW_BYTES);
            self.inner.set_receive_window(VarInt::from_u32(self.window_bytes));
        }
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
                    self.begin_reading(id.into());
                    self.events.push_back(QuicEvent::Opened(id.into()));
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.events.push_back(QuicEvent::Readable(id.into()));
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                self.events.push_back(QuicEvent::Writable(id.into()));
            }
            Event::Stream(StreamEvent::Finished { id }) => self.acknowledged(id.into()),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                self.acknowledged(id.into());
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
            Event::Connected
            | Event::HandshakeDataReady
            | Event::DatagramsUnblocked
            | Event::Stream(StreamEvent::Available { .. }) => {}
        }
    }
}

/// Why the transport ended.
fn close_reason(error: &ConnectionError) -> CloseReason {
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

/// What was wrong with TLS, if that ended a connection (RFC 9001 §4.8), by us or by the peer.
fn tls_failure(error: &ConnectionError) -> Option<String> {
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

fn number(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
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
            let event = self.inner.poll()?;
            self.happened(event);
        }
    }

    fn open_bidirectional(&mut self) -> Option<u64> {
        let id = self.reserved.pop_front()?;
        self.begin_reading(id);
        self.reserve();
        Some(id)
    }

    fn open_unidirectional(&mut self) -> Option<u64> {
        self.inner.streams().open(Dir::Uni).map(Into::into)
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn is_acknowledged(&self) -> bool {
        self.written.is_empty()
    }

    fn openable(&self) -> u64 {
        self.reserved.len() as u64
    }

    fn read(&mut self, stream: u64) -> Read {
        let mut receiving = self.inner.recv_stream(id_of(stream));
        let Ok(mut chunks) = receiving.read(true) else { return Read::Nothing };
        let read = match chunks.next(READ_BYTES) {
            Ok(Some(chunk)) => Read::Data(chunk.bytes),
            Ok(None) => Read::End,
            Err(ReadError::Blocked) => Read::Nothing,
            Err(ReadError::Reset(code)) => Read::Reset(code.into_inner()),
        };
        // Windows that are opened leave with the next datagrams, which are asked for in any case.
        let _ = chunks.finalize();
        match &read {
            Read::Data(data) => {
                self.pieces_read += 1;
                self.note_read(data.len());
            }
            Read::Nothing => {}
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
        self.note_written(stream, taken);
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
        self.note_written(stream, offered - chunk.len());
    }

    fn finish(&mut self, stream: u64) {
        let _ = self.inner.send_stream(id_of(stream)).finish();
    }

    fn reset(&mut self, stream: u64, code: u64) {
        self.acknowledged(stream);
        let _ = self.inner.send_stream(id_of(stream)).reset(number(code));
    }

    fn stop(&mut self, stream: u64, code: u64) {
        let _ = self.inner.recv_stream(id_of(stream)).stop(number(code));
        self.end_reading(stream);
    }

    fn prioritise(&mut self, stream: u64, urgency: u8) {
        let priority = 7 - i32::from(urgency.min(7));
        let _ = self.inner.send_stream(id_of(stream)).set_priority(priority);
    }

    fn send_datagram(&mut self, datagram: Bytes) -> bool {
        self.inner.datagrams().send(datagram, true).is_ok()
    }

    fn close(&mut self, code: u64, reason: &str) {
        self.inner.close(self.now, number(code), Bytes::copy_from_slice(reason.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
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
