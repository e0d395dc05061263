//! RFC 9113 §10.5: what the peer has not read yet: whether it reads at all, and how many of our
//! control frames wait for it.

use crate::error::Fault;

const AWAKE: usize = usize::MAX;

/// Follows the send queue from outside: what left it is seen when a turn begins.
#[derive(Debug)]
pub(crate) struct OutputWatch {
    /// The queue's length when the last turn ended; [`AWAKE`] within a turn.
    length_at_rest: usize,
    /// Bytes that have left.
    sent: u64,
    /// Control frames in two batches: how many, and `sent` when the last of the batch has left.
    older: (u32, u64),
    newer: (u32, u64),
    /// Since when it is measured what leaves, and `sent` at that time.
    pub(crate) since_ms: u32,
    since_sent: u64,
}

impl OutputWatch {
    pub(crate) fn new() -> Self {
        Self {
            length_at_rest: AWAKE,
            sent: 0,
            older: (0, 0),
            newer: (0, 0),
            since_ms: 0,
            since_sent: 0,
        }
    }

    /// A turn begins.
    #[inline]
    pub(crate) fn wake(&mut self, length: usize, now_ms: u32) {
        if self.length_at_rest == AWAKE {
            return;
        }
        let left = self.length_at_rest.saturating_sub(length);
        if left > 0 {
            self.sent += left as u64;
            if self.older.0 > 0 && self.sent >= self.older.1 {
                self.older = std::mem::take(&mut self.newer);
                if self.older.0 > 0 && self.sent >= self.older.1 {
                    self.older = (0, 0);
                }
            }
        }
        if length == 0 {
            self.measure_anew(now_ms);
        }
        self.length_at_rest = AWAKE;
    }

    /// Measures what leaves from now on.
    pub(crate) fn measure_anew(&mut self, now_ms: u32) {
        (self.since_ms, self.since_sent) = (now_ms, self.sent);
    }

    /// How much has left since the measurement began, in bytes.
    pub(crate) fn taken_bytes(&self) -> u32 {
        u32::try_from(self.sent - self.since_sent).unwrap_or(u32::MAX)
    }

    /// A turn ends.
    #[inline]
    pub(crate) fn rest(&mut self, length: usize) {
        self.length_at_rest = length;
    }

    /// A control frame was queued, behind which `length` bytes wait in all.
    pub(crate) fn control_frame(&mut self, length: usize, count_max: u32) -> Result<(), Fault> {
        let batch = if self.older.0 == 0 { &mut self.older } else { &mut self.newer };
        batch.0 += 1;
        batch.1 = self.sent + length as u64;
        if self.older.0 + self.newer.0 > count_max {
            return Err(Fault::abuse("unread-control-frames", "our control frames are not read"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_left_are_not_counted() {
        let mut watch = OutputWatch::new();
        for turn in 0..100 {
            // Each turn queues ten frames of one byte behind 90 others and half of it leaves.
            watch.wake(50, turn);
            for frame in 0..10 {
                assert_eq!(watch.control_frame(51 + frame, 30), Ok(()));
            }
            watch.rest(150);
        }
    }

    #[test]
    fn frames_that_stay_are_counted() {
        let mut watch = OutputWatch::new();
        for frame in 0..30 {
            assert_eq!(watch.control_frame(frame, 30), Ok(()));
            watch.rest(frame);
            watch.wake(frame, 0);
        }
        assert!(watch.control_frame(30, 30).is_err());
    }

    #[test]
    fn what_leaves_is_measured_until_nothing_waits() {
        let mut watch = OutputWatch::new();
        watch.rest(100);
        watch.wake(100, 7);
        assert_eq!((watch.since_ms, watch.taken_bytes()), (0, 0));
        watch.rest(100);
        watch.wake(99, 8);
        assert_eq!((watch.since_ms, watch.taken_bytes()), (0, 1));
        watch.rest(0);
        watch.wake(0, 9);
        assert_eq!((watch.since_ms, watch.taken_bytes()), (9, 0));
    }
}
