//! Times of a request in its line: when it came to each of its stages, and what they took of the CPU.

use std::time::{Duration, Instant};

use bolide_eventloop::Measured;

use super::text::{micros, number};
use crate::profile::{Shares, Stage};
use crate::upstream_times::UpstreamTimes;

/// When an exchange that was not answered at once came so far, by the loop's clock, which stands still within a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// The request's end, where it came after its head.
    pub received: Option<Instant>,
    /// Times of the upstream server.
    pub upstream: Option<UpstreamTimes>,
}

/// How long a request was in each of its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages([Duration; Self::BEFORE.len()]);

impl Stages {
    /// Text before each of them in a line in JSON.
    const BEFORE: [&'static str; 6] = [
        ",\"receive_us\":",
        ",\"response_us\":",
        ",\"send_us\":",
        ",\"upstream_connect_us\":",
        ",\"upstream_head_us\":",
        ",\"upstream_us\":",
    ];

    /// Of an exchange that began and is over now; its response's head was given at `answered`, if it was.
    pub fn new(began: Instant, answered: Option<Instant>, now: Instant, times: &Times) -> Self {
        let passed = |from: Option<Instant>, until: Option<Instant>| match (from, until) {
            (Some(from), Some(until)) => until.saturating_duration_since(from),
            _ => Duration::ZERO,
        };
        let upstream = times.upstream.as_ref();
        let chosen = upstream.map(|upstream| upstream.chosen);
        let sent = upstream.and_then(|upstream| upstream.sent);
        let failed = upstream.and_then(|upstream| upstream.failed);
        Self([
            passed(Some(began), times.received),
            passed(Some(began), answered),
            passed(answered, Some(now)),
            passed(chosen, sent.or(failed)),
            passed(sent, upstream.and_then(|upstream| upstream.head)),
            passed(sent, upstream.and_then(|upstream| upstream.end).or(failed)),
        ])
    }

    /// Appends those that took any time.
    pub(super) fn write(&self, line: &mut Vec<u8>) {
        for (before, took) in Self::BEFORE.iter().zip(self.0) {
            let took = micros(took);
            if took > 0 {
                line.extend_from_slice(before.as_bytes());
                number(line, took);
            }
        }
    }
}

/// CPU time of each request of a measured turn: it stands in the lines of those that began and ended in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    /// When the turn began, and with it each of its requests.
    pub(super) began: Instant,
    /// The number of the first line that was written after it.
    pub(super) until: u32,
    shares: Shares,
}

impl Split {
    /// None when no request began in the turn, or when it says nothing.
    pub(super) fn of(measured: &Measured, began: Instant, until: u32) -> Option<Self> {
        Shares::of(measured).map(|shares| Self { began, until, shares })
    }

    /// Puts it at the end of a line in JSON.
    pub(super) fn put(&self, line: &mut Vec<u8>) {
        line.truncate(line.len() - b"}\n".len());
        let mut before: &[u8] = b",\"stages_ns\":{\"";
        for (stage, took_ns) in Stage::ALL.iter().zip(self.shares.0) {
            if took_ns > 0 {
                line.extend_from_slice(before);
                line.extend_from_slice(stage.name().as_bytes());
                line.extend_from_slice(b"\":");
                number(line, took_ns);
                before = b",\"";
            }
        }
        let is_empty = before != b",\"";
        line.extend_from_slice(if is_empty { b"}\n" } else { b"}}\n" });
    }
}

#[cfg(test)]
impl Stages {
    /// Each has taken time.
    pub(super) const ALL: Self = Self([Duration::from_micros(1); Self::BEFORE.len()]);
}

#[cfg(test)]
impl Split {
    /// Of a turn with one request in which each stage took time.
    pub(super) fn every(began: Instant) -> Self {
        let spent_ns = [1; bolide_eventloop::STAGES_COUNT];
        let measured = Measured { spent_ns, units: 1, ..Measured::default() };
        Self::of(&measured, began, 1).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(stages: &Stages) -> String {
        let mut line = Vec::new();
        stages.write(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn stages_are_told_from_the_moment_before_and_left_out_when_they_took_nothing() {
        let began = Instant::now();
        let at = |us: u64| began + Duration::from_micros(us);
        let upstream = UpstreamTimes {
            chosen: at(10),
            sent: Some(at(30)),
            head: Some(at(60)),
            end: Some(at(100)),
            failed: None,
        };
        let times = Times { received: Some(at(50)), upstream: Some(upstream) };
        assert_eq!(
            written(&Stages::new(began, Some(at(70)), at(150), &times)),
            ",\"receive_us\":50,\"response_us\":70,\"send_us\":80,\"upstream_connect_us\":20,\
             \"upstream_head_us\":30,\"upstream_us\":70"
        );
        assert_eq!(written(&Stages::new(began, Some(began), began, &Times::default())), "");
        assert_eq!(written(&Stages::new(began, None, at(9), &Times::default())), "");
    }

    #[test]
    fn a_server_behind_that_failed_is_told_until_then() {
        let began = Instant::now();
        let at = |us: u64| Some(began + Duration::from_micros(us));
        let told = |sent, head| {
            let upstream = UpstreamTimes { chosen: began, sent, head, end: None, failed: at(90) };
            let times = Times { received: None, upstream: Some(upstream) };
            written(&Stages::new(began, None, began, &times))
        };
        assert_eq!(told(None, None), ",\"upstream_connect_us\":90");
        assert_eq!(told(at(20), None), ",\"upstream_connect_us\":20,\"upstream_us\":70");
        let all = ",\"upstream_connect_us\":20,\"upstream_head_us\":5,\"upstream_us\":70";
        assert_eq!(told(at(20), at(25)), all);
    }
}
