//! RFC 9113 §10.5: what a peer may cost us before the connection ends.

use crate::error::Fault;
use crate::limits::{Limits, SMALL_DATA_BYTES};

/// Tokens that are used up and come back with time, counted in thousandths.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    thousandths: u32,
    at_ms: u32,
}

impl Bucket {
    fn full(burst: u32) -> Self {
        Self { thousandths: burst.saturating_mul(1000), at_ms: 0 }
    }

    /// Takes one token; false when there is none.
    fn take(&mut self, now_ms: u32, burst: u32, refill: u32) -> bool {
        // A token per second is a thousandth per millisecond.
        let gained = now_ms.wrapping_sub(self.at_ms).saturating_mul(refill);
        self.at_ms = now_ms;
        self.thousandths = self.thousandths.saturating_add(gained).min(burst.saturating_mul(1000));
        match self.thousandths.checked_sub(1000) {
            Some(left) => {
                self.thousandths = left;
                true
            }
            None => false,
        }
    }
}

/// The budgets of one connection.
#[derive(Debug)]
pub(crate) struct Budgets {
    client_resets: Bucket,
    client_resets_life: u32,
    own_resets: Bucket,
    own_resets_life: u32,
    glitches: Bucket,
    small_data: Bucket,
    tunnel_data: Bucket,
    settings: Bucket,
}

impl Budgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            client_resets: Bucket::full(limits.client_resets_burst_count),
            client_resets_life: 0,
            own_resets: Bucket::full(limits.own_resets_burst_count),
            own_resets_life: 0,
            glitches: Bucket::full(limits.glitches_burst_count),
            small_data: Bucket::full(limits.small_data_burst_count),
            tunnel_data: Bucket::full(limits.tunnel_data_burst_count),
            settings: Bucket::full(limits.settings_frames_count),
        }
    }

    /// The client reset a stream before its answer was complete.
    pub(crate) fn client_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        self.client_resets_life += 1;
        let (burst, refill) = (limits.client_resets_burst_count, limits.client_resets_refill_count);
        if self.client_resets_life > limits.client_resets_life_count
            || !self.client_resets.take(now_ms, burst, refill)
        {
            return Err(Fault::abuse("rapid-reset", "too many requests were reset"));
        }
        Ok(())
    }

    /// The peer made us reset a stream.
    pub(crate) fn own_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        self.own_resets_life += 1;
        let (burst, refill) = (limits.own_resets_burst_count, limits.own_resets_refill_count);
        if self.own_resets_life > limits.own_resets_life_count
            || !self.own_resets.take(now_ms, burst, refill)
        {
            return Err(Fault::abuse("made-you-reset", "too many streams had to be reset"));
        }
        Ok(())
    }

    /// The peer sent a frame that does nothing useful.
    pub(crate) fn glitch(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        if self.glitches.take(now_ms, limits.glitches_burst_count, limits.glitches_refill_count) {
            return Ok(());
        }
        Err(Fault::abuse("glitches", "too many useless frames"))
    }

    /// The peer sent a DATA frame with so many bytes of data, outside a tunnel.
    #[inline]
    pub(crate) fn data(
        &mut self,
        bytes: u32,
        end_stream: bool,
        now_ms: u32,
        limits: &Limits,
    ) -> Result<(), Fault> {
        if bytes > SMALL_DATA_BYTES || end_stream {
            return Ok(());
        }
        if bytes == 0 {
            return self.glitch(now_ms, limits);
        }
        let (burst, refill) = (limits.small_data_burst_count, limits.small_data_refill_count);
        if self.small_data.take(now_ms, burst, refill) {
            return Ok(());
        }
        Err(Fault::abuse("small-data", "too many small DATA frames"))
    }

    /// The peer sent a DATA frame with so many bytes of data in a tunnel. While nothing sent before it waits for its reader
    /// (`is_first`), a frame may be as small as a message is.
    #[inline]
    pub(crate) fn tunnel_data(
        &mut self,
        bytes: u32,
        is_first: bool,
        now_ms: u32,
        limits: &Limits,
    ) -> Result<(), Fault> {
        if bytes == 0 {
            return self.glitch(now_ms, limits);
        }
        if bytes > SMALL_DATA_BYTES || is_first {
            return Ok(());
        }
        let (burst, refill) = (limits.tunnel_data_burst_count, limits.tunnel_data_refill_count);
        if self.tunnel_data.take(now_ms, burst, refill) {
            return Ok(());
        }
        Err(Fault::abuse("tunnel-data", "too many small DATA frames wait in tunnels"))
    }

    /// The peer sent a SETTINGS frame.
    pub(crate) fn settings(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        let count = limits.settings_frames_count;
        if self.settings.take(now_ms, count, count) {
            return Ok(());
        }
        Err(Fault::abuse("settings-flood", "too many SETTINGS frames"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let mut bucket = Bucket::full(3);
        for _ in 0..3 {
            assert!(bucket.take(0, 3, 10));
        }
        assert!(!bucket.take(99, 3, 10));
        assert!(bucket.take(100, 3, 10));
        assert!(!bucket.take(100, 3, 10));
        for _ in 0..3 {
            assert!(bucket.take(60_000, 3, 10));
        }
        assert!(!bucket.take(60_000, 3, 10));
    }

    #[test]
    fn time_that_wraps_refills() {
        let mut bucket = Bucket { thousandths: 0, at_ms: u32::MAX - 50 };
        assert!(bucket.take(50, 3, 10));
    }

    #[test]
    fn a_life_is_counted_whatever_the_pace() {
        let limits = Limits::default();
        let mut budgets = Budgets::new(&limits);
        for reset in 0..limits.own_resets_life_count {
            assert_eq!(budgets.own_reset(reset * 1000, &limits), Ok(()));
        }
        assert!(budgets.own_reset(2_000_000, &limits).is_err());
    }

    #[test]
    fn data_that_ends_or_is_large_is_free() {
        let limits = Limits { small_data_burst_count: 0, ..Limits::default() };
        let mut budgets = Budgets::new(&limits);
        assert_eq!(budgets.data(0, true, 0, &limits), Ok(()));
        assert_eq!(budgets.data(17, false, 0, &limits), Ok(()));
        assert!(budgets.data(16, false, 0, &limits).is_err());
    }
}
