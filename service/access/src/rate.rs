//! The generic cell rate algorithm, over the clients of all workers.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bolide_server::{HeaderValue, Request};
use foldhash::quality::RandomState;

use crate::limits::{RATE_CLIENTS_COUNT, RATE_IPV6_BITS_COUNT};

/// Clients that share a place: the one that owes least makes room.
const WAYS: usize = 8;

/// By what clients are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateKey {
    /// The address; of IPv6, so many bits of it.
    Address {
        /// From 1 to 128.
        ipv6_prefix: u8,
    },
    /// The value of this field, in lower case; requests without it count by their address.
    Field(String),
}

impl Default for RateKey {
    fn default() -> Self {
        Self::Address { ipv6_prefix: RATE_IPV6_BITS_COUNT }
    }
}

impl RateKey {
    /// Returns what stands for the client of a request. Two clients are taken for one with a probability of 2⁻⁶⁴.
    pub(crate) fn hash(&self, hasher: &RandomState, request: &Request<'_>) -> u64 {
        let value = match self {
            Self::Address { .. } => None,
            Self::Field(name) => request.head().get_named(name),
        };
        match value {
            Some(value) => hash_value(hasher, value),
            None => self.hash_address(hasher, request.client()),
        }
    }

    fn hash_address(&self, hasher: &RandomState, address: Option<IpAddr>) -> u64 {
        let kept = match self {
            Self::Address { ipv6_prefix } => u32::from(*ipv6_prefix),
            Self::Field(_) => u32::from(RATE_IPV6_BITS_COUNT),
        };
        match address.map(|address| address.to_canonical()) {
            None => hasher.hash_one(0_u8),
            Some(IpAddr::V4(v4)) => hasher.hash_one((4_u8, v4.to_bits())),
            Some(IpAddr::V6(v6)) => {
                let rest = u128::MAX.checked_shr(kept).unwrap_or(0);
                hasher.hash_one((6_u8, v6.to_bits() & !rest))
            }
        }
    }
}

fn hash_value(hasher: &RandomState, value: &[u8]) -> u64 {
    hasher.hash_one((1_u8, value))
}

/// Debts of clients, as the time when they owe nothing any more: one table for all workers, of many small sets, each with
/// a lock that is held for some nanoseconds. The other design, a share of the rate for each worker, needs none; but a client with one
/// connection, which is what HTTP/2 has, would get the share of its worker alone.
///
/// The hash of a client has a key of its own for each table.
#[derive(Debug)]
pub(crate) struct Debts {
    pub(crate) hasher: RandomState,
    began: Instant,
    sets: Box<[Mutex<[Cell; WAYS]>]>,
}

impl Default for Debts {
    fn default() -> Self {
        let sets = (0..RATE_CLIENTS_COUNT / WAYS).map(|_| Mutex::default()).collect();
        Self { hasher: RandomState::default(), began: Instant::now(), sets }
    }
}

impl Debts {
    /// Adds `cost` to what a client owes, in nanoseconds, if that is at most `most` then. What it owes, or would owe.
    pub(crate) fn add(&self, client: u64, now: Instant, cost: u64, most: u64) -> Result<u64, u64> {
        let now = now.saturating_duration_since(self.began).as_nanos() as u64;
        let set = &self.sets[client as usize % self.sets.len()];
        let mut cells = set.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cells.iter().position(|cell| cell.client == client);
        let owes_least = || cells.iter().enumerate().min_by_key(|(_, cell)| cell.until);
        let at = known.or_else(|| owes_least().map(|(at, _)| at)).unwrap_or_default();
        let until = if known.is_some() { cells[at].until.max(now) } else { now };
        let next = until.saturating_add(cost);
        let owed = next - now;
        if owed > most {
            return Err(owed);
        }
        if cost > 0 {
            cells[at] = Cell { client, until: next };
        }
        Ok(owed)
    }
}

/// A limit of requests for each client.
///
/// In any time `t`, a client gets at most `rate * t + burst` requests through, whichever workers its connections are
/// at. The only error is to a client's advantage: one that is forgotten, because more clients than [`RATE_CLIENTS_COUNT`]
/// came, owes nothing any more.
#[derive(Debug)]
pub struct RateLimit {
    policy: HeaderValue,
    burst: u32,
    key: RateKey,
    /// Time for one request, in nanoseconds.
    interval: u64,
    /// Time that a client may be ahead, in nanoseconds.
    tolerance: u64,
    debts: Debts,
}

/// One client. It owes nothing once `until` is past.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    client: u64,
    /// Nanoseconds since the table was made.
    until: u64,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, and so many more could follow at once; after this time, one more than that.
    Passes {
        /// Requests that could follow.
        left: u32,
        /// Until one more could.
        more_in: Duration,
    },
    /// It is one too many; the next one goes on after this time.
    Refused(Duration),
}

/// A rate that is none; says what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateError(&'static str);

impl std::fmt::Display for RateError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for RateError {}

/// A number of requests in a second, a minute or an hour, such as `10/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate(u32, Duration);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        const GIVE: RateError =
            RateError("give a rate such as \"10/s\", \"100/min\" or \"1000/h\"");
        let (number, unit) = text.split_once('/').ok_or(GIVE)?;
        let period = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            _ => return Err(GIVE),
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        match number.parse::<u32>() {
            Ok(number @ 1..=1_000_000) if is_plain => Ok(Self(number, Duration::from_secs(period))),
            Ok(_) if is_plain => Err(RateError("give a rate from 1 to 1000000")),
            _ => Err(GIVE),
        }
    }
}

impl RateLimit {
    /// A limit such as `10/s`, `100/min` or `1000/h`, of which `burst` requests may come at once.
    ///
    /// # Errors
    ///
    /// When the rate is none, or the burst is not from 1 to 1,000,000.
    pub fn new(rate: &str, burst: Option<u32>, key: RateKey) -> Result<Self, RateError> {
        let Rate(requests, period) = rate.parse()?;
        let burst = burst.unwrap_or(requests);
        if !(1..=1_000_000).contains(&burst) {
            return Err(RateError("the burst must be from 1 to 1000000"));
        }
        let interval = (period.as_nanos() as u64).div_ceil(u64::from(requests));
        let policy = format!("\"client\";q={requests};w={}", period.as_secs());
        let policy = HeaderValue::try_from(policy).map_err(|_| RateError("give digits"))?;
        Ok(Self {
            policy,
            burst,
            key,
            interval,
            tolerance: interval * u64::from(burst),
            debts: Debts::default(),
        })
    }

    /// How many requests may come at once.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// The value of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10).
    pub(crate) fn policy(&self) -> HeaderValue {
        self.policy.clone()
    }

    /// Counts a request of a client at this address (none: on a Unix socket).
    #[must_use]
    pub fn count_address(&self, address: Option<IpAddr>, now: Instant) -> Verdict {
        self.count(self.key.hash_address(&self.debts.hasher, address), now)
    }

    /// Counts a request of a client that is named by the value of a field.
    #[must_use]
    pub fn count_value(&self, value: &[u8], now: Instant) -> Verdict {
        self.count(hash_value(&self.debts.hasher, value), now)
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, request: &Request<'_>) -> Verdict {
        self.count(self.key.hash(&self.debts.hasher, request), request.now())
    }

    fn count(&self, client: u64, now: Instant) -> Verdict {
        let ahead = match self.debts.add(client, now, self.interval, self.tolerance) {
            Ok(ahead) => ahead,
            Err(ahead) => {
                return Verdict::Refused(Duration::from_nanos(ahead - self.tolerance));
            }
        };
        let free = self.tolerance - ahead;
        let more_in = Duration::from_nanos(self.interval - free % self.interval);
        Verdict::Passes { left: (free / self.interval) as u32, more_in }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;

    fn passes(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Passes { .. })
    }

    fn limit(rate: &str, burst: u32) -> RateLimit {
        RateLimit::new(rate, Some(burst), RateKey::default()).unwrap()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limit = limit("10/s", 3);
        let start = limit.debts.began;
        let at = |ms: u64| limit.count_address(None, start + Duration::from_millis(ms));
        let passed = |left, ms| Verdict::Passes { left, more_in: Duration::from_millis(ms) };
        assert_eq!([at(0), at(0), at(0)], [passed(2, 100), passed(1, 100), passed(0, 100)]);
        assert_eq!(at(0), Verdict::Refused(Duration::from_millis(100)));
        assert_eq!(at(60), Verdict::Refused(Duration::from_millis(40)));
        assert_eq!([at(100), at(230)], [passed(0, 100), passed(0, 70)]);
        assert_eq!(at(231), Verdict::Refused(Duration::from_millis(69)));
        assert!([at(9000), at(9000), at(9000)].iter().all(passes) && !passes(&at(9000)));
    }

    #[test]
    fn clients_are_told_apart_by_address_and_prefix() {
        let limit = limit("1/h", 1);
        let count =
            |text: &str| limit.count_address(Some(text.parse().unwrap()), limit.debts.began);
        for (first, same) in [
            ("192.0.2.1", "::ffff:192.0.2.1"),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"),
            ("2001:db8:0:1::1", "2001:db8:0:1::2"),
        ] {
            assert!(passes(&count(first)), "{first}");
            assert!(!passes(&count(same)), "{same}");
        }
        assert!(passes(&count("192.0.2.2")));
        assert!(passes(&limit.count_value(b"key", limit.debts.began)));
        assert!(!passes(&limit.count_value(b"key", limit.debts.began)));
    }

    /// The stated error over workers: none.
    #[test]
    fn workers_together_let_as_many_through_as_one() {
        let limit = limit("1/h", 1000);
        let passed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        if passes(&limit.count_address(None, limit.debts.began)) {
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(passed.into_inner(), 1000);
    }

    #[test]
    fn address_flood_of_a_million_takes_no_memory_and_frees_nobody_who_owes_most() {
        let limit = limit("1/h", 100);
        let greedy = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        for _ in 0..100 {
            assert!(passes(&limit.count_address(greedy, limit.debts.began)));
        }
        let counted = allocation_counter::measure(|| {
            for address in 0..1_000_000_u128 {
                let address = Ipv6Addr::from_bits((0x2001_0db8 << 96) | (address << 64));
                let verdict = limit.count_address(Some(address.into()), limit.debts.began);
                assert!(passes(&verdict));
            }
        });
        assert_eq!(counted.count_total, 0, "{counted:?}");
        assert!(!passes(&limit.count_address(greedy, limit.debts.began)));
        let bytes = size_of_val(&*limit.debts.sets);
        assert!(bytes <= 1200 * 1024, "{bytes}");
    }

    #[test]
    fn rates_that_are_none_are_refused() {
        for rate in ["", "10", "10/d", "/s", "+1/s", "0/s", "1000001/s", "1.5/s", "10/s "] {
            assert!(RateLimit::new(rate, None, RateKey::default()).is_err(), "{rate}");
        }
        assert!(RateLimit::new("1/s", Some(0), RateKey::default()).is_err());
        assert_eq!(limit("100/min", 7).policy(), "\"client\";q=100;w=60");
    }

    proptest! {
        /// In no window of time do more pass than rate and burst allow.
        #[test]
        fn no_sequence_exceeds_rate_and_burst(
            requests in 1_u32..50, burst in 1_u32..20,
            gaps in prop::collection::vec(0_u64..300, 1..200),
        ) {
            let limit = limit(&format!("{requests}/s"), burst);
            let mut passed = Vec::new();
            let mut at = 0;
            for gap in gaps {
                at += gap;
                let now = limit.debts.began + Duration::from_millis(at);
                match limit.count_address(None, now) {
                    Verdict::Passes { .. } => passed.push(at),
                    Verdict::Refused(wait) => prop_assert!(
                        wait > Duration::ZERO && wait <= Duration::from_nanos(limit.interval)
                    ),
                }
            }
            for (first, start) in passed.iter().enumerate() {
                for (last, end) in passed.iter().enumerate().skip(first) {
                    let allowed = (end - start) as f64 / 1000.0 * f64::from(requests);
                    prop_assert!((last - first + 1) as f64 <= allowed + f64::from(burst) + 1e-6);
                }
            }
        }
    }
}
