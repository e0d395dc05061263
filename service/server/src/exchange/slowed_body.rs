//! A body of a request that is handed on no faster than its exchange's policy says.

use std::rc::Rc;
use std::time::Instant;

use bolide_semantics::{End, Head};
use bytes::{Bytes, BytesMut};

use crate::policy::Pace;

/// A body that waits for its time: not consumed, so that the client stops.
#[derive(Debug)]
pub(crate) struct SlowedBody {
    pace: Rc<dyn Pace>,
    bytes: BytesMut,
    has_ended: bool,
    trailers: Option<Head>,
    /// When the next piece may be handed on, if none may be now.
    until: Option<Instant>,
}

/// A part that is handed on.
pub(crate) enum Part {
    Data(Bytes, End),
    Trailers(Head),
}

impl SlowedBody {
    pub(crate) fn new(pace: Rc<dyn Pace>) -> Self {
        let (bytes, has_ended, trailers, until) = Default::default();
        Self { pace, bytes, has_ended, trailers, until }
    }

    /// Keeps a piece.
    pub(crate) fn add(&mut self, data: &[u8], end: End) {
        self.bytes.extend_from_slice(data);
        self.has_ended |= end == End::Yes;
    }

    /// Keeps the trailers, with which it ends.
    pub(crate) fn end_with(&mut self, trailers: Head) {
        self.trailers = Some(trailers);
        self.has_ended = true;
    }

    /// Drops the bytes that wait. Returns how many there were.
    pub(crate) fn drop_bytes(&mut self) -> usize {
        self.bytes.split().len()
    }

    /// The next part, if it may be handed on.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Part> {
        let mut data = Bytes::new();
        if !self.bytes.is_empty() {
            match self.pace.ready(now) {
                Ok(bytes) => data = self.bytes.split_to(bytes.min(self.bytes.len())).freeze(),
                Err(at) => {
                    self.until = Some(at);
                    return None;
                }
            }
            self.pace.sent(data.len() as u64, now);
        }
        if !self.bytes.is_empty() || !self.has_ended {
            return (!data.is_empty()).then_some(Part::Data(data, End::No));
        }
        match self.trailers.take() {
            Some(trailers) if data.is_empty() => {
                self.has_ended = false;
                Some(Part::Trailers(trailers))
            }
            Some(trailers) => {
                self.trailers = Some(trailers);
                Some(Part::Data(data, End::No))
            }
            None => {
                self.has_ended = false;
                Some(Part::Data(data, End::Yes))
            }
        }
    }

    /// Returns whether a part that had to wait may be handed on now.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        self.until.take_if(|until| *until <= now).is_some()
    }

    /// When it is to be looked at again.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// The memory that it takes besides what the client has been told to be unconsumed, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.trailers.as_ref().map_or(0, Head::allocated_bytes)
    }
}
