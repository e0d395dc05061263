//! Health of upstreams: checks that are made without a client's request.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::limits::HealthLimits;

/// The kind of a health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthKind {
    /// A GET of this path, which begins with a slash.
    Get(String),
    /// `grpc.health.v1.Health/Check` of this service, over HTTP/2, which must say that it is serving; an empty name means the
    /// server as a whole.
    Grpc(String),
    /// The opening handshake of a WebSocket over HTTP/1.1 at this path, which must succeed (RFC 6455 §4).
    WebSocket(String),
}

impl HealthKind {
    /// The target of the request.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Get(path) | Self::WebSocket(path) => path,
            Self::Grpc(_) => "/grpc.health.v1.Health/Check",
        }
    }
}

/// A request that is sent to each upstream from time to time, to find out whether it is there.
///
/// One thread makes the checks of a proxy, however many workers it has. An upstream that is down gets no
/// requests, as long as there is another; when all are down, the checks are not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub(crate) kind: HealthKind,
    pub(crate) statuses: RangeInclusive<u16>,
    pub(crate) limits: HealthLimits,
}

impl HealthCheck {
    /// A GET of `path`, which begins with a slash, that expects a status from 200 to 299.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self::of(HealthKind::Get(path.to_owned()))
    }

    /// A check of another kind.
    #[must_use]
    pub fn of(kind: HealthKind) -> Self {
        Self { kind, statuses: 200..=299, limits: HealthLimits::DEFAULT }
    }

    /// The statuses of an upstream that is well. Default: 200 to 299.
    #[must_use]
    pub fn statuses(mut self, statuses: RangeInclusive<u16>) -> Self {
        self.statuses = statuses;
        self
    }

    /// How often each upstream is checked. Default: 5 s.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.limits.health_interval = interval;
        self
    }

    /// How long a response may take, with the connection. Default: 2 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.health_timeout = timeout;
        self
    }

    /// After how many checks in a row that went well an upstream that was down is up. Default:
    /// 2. At least 1.
    #[must_use]
    pub fn rise(mut self, count: u32) -> Self {
        self.limits.health_rise_count = count.max(1);
        self
    }

    /// After how many failures in a row an upstream is down. Default: 3. At least 1.
    #[must_use]
    pub fn fall(mut self, count: u32) -> Self {
        self.limits.health_fall_count = count.max(1);
        self
    }
}

/// State of a row of checks.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    is_down: bool,
    /// Results in a row that speak against `is_down`.
    against: u32,
}

impl Streak {
    /// One more result. Whether it changes what is said, and to what: `Some(true)` is down.
    pub(crate) fn add(&mut self, is_well: bool, check: &HealthCheck) -> Option<bool> {
        if is_well != self.is_down {
            self.against = 0;
            return None;
        }
        self.against += 1;
        if self.against
            < if self.is_down {
                check.limits.health_rise_count
            } else {
                check.limits.health_fall_count
            }
        {
            return None;
        }
        self.against = 0;
        self.is_down = !self.is_down;
        Some(self.is_down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_results_in_a_row_change_what_is_said() {
        let check = HealthCheck::new("/").rise(2).fall(3);
        let mut streak = Streak::default();
        let mut said = Vec::new();
        for is_well in "-- --+---+-++ +-".chars().filter(|result| *result != ' ') {
            said.extend(streak.add(is_well == '+', &check));
        }
        assert_eq!(said, [true, false]);
        assert!(!streak.is_down && streak.against == 1);
    }
}
