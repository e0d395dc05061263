//! RFC 9000 §2: a transport in memory, whose other end is the test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bolide_h3::{Quic, QuicEvent, Read};
use bolide_semantics::{End, Priority};
use bytes::{Buf, Bytes};

/// Bytes of a stream that have come and were not read.
#[derive(Debug, Default)]
struct Incoming {
    pieces: VecDeque<Bytes>,
    ended: bool,
    reset: Option<u64>,
}

/// Bytes that were sent on a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ended: bool,
    pub(crate) reset: Option<u64>,
}

/// One end of a transport.
#[derive(Debug)]
pub(crate) struct Network {
    is_server: bool,
    pub(crate) events: VecDeque<QuicEvent>,
    incoming: BTreeMap<u64, Incoming>,
    pub(crate) sent: BTreeMap<u64, Outgoing>,
    /// STOP_SENDING frames that were sent.
    pub(crate) stopped: Vec<(u64, u64)>,
    pub(crate) closed: Option<u64>,
    pub(crate) datagrams: Vec<Bytes>,
    pub(crate) urgencies: BTreeMap<u64, u8>,
    /// How many more bytes are taken, and on one stream.
    pub(crate) room: usize,
    pub(crate) stream_room: usize,
    full: BTreeSet<u64>,
    pub(crate) openable: u64,
    opened: [u64; 2],
    /// The order in which bytes of requests' streams were taken: stream and count.
    pub(crate) order: Vec<(u64, usize)>,
}

impl Network {
    pub(crate) fn new(is_server: bool) -> Self {
        Self {
            is_server,
            events: VecDeque::new(),
            incoming: BTreeMap::new(),
            sent: BTreeMap::new(),
            stopped: Vec::new(),
            closed: None,
            datagrams: Vec::new(),
            urgencies: BTreeMap::new(),
            room: usize::MAX,
            stream_room: usize::MAX,
            full: BTreeSet::new(),
            openable: 100,
            opened: [0, 0],
            order: Vec::new(),
        }
    }

    /// The peer sends these bytes.
    pub(crate) fn arrives(&mut self, stream: u64, bytes: &[u8]) {
        let is_new = !self.incoming.contains_key(&stream);
        let ours = (stream & 1 == 1) == self.is_server;
        if is_new && !ours {
            self.events.push_back(QuicEvent::Opened(stream));
        }
        let incoming = self.incoming.entry(stream).or_default();
        if !bytes.is_empty() {
            incoming.pieces.push_back(Bytes::copy_from_slice(bytes));
        }
        if !is_new || ours {
            self.events.push_back(QuicEvent::Readable(stream));
        }
    }

    pub(crate) fn ends(&mut self, stream: u64) {
        self.arrives(stream, b"");
        self.incoming.entry(stream).or_default().ended = true;
    }

    pub(crate) fn resets(&mut self, stream: u64, code: u64) {
        self.arrives(stream, b"");
        self.incoming.entry(stream).or_default().reset = Some(code);
    }

    pub(crate) fn stops(&mut self, stream: u64, code: u64) {
        self.events.push_back(QuicEvent::Stopped(stream, code));
    }

    /// The peer takes more.
    pub(crate) fn gives_room(&mut self, bytes: usize) {
        self.room = bytes;
        for stream in std::mem::take(&mut self.full) {
            self.events.push_back(QuicEvent::Writable(stream));
        }
    }

    pub(crate) fn bytes_of(&self, stream: u64) -> &[u8] {
        self.sent.get(&stream).map_or(&[], |sent| &sent.bytes)
    }

    fn open(&mut self, place: usize, kind: u64) -> u64 {
        let id = self.opened[place] * 4 + kind + u64::from(self.is_server);
        self.opened[place] += 1;
        self.sent.entry(id).or_default();
        id
    }
}

impl Quic for Network {
    fn event(&mut self) -> Option<QuicEvent> {
        self.events.pop_front()
    }

    fn open_bidirectional(&mut self) -> Option<u64> {
        self.openable = self.openable.checked_sub(1)?;
        Some(self.open(0, 0))
    }

    fn open_unidirectional(&mut self) -> Option<u64> {
        Some(self.open(1, 2))
    }

    fn openable(&self) -> u64 {
        self.openable
    }

    fn is_handshaking(&self) -> bool {
        false
    }

    fn is_acknowledged(&self) -> bool {
        true
    }

    fn read(&mut self, stream: u64) -> Read {
        let Some(incoming) = self.incoming.get_mut(&stream) else { return Read::Nothing };
        if let Some(code) = incoming.reset.take() {
            incoming.pieces.clear();
            return Read::Reset(code);
        }
        if let Some(piece) = incoming.pieces.pop_front() {
            let ends = incoming.pieces.is_empty() && std::mem::take(&mut incoming.ended);
            return Read::Data(piece, if ends { End::Yes } else { End::No });
        }
        if std::mem::take(&mut incoming.ended) { Read::End } else { Read::Nothing }
    }

    fn reset_code(&mut self, stream: u64) -> Option<u64> {
        self.incoming.get(&stream)?.reset
    }

    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize {
        let sent = self.sent.entry(stream).or_default();
        assert!(!sent.ended && sent.reset.is_none(), "nothing is written after the end");
        let room = self.room.min(self.stream_room.saturating_sub(sent.bytes.len()));
        let taken = bytes.len().min(room);
        sent.bytes.extend_from_slice(&bytes[..taken]);
        if self.room != usize::MAX {
            self.room -= taken;
        }
        if taken < bytes.len() {
            self.full.insert(stream);
        }
        if stream & 2 == 0 && taken > 0 {
            self.order.push((stream, taken));
        }
        taken
    }

    fn write_chunk(&mut self, stream: u64, chunk: &mut Bytes) {
        let taken = self.write(stream, chunk);
        chunk.advance(taken);
    }

    fn finish(&mut self, stream: u64) {
        let sent = self.sent.entry(stream).or_default();
        assert!(!sent.ended && sent.reset.is_none(), "a stream ends once");
        sent.ended = true;
    }

    fn reset(&mut self, stream: u64, code: u64) {
        let sent = self.sent.entry(stream).or_default();
        assert!(!sent.ended && sent.reset.is_none(), "what has ended is not reset");
        sent.reset = Some(code);
    }

    fn stop(&mut self, stream: u64, code: u64) {
        self.stopped.push((stream, code));
    }

    fn prioritise(&mut self, stream: u64, priority: Priority) {
        self.urgencies.insert(stream, priority.urgency);
    }

    fn send_datagram(&mut self, datagram: Bytes) -> bool {
        self.datagrams.push(datagram);
        true
    }

    fn close(&mut self, code: u64, _: &str) {
        self.closed.get_or_insert(code);
    }
}
