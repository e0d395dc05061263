//! RFC 9113 §5.1: one stream: its state, what it receives, and what it has to send.

use std::mem;

use bolide_buffers::{Chunk, Memory};
use bolide_semantics::{End, Misuse, has_no_body};
pub(crate) use bolide_semantics::{ExchangeKind as Kind, LENGTH_UNKNOWN, PendingTrailers};
use bolide_semantics::{Pace, Priority};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::receive_window::ReceiveWindow;
use crate::unanswered::Unanswered;

/// No slot: the end of a list.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// The life of a stream (RFC 9113 §5.1). Nothing is pushed, so no stream is ever reserved.
///
/// ```text
///                       Closed (idle)
///                          │ HEADERS of a request
///                          ▼
///       END_STREAM sent   Open   END_STREAM received
///       ┌──────────────────┴──────────────────┐
///       ▼                                     ▼
///  HalfClosedLocal,                    HalfClosedRemote
///  Discarding (server, no tunnel)             │
///       │ END_STREAM received                 │ END_STREAM sent
///       └──────────────────┬──────────────────┘
///                          ▼
///                        Closed ◀── RST_STREAM either way, from any state
/// ```
///
/// A request that ends with its head opens a stream that is half-closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Idle or closed: the slot is free, or is about to be.
    Closed,
    Open {
        receiving: Part,
        sending: Part,
    },
    HalfClosedRemote {
        sending: Part,
    },
    HalfClosedLocal {
        receiving: Part,
    },
    /// Half-closed (local) by a complete response: what still comes of the request is discarded.
    Discarding,
}

/// Next part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its final head.
    Head,
    /// A body, a tunnel's bytes, or trailers.
    Content,
}

impl State {
    /// Returns what the peer sends next; `None` after its END_STREAM.
    #[inline]
    pub(crate) fn receiving(self) -> Option<Part> {
        match self {
            Self::Open { receiving, .. } | Self::HalfClosedLocal { receiving } => Some(receiving),
            Self::Discarding => Some(Part::Content),
            Self::Closed | Self::HalfClosedRemote { .. } => None,
        }
    }

    /// Returns what is to be sent next; `None` after our END_STREAM.
    #[inline]
    pub(crate) fn sending(self) -> Option<Part> {
        match self {
            Self::Open { sending, .. } | Self::HalfClosedRemote { sending } => Some(sending),
            Self::Closed | Self::HalfClosedLocal { .. } | Self::Discarding => None,
        }
    }

    /// The head of the final response has come.
    #[inline]
    pub(crate) fn head_received(&mut self) {
        if let Self::Open { receiving, .. } | Self::HalfClosedLocal { receiving } = self {
            *receiving = Part::Content;
        }
    }

    /// The head of the final response is sent.
    #[inline]
    pub(crate) fn head_sent(&mut self) {
        if let Self::Open { sending, .. } | Self::HalfClosedRemote { sending } = self {
            *sending = Part::Content;
        }
    }

    /// END_STREAM has come. Whether the stream is closed by that.
    #[inline]
    pub(crate) fn end_received(&mut self) -> bool {
        *self = match *self {
            Self::Open { sending, .. } => Self::HalfClosedRemote { sending },
            _ => Self::Closed,
        };
        *self == Self::Closed
    }
}

/// Place in which a stream waits to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It has nothing to send.
    Nowhere,
    /// In the scheduler's lists.
    Listed,
    /// For the peer to open the stream's window.
    Window,
}

/// The rest of the chunk that was given last, and what follows it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Memory,
    /// The memory of the whole chunk, which stays until its last byte leaves.
    pub(crate) chunk_bytes: u32,
    pub(crate) after: After,
}

impl Waiting {
    /// Returns what is left of a chunk that had so much memory, in bytes, when it was given.
    pub(crate) fn new(Chunk { bytes, memory }: Chunk, given_bytes: usize, after: After) -> Self {
        Self { bytes, memory, chunk_bytes: given_bytes.try_into().unwrap_or(u32::MAX), after }
    }

    /// Gets memory of its own if it is lent, and returns how much less it keeps then, in bytes.
    pub(crate) fn detach(&mut self) -> usize {
        if self.memory != Memory::Lent {
            return 0;
        }
        let left = Chunk { bytes: mem::take(&mut self.bytes), memory: self.memory }.detach();
        let less = (self.chunk_bytes as usize).saturating_sub(left.held_bytes());
        self.chunk_bytes -= less as u32;
        (self.bytes, self.memory) = (left.bytes, left.memory);
        less
    }

    /// Its memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let trailers = match &self.after {
            After::More | After::End => 0,
            After::Trailers(trailers) => trailers.held_bytes(),
        };
        self.chunk_bytes as usize + trailers
    }
}

/// Part of a message after a chunk.
#[derive(Debug)]
pub(crate) enum After {
    /// The content that is given next.
    More,
    /// Nothing: the stream ends with the chunk's last byte.
    End,
    Trailers(Box<PendingTrailers>),
}

/// Sending side of a stream.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Body bytes that the caller still owes, by its Content-Length; 0 before a response that has no content (HEAD).
    pub(crate) left: u64,
    /// While the stream waits in a [`Place`] without, the caller wants to hear when more may be given.
    pub(crate) waiting: Option<Waiting>,
    /// Bytes that the peer lets us send. Negative after it lowered its initial size.
    pub(crate) window: i32,
    /// Bytes that were sent and not answered by a WINDOW_UPDATE for this stream.
    pub(crate) unanswered: Unanswered,
    /// The peer has sent a WINDOW_UPDATE for this stream.
    pub(crate) updated: bool,
    pub(crate) place: Place,
    pub(crate) priority: Priority,
    /// The scheduler's list; also the list of free slots.
    pub(crate) next: u32,
    pub(crate) previous: u32,
    /// Since when it waits, and what the peer took since.
    pub(crate) waiting_ms: u32,
    pub(crate) taken_bytes: u32,
}

/// Receiving side of a stream.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// Body bytes that the peer still owes, by its Content-Length; 0 before a response that has no content (HEAD).
    pub(crate) left: u64,
    pub(crate) window: ReceiveWindow,
    /// Received and not consumed, in bytes.
    pub(crate) unconsumed: u32,
    pub(crate) pace: Pace,
}

impl Receiving {
    /// Returns whether the body may go on with so much data, and end there.
    #[inline]
    pub(crate) fn expects(&self, data: u32, end_stream: bool) -> bool {
        self.left == LENGTH_UNKNOWN
            || (u64::from(data) <= self.left && (!end_stream || u64::from(data) == self.left))
    }
}

/// One stream. The order of the fields is left to the compiler.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    /// Interim responses that have come.
    pub(crate) interim_count: u8,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
}

/// Initial values of a new stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) id: u32,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    pub(crate) send_window: u32,
    pub(crate) receive_window: u32,
    /// The Content-Length of what is received, and of what is sent, as far as they are known.
    pub(crate) receive_left: u64,
    pub(crate) send_left: u64,
    pub(crate) priority: Priority,
    pub(crate) now_ms: u32,
}

impl Stream {
    #[inline]
    pub(crate) fn new(opening: Opening) -> Self {
        let Opening { id, state, kind, now_ms, .. } = opening;
        Self {
            id,
            state,
            kind,
            interim_count: 0,
            receiving: Receiving {
                left: opening.receive_left,
                window: ReceiveWindow::new(opening.receive_window),
                unconsumed: 0,
                pace: Pace::new(now_ms),
            },
            sending: Sending {
                left: opening.send_left,
                waiting: None,
                window: opening.send_window as i32,
                unanswered: Unanswered::default(),
                updated: false,
                place: Place::Nowhere,
                priority: opening.priority,
                next: NO_SLOT,
                previous: NO_SLOT,
                waiting_ms: 0,
                taken_bytes: 0,
            },
        }
    }

    /// The head of the final response is being sent: what follows it.
    #[inline]
    pub(crate) fn announce(
        &mut self,
        status: StatusCode,
        length: u64,
        end: End,
    ) -> Result<(), Misuse> {
        let tunnel = self.kind == Kind::Connect && status.is_success();
        let bodiless = self.sending.left == 0 || has_no_body(&Method::GET, status);
        let ends = end == End::Yes;
        if ends && !bodiless && !tunnel && !matches!(length, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        self.sending.left = match (tunnel, bodiless) {
            (true, _) => LENGTH_UNKNOWN,
            (false, true) => 0,
            (false, false) => length,
        };
        if tunnel {
            self.kind = Kind::Tunnel;
            self.receiving.left = LENGTH_UNKNOWN;
        }
        self.state.head_sent();
        Ok(())
    }
}

/// A stream that is open, for tests.
#[cfg(test)]
pub(crate) fn test_opening(id: u32) -> Opening {
    Opening {
        id,
        state: State::Open { receiving: Part::Content, sending: Part::Content },
        kind: Kind::Message,
        send_window: 1,
        receive_window: 1,
        receive_left: LENGTH_UNKNOWN,
        send_left: LENGTH_UNKNOWN,
        priority: Priority::UNSPOKEN,
        now_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_small() {
        assert!(size_of::<Stream>() <= 160, "{}", size_of::<Stream>());
    }

    #[test]
    fn a_stream_is_closed_when_both_directions_have_ended() {
        let (head, content) = (Part::Head, Part::Content);
        let mut server = State::Open { receiving: content, sending: head };
        assert!(!server.end_received());
        server.head_sent();
        assert_eq!(server, State::HalfClosedRemote { sending: content });
        let mut client = State::HalfClosedLocal { receiving: head };
        client.head_received();
        assert_eq!((client.receiving(), client.sending()), (Some(content), None));
        for mut state in [client, State::Discarding] {
            assert!(state.end_received());
            assert_eq!((state.receiving(), state.sending()), (None, None));
        }
    }
}
