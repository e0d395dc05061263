//! RFC 9113 §4.1, §4.3: what is left of a frame or of a header block that began earlier.

use crate::run::Run;
use crate::whole_body::Ahead;

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
#[derive(Debug, Default)]
pub(crate) struct HeaderBlock {
    /// Zero when there is none.
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

/// What is left of earlier input.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The client's preface has not come yet.
    pub(crate) preface: bool,
    pub(crate) data: Option<DataRest>,
    /// Bytes of a payload that are of no interest; after those of `data`.
    pub(crate) skip: u32,
    pub(crate) block: HeaderBlock,
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
            block: HeaderBlock::default(),
            eof: false,
            held: false,
            frames: 0,
            ahead: Ahead::default(),
            run: None,
        }
    }

    /// Whether a run is under way. It goes on only between two frames.
    #[inline]
    pub(crate) fn is_in_run(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_open())
    }

    /// Whether the input stands between two frames, outside of a header block.
    #[inline]
    pub(crate) fn is_between_frames(&self) -> bool {
        self.data.is_none() && self.skip == 0 && self.block.stream == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_block_is_no_place_between_frames() {
        let mut incoming = Incoming::new(false);
        assert!(incoming.is_between_frames());
        incoming.block.stream = 1;
        assert!(!incoming.is_between_frames());
    }
}
