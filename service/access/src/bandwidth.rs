//! How fast content goes to each client, over the clients of all workers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_server::{Pace, Policy, Request};

use crate::rate::{Debts, RateKey};

/// A piece is not smaller than that, unless the burst is: each has its cost.
const PIECE_BYTES_MIN: u64 = 16 * 1024;

/// A limit of the bytes of content that each client is sent, or sends.
///
/// In any time `t`, a client is sent at most `rate * t + burst` bytes and one piece for each exchange that it has open, whichever
/// workers its connections are at. Heads, and what TLS and HTTP/2 add, don't count; nor do tunnels. What a client sends is handed on
/// so; what waits for it is not consumed, so that the client stops when its windows are full.
#[derive(Debug)]
pub struct Bandwidth {
    /// Bytes per second.
    rate: u64,
    burst: u64,
    key: RateKey,
    debts: Debts,
}

impl Bandwidth {
    /// So many bytes per second, of which `burst` may be sent at once; both are at least 1.
    #[must_use]
    pub fn new(rate: u64, burst: u64, key: RateKey) -> Self {
        Self { rate: rate.max(1), burst: burst.max(1), key, debts: Debts::default() }
    }

    /// The client of a request gets its response so, or its request is handed on so.
    pub(crate) fn apply(self: &Arc<Self>, request: &Request<'_>, content: SlowedContent) {
        let client = self.key.hash(&self.debts.hasher, request);
        request.set_policy(Rc::new(Slowed { limit: Arc::clone(self), client, content }));
    }

    /// The time that so many bytes take, in nanoseconds.
    fn time(&self, bytes: u64) -> u64 {
        let time = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// How many bytes a client may be sent now, or how long it has to wait.
    fn left(&self, client: u64, now: Instant) -> Result<u64, Duration> {
        let (Ok(owed) | Err(owed)) = self.debts.add(client, now, 0, u64::MAX);
        let piece = self.burst.min(PIECE_BYTES_MIN);
        let owed_most = self.time(self.burst - piece);
        if owed > owed_most {
            return Err(Duration::from_nanos(owed - owed_most));
        }
        let owed = u128::from(owed) * u128::from(self.rate) / 1_000_000_000;
        Ok(self.burst.saturating_sub(owed as u64).max(1))
    }
}

/// Message whose content is slowed down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlowedContent {
    Request,
    Response,
}

/// One exchange of a client.
#[derive(Debug, Clone)]
struct Slowed {
    limit: Arc<Bandwidth>,
    client: u64,
    content: SlowedContent,
}

impl Policy for Slowed {
    fn pace(&self) -> Option<Rc<dyn Pace>> {
        (self.content == SlowedContent::Response).then(|| Rc::new(self.clone()) as Rc<dyn Pace>)
    }

    fn receive_pace(&self) -> Option<Rc<dyn Pace>> {
        (self.content == SlowedContent::Request).then(|| Rc::new(self.clone()) as Rc<dyn Pace>)
    }

    fn held_bytes(&self) -> usize {
        2 * size_of::<Self>()
    }
}

impl Pace for Slowed {
    fn ready(&self, now: Instant) -> Result<usize, Instant> {
        match self.limit.left(self.client, now) {
            Ok(bytes) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
            // The loop's clock counts in milliseconds.
            Err(wait) => Err(now + wait.max(Duration::from_millis(1))),
        }
    }

    fn sent(&self, bytes: u64, now: Instant) {
        // It was sent: it is owed whatever the limit is.
        let _ = self.limit.debts.add(self.client, now, self.limit.time(bytes), u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowed(rate: u64, burst: u64) -> (Slowed, Instant) {
        let limit = Arc::new(Bandwidth::new(rate, burst, RateKey::default()));
        (Slowed { limit, client: 7, content: SlowedContent::Response }, Instant::now())
    }

    #[test]
    fn a_burst_is_sent_and_then_the_rate() {
        let (slowed, start) = slowed(100_000, 50_000);
        assert_eq!(slowed.ready(start), Ok(50_000));
        slowed.sent(50_000, start);
        let again = slowed.ready(start).unwrap_err();
        assert_eq!(again - start, Duration::from_nanos(163_840_000), "16 KiB at 100 kB/s");
        assert_eq!(slowed.ready(again), Ok(16_384));
        let other = Slowed { client: 8, ..slowed.clone() };
        assert_eq!(other.ready(start), Ok(50_000), "another client");
        slowed.sent(1_000_000, again);
        let again = slowed.ready(again).unwrap_err() - again;
        assert_eq!(again, Duration::from_secs(10), "what was sent too much is waited for");
    }

    #[test]
    fn in_no_time_is_more_sent_than_rate_burst_and_a_piece() {
        for (rate, burst) in [(1, 1), (1000, 10), (1 << 20, 1 << 22), (u64::MAX, u64::MAX)] {
            let (slowed, start) = slowed(rate, burst);
            let (mut now, mut sent) = (start, 0_u128);
            for _ in 0..100 {
                match slowed.ready(now) {
                    Ok(bytes) => {
                        assert!(bytes > 0);
                        let bytes = bytes.min(1 << 18);
                        slowed.sent(bytes as u64, now);
                        sent += bytes as u128;
                    }
                    Err(at) => {
                        assert!(at > now);
                        now = at;
                    }
                }
                let passed = (now - start).as_nanos() * u128::from(rate) / 1_000_000_000;
                assert!(sent <= passed + u128::from(burst) + (1 << 18), "{rate} {burst}");
            }
        }
    }
}
