//! RFC 9114 §10.5: what a peer may cost us before the connection ends.

use bolide_semantics::Bucket;

use crate::error::Fault;
use crate::limits::{Limits, SMALL_DATA_BYTES};

/// The budgets of one connection.
#[derive(Debug)]
pub(crate) struct Budgets {
    client_resets: Bucket,
    client_resets_life: u32,
    own_resets: Bucket,
    glitches: Bucket,
    small_data: Bucket,
}

impl Budgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            client_resets: Bucket::full(Some(limits.budgets.client_resets_burst_count)),
            client_resets_life: 0,
            own_resets: Bucket::full(limits.budgets.own_resets_burst_count),
            glitches: Bucket::full(limits.budgets.glitches_burst_count),
            small_data: Bucket::full(limits.budgets.small_data_burst_count),
        }
    }

    /// The client gave up a request before its response was complete.
    pub(crate) fn client_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        self.client_resets_life = self.client_resets_life.saturating_add(1);
        let (burst, refill) =
            (limits.budgets.client_resets_burst_count, limits.budgets.client_resets_refill_count);
        if self.client_resets_life > limits.budgets.client_resets_life_count
            || !self.client_resets.take(now_ms, Some(burst), refill)
        {
            return Err(Fault::abuse("rapid-reset", "too many requests were reset"));
        }
        Ok(())
    }

    /// The peer made us reset a stream.
    pub(crate) fn own_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        let (burst, refill) =
            (limits.budgets.own_resets_burst_count, limits.budgets.own_resets_refill_count);
        if self.own_resets.take(now_ms, burst, refill) {
            return Ok(());
        }
        Err(Fault::abuse("made-you-reset", "too many streams had to be reset"))
    }

    /// The peer sent a frame, or opened a stream, that does nothing useful.
    pub(crate) fn glitch(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        if self.glitches.take(
            now_ms,
            limits.budgets.glitches_burst_count,
            limits.budgets.glitches_refill_count,
        ) {
            return Ok(());
        }
        Err(Fault::abuse("glitches", "too many useless frames"))
    }

    /// The peer began a DATA frame with so many bytes. The first one of a message, `is_first`, may be as small as the
    /// whole message is.
    #[inline]
    pub(crate) fn data(
        &mut self,
        bytes: u64,
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
        let (burst, refill) =
            (limits.budgets.small_data_burst_count, limits.budgets.small_data_refill_count);
        if self.small_data.take(now_ms, burst, refill) {
            return Ok(());
        }
        Err(Fault::abuse("small-data", "too many small DATA frames"))
    }
}
