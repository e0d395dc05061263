//! CoDel (RFC 8289): a queue that stands is made shorter by single drops, ever closer.

use super::Nanos;

/// A wait that is no reason to drop anything (RFC 8289 §4.2).
const TARGET: Nanos = 5_000_000;

/// How long a queue may stand above the target (RFC 8289 §4.3).
const INTERVAL: Nanos = 100_000_000;

/// The state of RFC 8289 §5.
#[derive(Debug, Default)]
pub(super) struct Codel {
    target: Nanos,
    /// When the wait will have been above the target for an interval.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
}

impl Codel {
    /// For a line on which one large packet takes `packet` to be sent: a target below that would drop
    /// for ever (RFC 8289 §4.2).
    pub(super) fn new(packet: Nanos) -> Self {
        Self { target: TARGET.max(packet + packet / 2), ..Self::default() }
    }

    /// Returns whether to drop the packet that has waited for `waited` and would be sent at `now`.
    pub(super) fn drops(&mut self, waited: Nanos, now: Nanos) -> bool {
        let stands = self.stands(waited, now);
        if self.dropping {
            if !stands {
                self.dropping = false;
            } else if now >= self.drop_next {
                self.count += 1;
                self.drop_next = self.next(self.drop_next);
                return true;
            }
            return false;
        }
        if !stands {
            return false;
        }
        self.dropping = true;
        let delta = self.count - self.last_count.min(self.count);
        let recent = now.saturating_sub(self.drop_next) < 16 * INTERVAL;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.next(now);
        true
    }

    fn stands(&mut self, waited: Nanos, now: Nanos) -> bool {
        if waited < self.target {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + INTERVAL);
                false
            }
            Some(when) => now >= when,
        }
    }

    fn next(&self, from: Nanos) -> Nanos {
        from + (INTERVAL as f64 / f64::from(self.count).sqrt()) as Nanos
    }
}
