//! When probes are due: at equal distances, whatever becomes of those before.

/// A train of intended times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pulse {
    interval_ns: u64,
    next_ns: u64,
}

impl Pulse {
    /// Nothing is ever due.
    pub(crate) fn silent() -> Self {
        Self { interval_ns: 0, next_ns: u64::MAX }
    }

    /// So many per second (0: none), the first one interval after `now_ns`.
    pub(crate) fn new(rate: f64, now_ns: u64) -> Self {
        if rate.is_nan() || rate <= 0.0 {
            return Self::silent();
        }
        let interval_ns = ((1e9 / rate) as u64).max(1);
        Self { interval_ns, next_ns: now_ns + interval_ns }
    }

    /// The next time that is due by `now_ns`, once each.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.next_ns;
        (due_ns <= now_ns).then(|| {
            self.next_ns += self.interval_ns;
            due_ns
        })
    }

    /// When the next one is due; `u64::MAX`: never.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_late_still_gets_every_intended_time() {
        let mut pulse = Pulse::new(10.0, 1_000);
        assert_eq!(pulse.due(100_000_999), None);
        assert_eq!(pulse.next_ns(), 100_001_000);
        let due: Vec<u64> = std::iter::from_fn(|| pulse.due(350_000_000)).collect();
        assert_eq!(due, [100_001_000, 200_001_000, 300_001_000]);
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(Pulse::new(rate, 0).due(u64::MAX - 1), None);
        }
    }
}
