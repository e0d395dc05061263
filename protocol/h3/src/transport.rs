//! RFC 9000 §2, RFC 9221, RFC 9114 §6: what HTTP/3 needs of the transport below it, and what a connection works with.

use std::time::Instant;

use bolide_semantics::{CloseReason, End, Head, Priority};
use bytes::Bytes;

/// An event of the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuicEvent {
    /// The peer opened this stream; what has come of it can be read. Reported once for each stream, before anything else
    /// about it.
    Opened(u64),
    /// More can be read from the stream, or its end.
    Readable(u64),
    /// The stream takes bytes again, after it did not.
    Writable(u64),
    /// The peer reads no more of the stream (STOP_SENDING), with this code.
    Stopped(u64, u64),
    /// The peer allows more streams, of which none was left.
    Openable,
    /// An unreliable datagram (RFC 9221).
    Datagram(Bytes),
    /// The transport has ended, for this reason.
    Closed(CloseReason),
}

/// Result of [`Quic::read`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes: at least one. [`End::Yes`]: the stream ends with them, which is not said again.
    Data(Bytes, End),
    /// Nothing yet: [`QuicEvent::Readable`] says when.
    Nothing,
    /// The stream has ended, and everything had been read before. Said once.
    End,
    /// The peer has reset the stream, with this code. Said once.
    Reset(u64),
}

/// A connection of QUIC, whose streams have the numbers of RFC 9000 §2.1.
///
/// What is written and has to wait is the transport's own business: it holds no more than it allows itself, and takes no
/// more than that. Reading opens the peer's windows.
pub trait Quic {
    /// The next thing that happened.
    fn event(&mut self) -> Option<QuicEvent>;

    /// Opens a bidirectional stream, if the peer allows one more.
    fn open_bidirectional(&mut self) -> Option<u64>;

    /// Opens a unidirectional stream, if the peer allows one more.
    fn open_unidirectional(&mut self) -> Option<u64>;

    /// How many bidirectional streams may still be opened.
    fn openable(&self) -> u64;

    /// Returns whether the handshake is under way.
    fn is_handshaking(&self) -> bool;

    /// Returns whether the peer has acknowledged everything that was written to streams of requests: closing loses the rest.
    fn is_acknowledged(&self) -> bool;

    /// The next bytes of a stream that the peer sends on.
    fn read(&mut self, stream: u64) -> Read;

    /// The code with which the peer has reset a stream of which not everything has been read, if it has.
    fn reset_code(&mut self, stream: u64) -> Option<u64>;

    /// Takes as many of these bytes as there is room for, and returns how many those are. If it is not all,
    /// [`QuicEvent::Writable`] says when there is room again.
    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize;

    /// The same for bytes that are kept as they are: what is not taken is left in `chunk`.
    fn write_chunk(&mut self, stream: u64, chunk: &mut Bytes);

    /// Ends our side of a stream.
    fn finish(&mut self, stream: u64);

    /// Gives up our side of a stream (RESET_STREAM).
    fn reset(&mut self, stream: u64, code: u64);

    /// Reads no more of the peer's side of a stream (STOP_SENDING). Nothing is reported about it any more.
    fn stop(&mut self, stream: u64, code: u64);

    /// Sends what waits of this stream before what waits of those with a higher urgency (0 to 7), and, unless it shares, before
    /// that of later ones of the same. All have [`Priority::UNSPOKEN`] at first.
    fn prioritise(&mut self, stream: u64, priority: Priority);

    /// Sends an unreliable datagram; false when it can't be sent.
    fn send_datagram(&mut self, datagram: Bytes) -> bool;

    /// Ends the connection (CONNECTION_CLOSE).
    fn close(&mut self, code: u64, reason: &str);
}

/// The transport, the worker's head and clock, lent to a connection for one turn.
#[derive(Debug)]
pub struct Context<'a, Q> {
    /// The transport.
    pub quic: &'a mut Q,
    /// The latest head or trailers.
    pub head: &'a mut Head,
    /// The time of this turn.
    pub now: Instant,
}
