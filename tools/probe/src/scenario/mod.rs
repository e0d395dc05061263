//! Users who do steps in order: what they send, what they read from responses, and how long they pause.
//!
//! Everything is compiled before the run: a user is a few numbers, what it has captured, and its cookies.

mod capture;
mod step;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::origin::Origin;

pub use self::capture::{Capture, KEPT_BYTES, Place};
pub use self::step::StepPlan;

/// Scenario of the users of a run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Users at a time, where the clock does not make them begin.
    pub users: usize,
    /// Their kinds; at least one.
    pub kinds: Vec<UserKind>,
    /// The rows of data: user `k` has the remainder of `k` by their count. Empty: none.
    pub rows: Vec<Box<[Box<str>]>>,
    /// How many values a user may capture.
    pub captures_count: usize,
    /// When each user begins, and of which kind it is; otherwise the load says when, and chance of which kind.
    pub recorded: Option<Recorded>,
    /// The servers of steps that don't go to the plan's own, which is number 0; the first one here is number 1.
    pub others: Vec<Origin>,
    /// The number of the server that each step goes to. Empty: all go to the plan's own.
    pub servers: Box<[usize]>,
}

/// Users of a log: user `k` is the one of its line `k`.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// After the start of the phase, in nanoseconds; they never fall.
    pub times: Arc<[u64]>,
    /// The kind of each.
    pub kinds: Box<[u8]>,
}

/// Users who do the same steps.
#[derive(Debug, Clone)]
pub struct UserKind {
    /// How often a user is of this kind: weights of the kinds up to this one, summed up.
    pub weights_sum: u64,
    /// Its steps among the plan's requests.
    pub steps: Range<usize>,
}

/// How long a user pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Think {
    /// Not at all.
    #[default]
    Never,
    /// From the first time to the last, each as likely, in nanoseconds.
    Between(u64, u64),
    /// Exponentially distributed, of this mean in nanoseconds.
    Exponential(u64),
}

impl Think {
    /// Reads `2s`, `1s..3s` or `exponential 2s`.
    ///
    /// # Errors
    ///
    /// What would be right, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("think `{text}`: use a time as `2s`, `1s..3s` or `exponential 2s`{why}")
        };
        let ns = |text: &str| -> Result<u64, String> {
            let time =
                bolide_units::seconds(text.trim()).map_err(|why| wrong(&format!("; {why}")))?;
            Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        };
        if let Some(mean) = text.trim().strip_prefix("exponential ") {
            return Ok(Self::Exponential(ns(mean)?));
        }
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last) = (ns(first)?, ns(last)?);
        match (first, last) {
            (0, 0) => Ok(Self::Never),
            _ if first > last => Err(wrong(", the shortest first")),
            _ => Ok(Self::Between(first, last)),
        }
    }

    /// Exactly so long.
    pub fn of(time: Duration) -> Self {
        match u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) {
            0 => Self::Never,
            ns => Self::Between(ns, ns),
        }
    }

    /// How long the next pause is, in nanoseconds.
    #[inline]
    pub fn draw(self, random: &mut Rng) -> u64 {
        match self {
            Self::Never => 0,
            Self::Between(first, last) if first == last => first,
            Self::Between(first, last) => first + random.u64(..(last - first).saturating_add(1)),
            Self::Exponential(mean) => (-(1.0 - random.f64()).ln() * mean as f64) as u64,
        }
    }
}

impl Scenario {
    /// Users at a time who do these steps, all of the server of the plan.
    pub fn new(users: usize, kinds: Vec<UserKind>) -> Self {
        Self {
            users,
            kinds,
            rows: Vec::new(),
            captures_count: 0,
            recorded: None,
            others: Vec::new(),
            servers: Box::default(),
        }
    }

    /// How many servers the steps go to.
    pub fn servers_count(&self) -> usize {
        1 + self.others.len()
    }

    /// The server that a step goes to: the `step`th request of the plan.
    #[inline]
    pub fn server(&self, step: usize) -> usize {
        self.servers.get(step).copied().unwrap_or(0)
    }

    /// Which kind a user is of.
    pub fn kind(&self, user: u64, random: &mut Rng) -> usize {
        if let Some(recorded) = &self.recorded {
            return recorded.kinds.get(user as usize).map_or(0, |kind| usize::from(*kind));
        }
        let [.., last] = &self.kinds[..] else { return 0 };
        if self.kinds.len() == 1 {
            return 0;
        }
        let drawn = random.u64(..last.weights_sum);
        self.kinds.partition_point(|kind| kind.weights_sum <= drawn)
    }

    /// The row of a user.
    pub fn row(&self, user: u64) -> &[Box<str>] {
        match self.rows.len() as u64 {
            0 => &[],
            count => &self.rows[(user % count) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_constant_uniform_or_exponential() {
        let second = 1_000_000_000;
        assert_eq!(Think::parse("0s"), Ok(Think::Never));
        assert_eq!(Think::parse("2s"), Ok(Think::Between(2 * second, 2 * second)));
        assert_eq!(Think::parse("1s..3s"), Ok(Think::Between(second, 3 * second)));
        assert_eq!(Think::parse("exponential 2s"), Ok(Think::Exponential(2 * second)));
        for text in ["", "fast", "3s..1s", "1s..", "exponential", "-1s"] {
            let said = Think::parse(text).unwrap_err();
            assert!(said.contains("`exponential 2s`"), "{said}");
        }
        let mut random = Rng::with_seed(1);
        let mut mean = |think: Think| {
            (0..10_000).map(|_| think.draw(&mut random) as f64).sum::<f64>() / 1e4 / second as f64
        };
        assert_eq!(mean(Think::of(Duration::from_secs(2))), 2.0);
        assert!((1.95..2.05).contains(&mean(Think::Between(second, 3 * second))));
        assert!((1.9..2.1).contains(&mean(Think::Exponential(2 * second))));
        let between = Think::Between(5, 7);
        assert!((0..100).all(|_| (5..=7).contains(&between.draw(&mut random))));
    }
}
