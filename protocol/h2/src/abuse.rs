//! RFC 9113 §10.5: what a peer may cost us before the connection ends.

use bolide_semantics::Bucket;

use crate::error::Fault;
use crate::limits::{Limits, SMALL_DATA_BYTES};

/// The budgets of one connection. In a box that is made when something is taken of one: most connections never need it.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Option<Box<Levels>>);

/// Amounts that are left.
#[derive(Debug)]
struct Levels {
    client_resets: Bucket,
    client_resets_life: u32,
    own_resets: Bucket,
    own_resets_life: u32,
    glitches: Bucket,
    small_data: Bucket,
    tunnel_data: Bucket,
    settings: Bucket,
}

impl Levels {
    fn new(limits: &Limits) -> Self {
        Self {
            client_resets: Bucket::full(Some(limits.budgets.client_resets_burst_count)),
            client_resets_life: 0,
            own_resets: Bucket::full(limits.budgets.own_resets_burst_count),
            own_resets_life: 0,
            glitches: Bucket::full(limits.budgets.glitches_burst_count),
            small_data: Bucket::full(limits.budgets.small_data_burst_count),
            settings: Bucket::full(Some(limits.frames.settings_frames_count)),
            tunnel_data: Bucket::full(Some(limits.budgets.tunnel_data_burst_count)),
        }
    }
}

impl Budgets {
    fn levels(&mut self, limits: &Limits) -> &mut Levels {
        self.0.get_or_insert_with(|| Box::new(Levels::new(limits)))
    }

    /// Its memory, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| size_of::<Levels>())
    }

    /// The client reset a stream before its response was complete.
    pub(crate) fn client_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        let levels = self.levels(limits);
        levels.client_resets_life += 1;
        let (burst, refill) =
            (limits.budgets.client_resets_burst_count, limits.budgets.client_resets_refill_count);
        if levels.client_resets_life > limits.budgets.client_resets_life_count
            || !levels.client_resets.take(now_ms, Some(burst), refill)
        {
            return Err(Fault::abuse("rapid-reset", "too many requests were reset"));
        }
        Ok(())
    }

    /// The peer made us reset a stream.
    pub(crate) fn own_reset(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        let levels = self.levels(limits);
        levels.own_resets_life = levels.own_resets_life.saturating_add(1);
        let (burst, refill) =
            (limits.budgets.own_resets_burst_count, limits.budgets.own_resets_refill_count);
        if limits.budgets.own_resets_life_count.is_some_and(|most| levels.own_resets_life > most)
            || !levels.own_resets.take(now_ms, burst, refill)
        {
            return Err(Fault::abuse("made-you-reset", "too many streams had to be reset"));
        }
        Ok(())
    }

    /// The peer sent a frame that does nothing useful.
    pub(crate) fn glitch(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        if self.levels(limits).glitches.take(
            now_ms,
            limits.budgets.glitches_burst_count,
            limits.budgets.glitches_refill_count,
        ) {
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
        let (burst, refill) =
            (limits.budgets.small_data_burst_count, limits.budgets.small_data_refill_count);
        if self.levels(limits).small_data.take(now_ms, burst, refill) {
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
        let (burst, refill) =
            (limits.budgets.tunnel_data_burst_count, limits.budgets.tunnel_data_refill_count);
        if self.levels(limits).tunnel_data.take(now_ms, Some(burst), refill) {
            return Ok(());
        }
        Err(Fault::abuse("tunnel-data", "too many small DATA frames wait in tunnels"))
    }

    /// The peer sent a SETTINGS frame after its first.
    pub(crate) fn settings(&mut self, now_ms: u32, limits: &Limits) -> Result<(), Fault> {
        let count = limits.frames.settings_frames_count;
        if self.levels(limits).settings.take(now_ms, Some(count), count) {
            return Ok(());
        }
        Err(Fault::abuse("settings-flood", "too many SETTINGS frames"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn no_limit_is_none_however_much_comes() {
        let limits = Limits {
            budgets: limits::Budgets { small_data_burst_count: None, ..limits::Budgets::DEFAULT },
            ..Limits::default()
        };
        let mut budgets = Budgets::default();
        // More than thousandths of tokens that fit into 32 bits.
        for _ in 0..5_000_000 {
            assert_eq!(budgets.data(1, false, 0, &limits), Ok(()));
        }
    }

    #[test]
    fn a_life_is_counted_whatever_the_pace() {
        let limits = Limits::default();
        let mut budgets = Budgets::default();
        for reset in 0..limits::Budgets::DEFAULT.own_resets_life_count.unwrap() {
            assert_eq!(budgets.own_reset(reset * 1000, &limits), Ok(()));
        }
        assert!(budgets.own_reset(2_000_000, &limits).is_err());
    }

    #[test]
    fn data_that_ends_or_is_large_is_free() {
        let limits = Limits {
            budgets: limits::Budgets {
                small_data_burst_count: Some(0),
                ..limits::Budgets::DEFAULT
            },
            ..Limits::default()
        };
        let mut budgets = Budgets::default();
        assert_eq!(budgets.data(0, true, 0, &limits), Ok(()));
        assert_eq!(budgets.data(17, false, 0, &limits), Ok(()));
        assert!(budgets.data(16, false, 0, &limits).is_err());
    }
}
