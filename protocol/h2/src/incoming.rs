//! RFC 9113 §4.1, §4.3: what is left of a frame or of a header block that began earlier.

use bolide_semantics::{ExchangeEvent, ExchangeId};

use crate::run::Run;
use crate::stream_list::StreamList;

/// A DATA frame of which a part has been reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataRest {
    pub(crate) stream: u32,
    /// Bytes of data still to come.
    pub(crate) left: u32,
    pub(crate) end_stream: bool,
}

/// A header block that CONTINUATION frames continue. Most blocks are decoded where they arrived and
/// never come here.
#[derive(Debug)]
pub(crate) struct HeaderBlock {
    pub(crate) stream: u32,
    pub(crate) end_stream: bool,
    /// The HEADERS frame made the stream depend on itself.
    pub(crate) self_dependent: bool,
    pub(crate) bytes: Vec<u8>,
    /// CONTINUATION frames so far.
    pub(crate) continuations: u32,
    /// When it began.
    pub(crate) since_ms: u32,
}

/// Nothing was taken since more input came: bodies are looked for from where reading stands.
const UNKNOWN: u32 = u32::MAX;

/// A body was not found: none is looked for until more input comes.
pub(crate) const EXHAUSTED: u32 = u32::MAX - 1;

/// Input that was read ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The streams whose frames are to be passed over.
    pub(crate) taken: StreamList,
    /// Start of the frame after the one taken last, in bytes before the end of the input: the next is looked
    /// for from there on. Holds until more input can come.
    pub(crate) from_end: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { taken: StreamList::default(), from_end: UNKNOWN }
    }
}

impl Ahead {
    /// More input may come.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.from_end = UNKNOWN;
    }
}

/// Result of a frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// The input does not hold enough of it.
    Incomplete,
    /// It has been dealt with, and consumed.
    Next,
    /// It has been dealt with, and there is something to report.
    Event(ExchangeId, ExchangeEvent),
}

/// Rest of earlier input.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The client's preface has not come yet.
    pub(crate) preface: bool,
    pub(crate) data: Option<DataRest>,
    /// Bytes of a payload that are of no interest; after those of `data`.
    pub(crate) skip: u32,
    /// The block that is open.
    pub(crate) block: Option<Box<HeaderBlock>>,
    /// The peer sends nothing more.
    pub(crate) eof: bool,
    /// A request waits in the input for the output to drain.
    pub(crate) held: bool,
    /// Frames so far; wraps.
    pub(crate) frames: u32,
    /// Bodies that were taken with their heads.
    pub(crate) ahead: Ahead,
    /// A body of which frames follow each other, once there was one; in a box, for most connections have none.
    pub(crate) run: Option<Box<Run>>,
}

impl Incoming {
    pub(crate) fn new(preface: bool) -> Self {
        Self {
            preface,
            data: None,
            skip: 0,
            block: None,
            eof: false,
            held: false,
            frames: 0,
            ahead: Ahead::default(),
            run: None,
        }
    }

    /// Returns whether a run is under way. It goes on only between two frames.
    #[inline]
    pub(crate) fn is_in_run(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_open())
    }

    /// Returns whether the input stands between two frames, outside of a header block.
    #[inline]
    pub(crate) fn is_between_frames(&self) -> bool {
        self.data.is_none() && self.skip == 0 && self.block.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_block_is_no_place_between_frames() {
        let mut incoming = Incoming::new(false);
        assert!(incoming.is_between_frames());
        incoming.block = Some(Box::new(HeaderBlock {
            stream: 1,
            end_stream: false,
            self_dependent: false,
            bytes: Vec::new(),
            continuations: 0,
            since_ms: 0,
        }));
        assert!(!incoming.is_between_frames());
    }
}
