//! RFC 9000 §4: what the peer may send, what may be sent ahead of it, and what the transport keeps of both at most.

use crate::limits::{
    CONNECTION_WINDOWS_COUNT, FIRST_WINDOW_BYTES, SEND_WINDOW_BYTES, SEND_WINDOW_BYTES_MAX,
    STALLED_BYTES, STALLED_STREAMS_COUNT,
};

/// Memory that a piece of a stream takes besides its bytes while it is not read: its place in the order, and what it shares.
const PIECE_BYTES: usize = 160;

/// The most pieces that the transport keeps of one stream: it merges what is beyond, or ends the connection.
const PIECES_COUNT: usize = 2048;

/// How many congestion windows may be sent ahead: one is on its way, what follows a lost packet is kept for another, and one waits.
const CONGESTION_WINDOWS: u64 = 3;

/// A stream of which more may come.
#[derive(Debug)]
struct Open {
    stream: u64,
    /// Bytes that had arrived on the connection before it was opened.
    arrived_before: u64,
    /// Bytes that were read of it, and of those that came between it and the next one and are over.
    read: u64,
    /// Not everything that has come was read when there was something last.
    is_stalled: bool,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// Streams of requests of which more may come, in order.
    open: Vec<Open>,
    /// Bytes that were read of all in the list.
    read: u64,
    /// Bytes of datagrams that have arrived.
    arrived: u64,
    /// Those of them before which every stream that was opened is known.
    known: u64,
    /// Streams in the list that are stalled now, and the most that have been at once, as far as they count.
    stalled: usize,
    stalled_most: u32,
    /// So many count: none of a client's, whose window is large enough at once.
    stalled_max: u32,
    /// Of the pieces that have come, those that were read or are known not to be kept.
    pieces_read: u64,
    /// Bytes that may come on one stream before it is read.
    stream_bytes: u32,
    /// Bytes that may come on all before they are read, in addition to what stalled streams have, and what it may grow to.
    shared_bytes: u32,
    shared_bytes_max: u32,
    /// Bytes that were read since the window had this size.
    read_since: u64,
}

impl Receiving {
    /// That of a server, whose client begins with a datagram of so many bytes, and may send `stream_bytes` on a stream.
    pub(crate) fn of_server(first_bytes: usize, stream_bytes: u32) -> Self {
        let arrived = first_bytes as u64;
        let shared_bytes_max = CONNECTION_WINDOWS_COUNT * stream_bytes;
        let shared_bytes = FIRST_WINDOW_BYTES;
        let stalled_max = STALLED_STREAMS_COUNT.min(STALLED_BYTES / stream_bytes);
        Self { arrived, stalled_max, ..Self::with(stream_bytes, shared_bytes, shared_bytes_max) }
    }

    /// That of a client.
    pub(crate) fn of_client(stream_bytes: u32, shared_bytes: u32) -> Self {
        Self::with(stream_bytes, shared_bytes, shared_bytes)
    }

    fn with(stream_bytes: u32, shared_bytes: u32, shared_bytes_max: u32) -> Self {
        Self {
            open: Vec::new(),
            read: 0,
            arrived: 0,
            known: 0,
            stalled: 0,
            stalled_most: 0,
            stalled_max: 0,
            pieces_read: 0,
            stream_bytes,
            shared_bytes,
            shared_bytes_max,
            read_since: 0,
        }
    }

    /// A datagram has arrived.
    pub(crate) fn arrived(&mut self, bytes: usize) {
        self.arrived += bytes as u64;
    }

    /// Every stream that was opened by what has arrived is known.
    pub(crate) fn knows_all(&mut self) {
        self.known = self.arrived;
    }

    fn find(&self, stream: u64) -> Result<usize, usize> {
        self.open.binary_search_by_key(&stream, |open| open.stream)
    }

    /// More may come on a stream. What comes on unidirectional ones is read at once.
    pub(crate) fn begin(&mut self, stream: u64) {
        if stream & 2 == 0
            && let Err(at) = self.find(stream)
        {
            let arrived_before = self.known;
            self.open.insert(at, Open { stream, arrived_before, read: 0, is_stalled: false });
        }
    }

    /// Nothing more comes on a stream, or is wanted of it; `pieces` says how many have come on all streams until now.
    pub(crate) fn end(&mut self, stream: u64, pieces: impl FnOnce() -> u64) {
        if let Ok(at) = self.find(stream) {
            let over = self.open.remove(at);
            self.stalled -= usize::from(over.is_stalled);
            match at.checked_sub(1) {
                Some(before) => self.open[before].read += over.read,
                None => self.read -= over.read,
            }
        }
        if self.open.is_empty() {
            // Some have come twice.
            self.pieces_read = pieces();
        }
    }

    /// So much was read of a stream. Returns the window of the connection if that is a new one.
    pub(crate) fn read(&mut self, stream: u64, bytes: usize) -> Option<u32> {
        self.pieces_read += 1;
        self.read_since += bytes as u64;
        if let Ok(at) = self.find(stream) {
            let open = &mut self.open[at];
            open.read += bytes as u64;
            self.read += bytes as u64;
            self.stalled += usize::from(!open.is_stalled);
            open.is_stalled = true;
        }
        // Who sends a lot may send more ahead.
        let grows = self.read_since >= self.shared_bytes.into()
            && self.shared_bytes < self.shared_bytes_max;
        if grows {
            self.read_since = 0;
            self.shared_bytes = (2 * self.shared_bytes).min(self.shared_bytes_max);
        }
        grows.then(|| self.window())
    }

    /// There was nothing more to be read of a stream.
    pub(crate) fn drained(&mut self, stream: u64) {
        if let Ok(at) = self.find(stream) {
            let was_stalled = std::mem::take(&mut self.open[at].is_stalled);
            self.stalled -= usize::from(was_stalled);
        }
    }

    /// Everything has been read that is wanted now. What is left is of streams whose receivers are slow, and must leave room
    /// for the others, whose requests would wait behind it. Returns the window of the connection if that is a new one.
    pub(crate) fn pause(&mut self) -> Option<u32> {
        let stalled = (self.stalled as u32).min(self.stalled_max);
        let grows = stalled > self.stalled_most;
        self.stalled_most = self.stalled_most.max(stalled);
        grows.then(|| self.window())
    }

    /// Returns what the peer may send before it is read.
    fn window(&self) -> u32 {
        self.shared_bytes + self.stalled_most * self.stream_bytes
    }

    /// Returns what the transport keeps at most of what has come and was not read, in bytes; `pieces` have come on all streams until
    /// now. It does not tell how much that is: it is no more than the windows of the open streams, and than what has
    /// arrived since the first of them was opened.
    pub(crate) fn held_bytes(&self, pieces: u64) -> usize {
        let Some(first) = self.open.first() else { return 0 };
        let open = self.open.len();
        let arrived = self.arrived.saturating_sub(first.arrived_before + self.read) as usize;
        let unread = arrived.min(self.window() as usize).min(self.stream_bytes as usize * open);
        let pieces = (pieces.saturating_sub(self.pieces_read) as usize).min(PIECES_COUNT * open);
        unread + pieces * PIECE_BYTES + self.open.capacity() * size_of::<Open>()
    }
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Bytes that were written to each stream of which not everything is acknowledged, in order.
    written: Vec<(u64, u64)>,
    written_bytes: u64,
    /// Bytes that the transport takes before they are acknowledged, and the most that it was since everything was.
    window: u64,
    window_most: u64,
}

impl Default for Sending {
    fn default() -> Self {
        let window = SEND_WINDOW_BYTES;
        Self { written: Vec::new(), written_bytes: 0, window, window_most: window }
    }
}

impl Sending {
    /// Follows the congestion window: what is sent ahead of it is memory, and can't be put in another order by priorities.
    /// Returns the window of the connection if that is a new one.
    pub(crate) fn follow(&mut self, congestion_window: u64) -> Option<u64> {
        let wanted = congestion_window.saturating_mul(CONGESTION_WINDOWS);
        let window = wanted.clamp(SEND_WINDOW_BYTES, SEND_WINDOW_BYTES_MAX);
        let is_new = std::mem::replace(&mut self.window, window) != window;
        self.window_most = self.window_most.max(window);
        is_new.then_some(window)
    }

    /// So much was written to a stream: what the transport keeps of it until the peer has it, at most. What is written to
    /// unidirectional streams never ends, and is little.
    pub(crate) fn written(&mut self, stream: u64, bytes: usize) {
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
    pub(crate) fn acknowledged(&mut self, stream: u64) {
        if let Ok(at) = self.written.binary_search_by_key(&stream, |(stream, _)| *stream) {
            self.written_bytes -= self.written.remove(at).1;
        }
        if self.written.is_empty() {
            self.window_most = self.window;
        }
    }

    /// Returns whether the peer has everything.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns what the transport keeps at most, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let places = self.written.capacity() * size_of::<(u64, u64)>();
        self.written_bytes.min(self.window_most) as usize + places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES_MAX};

    /// Returns what a server's end holds besides the place of its one stream.
    fn held(receiving: &Receiving) -> usize {
        receiving.held_bytes(receiving.pieces_read) - receiving.open.capacity() * size_of::<Open>()
    }

    #[test]
    fn what_has_come_and_was_not_read_is_held() {
        let mut receiving = Receiving::of_server(1200, STREAM_WINDOW_BYTES);
        receiving.knows_all();
        assert_eq!(receiving.held_bytes(5), 0, "nothing is open");
        receiving.arrived(1000);
        receiving.begin(0);
        receiving.knows_all();
        assert_eq!(held(&receiving), 1000, "it may have come with the stream");
        receiving.arrived(500);
        receiving.begin(4);
        receiving.read(0, 900);
        assert_eq!(held(&receiving), 600);
        // What is read of the second does not make what is left of the first less, once that is alone.
        receiving.read(4, 300);
        receiving.end(4, || 2);
        assert_eq!(held(&receiving), 300);
        receiving.knows_all();
        receiving.begin(8);
        receiving.end(0, || 2);
        assert_eq!(held(&receiving), 0, "nothing has come since it was opened");
        receiving.arrived(10 << 20);
        assert_eq!(held(&receiving), FIRST_WINDOW_BYTES as usize);
    }

    #[test]
    fn who_sends_a_lot_may_send_more_ahead() {
        let mut receiving = Receiving::of_server(0, STREAM_WINDOW_BYTES);
        receiving.begin(0);
        let mut read = |bytes| {
            let grown = receiving.read(0, bytes);
            receiving.drained(0);
            grown
        };
        assert_eq!(read(60_000), None);
        assert_eq!(read(60_000), Some(2 * FIRST_WINDOW_BYTES));
        let steps: Vec<u32> = (0..10).filter_map(|_| read(1 << 20)).collect();
        assert_eq!(steps, [1 << 18, 1 << 19]);
    }

    #[test]
    fn stalled_streams_leave_room_for_others() {
        let mut receiving = Receiving::of_server(0, STREAM_WINDOW_BYTES);
        for stream in (0..80).step_by(4) {
            receiving.begin(stream);
        }
        assert_eq!(receiving.pause(), None);
        receiving.read(0, 1);
        receiving.drained(0);
        assert_eq!(receiving.pause(), None, "all was read");
        receiving.read(0, 1);
        assert_eq!(receiving.pause(), Some(FIRST_WINDOW_BYTES + STREAM_WINDOW_BYTES));
        assert_eq!(receiving.pause(), None);
        receiving.end(0, || 0);
        receiving.read(4, 1);
        assert_eq!(receiving.pause(), None, "it takes the place of the other");
        for stream in (8..80).step_by(4) {
            receiving.read(stream, 1);
        }
        let most = STALLED_STREAMS_COUNT * STREAM_WINDOW_BYTES;
        assert_eq!(receiving.pause(), Some(FIRST_WINDOW_BYTES + most));
        let mut roomy = Receiving::of_server(0, STREAM_WINDOW_BYTES_MAX);
        for stream in (0..80).step_by(4) {
            roomy.begin(stream);
            roomy.read(stream, 1);
        }
        assert_eq!(roomy.pause(), Some(FIRST_WINDOW_BYTES + STALLED_BYTES));
        let mut client = Receiving::of_client(1 << 20, 32 << 20);
        client.begin(0);
        client.read(0, 1);
        assert_eq!(client.pause(), None);
    }

    #[test]
    fn what_is_sent_ahead_follows_the_congestion_window() {
        let mut sending = Sending::default();
        assert_eq!(sending.follow(12_000), None);
        assert_eq!(sending.follow(100_000), Some(300_000));
        sending.written(0, 1 << 30);
        assert_eq!(sending.follow(50_000), Some(150_000));
        assert_eq!(sending.held_bytes() / 1000, 300, "it may have taken so much before");
        assert_eq!(sending.follow(u64::MAX), Some(SEND_WINDOW_BYTES_MAX));
        sending.follow(0);
        sending.acknowledged(0);
        assert!(sending.is_acknowledged());
        sending.written(4, 1 << 30);
        assert_eq!(sending.held_bytes() / 1024, SEND_WINDOW_BYTES as usize / 1024);
    }
}
