//! How much a connection may have unsent: what leaves in a few milliseconds.

use std::time::Instant;

use crate::limits::Limits;

/// No bound on reading is lower, in bytes: a full frame of HTTP/2 for each of some streams.
const READ_BYTES_MIN: usize = 64 * 1024;

/// Rates are measured over this part of [`Limits::unsent_time`] at least.
const MEASURED_PARTS: u32 = 2;

/// The rate at which a connection's bytes leave, measured only while it is the socket that holds
/// them up: small responses never come to this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// When the socket was full and the measurement began.
    since: Option<Instant>,
    /// Bytes that left since then.
    sent: u32,
    /// The bound on unsent bytes.
    limit: u32,
    /// The bound that the kernel was told.
    told: u32,
    /// The socket has been full once: from then on it is the rate that says what the bound is.
    is_measured: bool,
}

impl Pace {
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = limits.unsent.unsent_start_bytes as u32;
        Self { since: None, sent: 0, limit, told: limit, is_measured: false }
    }

    /// How many bytes may wait.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// The most to be read at once: of a connection whose socket has been full once, about as much as may leave. What its session
    /// can't respond to yet stays in the kernel: kept here, it would be copied in each pass.
    #[inline]
    pub(crate) fn read_bytes_max(&self) -> usize {
        if self.is_measured { self.limit().max(READ_BYTES_MIN) } else { usize::MAX }
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// So much left at once, the socket has room, and more follows: the path may be faster than the bound. Returns the
    /// bound that the kernel should be told, so that a peer that takes nothing is handed no more than that.
    #[inline]
    pub(crate) fn drained(&mut self, sent: usize, limits: &Limits) -> Option<usize> {
        if self.is_measured || sent < self.limit() {
            return None;
        }
        self.limit = self.limit.saturating_mul(2).min(limits.unsent.unsent_max_bytes as u32);
        self.tell()
    }

    /// Everything left and nothing follows: what comes later says nothing about the path.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.since = None;
    }

    /// The socket is full. Returns the bound that the kernel should be told, if it has changed by much.
    pub(crate) fn blocked(&mut self, now: Instant, limits: &Limits) -> Option<usize> {
        let elapsed = self.since.map(|since| now.saturating_duration_since(since));
        match elapsed {
            Some(elapsed) if elapsed * MEASURED_PARTS < limits.unsent.unsent_time => {}
            Some(elapsed) => {
                let micros = elapsed.as_micros().max(1);
                let target = u128::from(self.sent) * limits.unsent.unsent_time.as_micros() / micros;
                let target = target.min(limits.unsent.unsent_max_bytes as u128) as usize;
                let limit = (self.limit() + target).div_ceil(2);
                let limit =
                    limit.clamp(limits.unsent.unsent_min_bytes, limits.unsent.unsent_max_bytes);
                (self.limit, self.since, self.sent) = (limit as u32, Some(now), 0);
            }
            None => (self.since, self.sent) = (Some(now), 0),
        }
        self.is_measured = true;
        self.tell()
    }

    /// The bound, if the kernel was told another one that differs by much.
    fn tell(&mut self) -> Option<usize> {
        let step = self.told / 4;
        if self.limit.abs_diff(self.told) > step {
            self.told = self.limit;
            return Some(self.limit());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A socket that is full every two milliseconds, after `bytes` each time.
    fn after_a_second_of(bytes: usize) -> (Pace, usize) {
        let limits = Limits::default();
        let start = Instant::now();
        let mut pace = Pace::new(&limits);
        let mut told = 0;
        for step in 0..500 {
            let now = start + Duration::from_millis(2 * step);
            told += usize::from(pace.blocked(now, &limits).is_some());
            pace.sent(bytes);
        }
        (pace, told)
    }

    #[test]
    fn the_bound_follows_what_leaves_in_four_milliseconds() {
        let (pace, told) = after_a_second_of(50_000);
        assert!(pace.limit().abs_diff(100_000) < 1000, "{}", pace.limit());
        assert!(told < 10, "told {told} times");
    }

    #[test]
    fn the_bound_stays_in_bounds() {
        assert_eq!(after_a_second_of(1).0.limit(), Limits::default().unsent.unsent_min_bytes);
        assert_eq!(
            after_a_second_of(10_000_000).0.limit(),
            Limits::default().unsent.unsent_max_bytes
        );
    }

    #[test]
    fn a_socket_that_takes_everything_is_offered_more() {
        let limits = Limits::default();
        let mut pace = Pace::new(&limits);
        assert_eq!(pace.drained(pace.limit() - 1, &limits), None);
        assert_eq!(pace.limit(), limits.unsent.unsent_start_bytes);
        let told: Vec<_> = (0..10).filter_map(|_| pace.drained(pace.limit(), &limits)).collect();
        let doubled = |doublings: u32| limits.unsent.unsent_start_bytes << doublings;
        assert_eq!(told, (1..=4).map(doubled).collect::<Vec<_>>());
        assert_eq!(pace.limit(), limits.unsent.unsent_max_bytes);
        let (mut slow, _) = after_a_second_of(1);
        assert_eq!(slow.drained(slow.limit(), &limits), None);
        assert_eq!(slow.limit(), limits.unsent.unsent_min_bytes, "the kernel knows another bound");
    }

    #[test]
    fn a_pause_is_not_a_slow_path() {
        let limits = Limits::default();
        let (mut pace, _) = after_a_second_of(10_000_000);
        pace.rest();
        let later = Instant::now() + Duration::from_secs(3600);
        pace.blocked(later, &limits);
        assert_eq!(pace.limit(), limits.unsent.unsent_max_bytes);
    }
}
