//! RFC 9114 §4.1: the stream of one request: its state, what it receives, and what it has to send.

use bolide_buffers::Chunk;
use bolide_semantics::{End, ExchangeKind, LENGTH_UNKNOWN, Pace, PendingTrailers, Priority};
use bytes::Bytes;

use crate::frame::Frames;

/// Next part of a message, in one direction.
///
/// ```text
///            1xx                     DATA
///           ┌───┐                   ┌────┐
///           ▼   │  HEADERS          ▼    │  HEADERS
///  ──────▶ Head ┴──────────────▶ Content ┴──────────▶ Tail
///                                   │ FIN              │ FIN
///                                   ▼                  ▼
///                                 Ended ◀──────────────┘
/// ```
///
/// Frames of unknown types may come anywhere. A tunnel has no Tail. A stream is gone when both directions have
/// ended, or with RESET_STREAM or STOP_SENDING either way; FIN in Head is an error (§4.1: the request is incomplete).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its final head.
    Head,
    /// A body, a tunnel's bytes, or trailers.
    Content,
    /// The end of the stream, after trailers.
    Tail,
    /// Nothing.
    Ended,
}

/// The rest of the chunk that was given last, and what follows it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) chunk: Chunk,
    pub(crate) after: After,
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

impl Waiting {
    /// Its memory, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let trailers = match &self.after {
            After::More | After::End => 0,
            After::Trailers(trailers) => trailers.held_bytes(),
        };
        self.chunk.held_bytes() + trailers
    }
}

/// Sending side of a stream.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) part: Part,
    /// Body bytes that the caller still owes, by its Content-Length; 0 before a response that has no content (HEAD).
    pub(crate) left: u64,
    /// Frames' headers and heads that the transport has not taken; before what waits.
    pub(crate) framed: Vec<u8>,
    pub(crate) waiting: Option<Waiting>,
    /// The transport takes no more at the moment.
    pub(crate) is_full: bool,
    /// The server needs no more of the request: so many bytes of a body that were given are not sent.
    pub(crate) cut: Option<u64>,
    pub(crate) priority: Priority,
    /// Its turn, while it waits for one.
    pub(crate) turn: Option<u64>,
    /// Its place, once its turn has come and the transport took nothing.
    pub(crate) kept: Option<u64>,
    /// Since when the transport has not taken everything, and how much it took since, in bytes.
    pub(crate) stalled: Option<(u32, u32)>,
    /// The [count](crate::scheduler::Scheduler::taken_count) when it last took no more.
    pub(crate) refused: u32,
}

impl Sending {
    /// Returns whether it waits for other streams, or for room that all share: where others were served since it was refused, its own
    /// window is closed.
    pub(crate) fn waits_for_others(&self, taken_count: u32) -> bool {
        self.is_full && self.refused == taken_count
    }

    /// Returns whether something waits for the transport.
    pub(crate) fn has_more(&self) -> bool {
        !self.framed.is_empty() || self.waiting.is_some()
    }
}

/// Receiving side of a stream.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) part: Part,
    /// Body bytes that the peer still owes, by its Content-Length; 0 before a response that has no content (HEAD).
    pub(crate) left: u64,
    /// Bytes that were read from the transport and not looked at.
    pub(crate) input: Bytes,
    pub(crate) frames: Frames,
    /// A field section of which a part has come, or all of it if it is blocked.
    pub(crate) section: Vec<u8>,
    /// The section needs so many entries of the table.
    pub(crate) blocked: Option<u64>,
    /// Received and not consumed, in bytes.
    pub(crate) unconsumed: u32,
    /// The end of the stream has been read: nothing follows the input.
    pub(crate) has_ended: bool,
    /// The peer has reset it, with this code.
    pub(crate) reset: Option<u64>,
    /// Something of a body has come.
    pub(crate) has_begun: bool,
    /// When something other than the body last came.
    pub(crate) since_ms: u32,
    /// How fast the body comes.
    pub(crate) pace: Pace,
    /// It is among those that are to be read.
    pub(crate) is_ready: bool,
}

impl Receiving {
    /// Bytes were read from the transport, after those before them were looked at.
    pub(crate) fn arrived(&mut self, bytes: Bytes, end: End) {
        self.input = bytes;
        self.has_ended = end == End::Yes;
    }

    /// Returns whether all field sections that the peer sends have been decoded, or are about to be: nothing of the decoder's table is needed
    /// for them any more.
    pub(crate) fn needs_no_table(&self) -> bool {
        self.has_ended && self.input.is_empty() && self.blocked.is_none()
    }
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The number of the exchange: requests are counted from 1.
    pub(crate) number: u32,
    pub(crate) kind: ExchangeKind,
    /// Interim responses that have come.
    pub(crate) interim_count: u8,
    /// The caller knows of it.
    pub(crate) is_reported: bool,
    /// Part of its memory that is in the connection's sum, in bytes.
    pub(crate) charged_bytes: usize,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
}

impl Stream {
    pub(crate) fn new(number: u32, now_ms: u32) -> Self {
        Self {
            number,
            kind: ExchangeKind::Message,
            interim_count: 0,
            is_reported: false,
            charged_bytes: 0,
            receiving: Receiving {
                part: Part::Head,
                left: LENGTH_UNKNOWN,
                input: Bytes::new(),
                frames: Frames::default(),
                section: Vec::new(),
                blocked: None,
                unconsumed: 0,
                has_ended: false,
                reset: None,
                has_begun: false,
                since_ms: now_ms,
                pace: Pace::new(now_ms),
                is_ready: false,
            },
            sending: Sending {
                part: Part::Head,
                left: LENGTH_UNKNOWN,
                framed: Vec::new(),
                waiting: None,
                is_full: false,
                cut: None,
                priority: Priority::UNSPOKEN,
                turn: None,
                kept: None,
                stalled: None,
                refused: 0,
            },
        }
    }

    /// The number of the transport's stream.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        id_of(self.number)
    }

    /// Returns whether both directions have ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.receiving.part == Part::Ended
            && self.sending.part == Part::Ended
            && !self.sending.has_more()
    }

    /// Returns what it makes us hold besides itself, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let waiting = self.sending.waiting.as_ref().map_or(0, Waiting::held_bytes);
        self.receiving.input.len()
            + self.receiving.section.capacity()
            + self.sending.framed.capacity()
            + waiting
    }
}

/// The transport's stream of the exchange with this number.
#[inline]
pub(crate) fn id_of(number: u32) -> u64 {
    u64::from(number.saturating_sub(1)) * 4
}

/// The number of the exchange on this stream, which a client opens.
#[inline]
pub(crate) fn number_of(id: u64) -> Option<u32> {
    if !id.is_multiple_of(4) {
        return None;
    }
    u32::try_from(id / 4 + 1).ok()
}
