//! What is seen of a phase while it runs: from the looks of its threads to samples.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::histograms::{add, empty};
use super::messages::Look;
use crate::cost::CostSample;
use crate::progress::Progress;
use crate::report::Sample;

/// An interval shorter than this is too short for a rate, in nanoseconds (20 ms).
const LEAST_NS: u64 = 20_000_000;

/// What threads said of one interval, added up.
#[derive(Debug)]
struct Added {
    at_ns: u64,
    completed: u64,
    failed: u64,
    in_flight: u64,
    latency: Histogram<u64>,
}

/// Adds up looks, and makes a sample of each interval that every thread has spoken of.
#[derive(Debug)]
pub(super) struct Watch {
    intervals: BTreeMap<u64, Added>,
    /// The last interval that each thread spoke of; `None` once its phase is over.
    last: Vec<Option<u64>>,
    in_flight: Vec<u64>,
    /// Since when each thread can't make a connection.
    down: Vec<Option<u64>>,
    /// Up to when samples were made.
    sampled_ns: u64,
    cost: CostSample,
    progress: Progress,
    pub(super) series: Vec<Sample>,
}

impl Watch {
    pub(super) fn new(threads: usize, cost: CostSample) -> Self {
        Self {
            intervals: BTreeMap::new(),
            last: vec![Some(0); threads],
            in_flight: vec![0; threads],
            down: vec![None; threads],
            sampled_ns: 0,
            cost,
            progress: Progress::default(),
            series: Vec::new(),
        }
    }

    /// A thread has looked.
    pub(super) fn look(&mut self, thread: usize, look: &Look) {
        if let Some(last) = &mut self.last[thread] {
            *last = look.index;
        }
        self.in_flight[thread] = look.in_flight;
        self.down[thread] = look.down_since_ns;
        let in_flight = self.in_flight.iter().sum();
        let added = self.intervals.entry(look.index).or_insert_with(|| Added {
            at_ns: 0,
            completed: 0,
            failed: 0,
            in_flight: 0,
            latency: empty(),
        });
        added.at_ns = added.at_ns.max(look.at_ns);
        added.completed += look.completed;
        added.failed += look.failed;
        added.in_flight = in_flight;
        add(&mut added.latency, &look.latency);
    }

    /// The phase is over for a thread.
    pub(super) fn ended(&mut self, thread: usize) {
        self.last[thread] = None;
    }

    /// Whether it is over for all of them.
    pub(super) fn is_over(&self) -> bool {
        self.last.iter().all(Option::is_none)
    }

    /// Since when no thread can make a connection.
    pub(super) fn down_since_ns(&self) -> Option<u64> {
        self.down.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Whether an interval is complete.
    pub(super) fn has_sample(&self) -> bool {
        let said = self.last.iter().flatten().min().copied().unwrap_or(u64::MAX);
        self.intervals.first_key_value().is_some_and(|(index, _)| *index <= said)
    }

    /// Makes a sample of the next complete interval.
    pub(super) fn sample(&mut self, cost: CostSample) -> Option<&Progress> {
        let (_, added) = self.intervals.pop_first()?;
        self.progress.completed += added.completed;
        self.progress.failed += added.failed;
        let passed_ns = added.at_ns.saturating_sub(self.sampled_ns);
        if passed_ns < LEAST_NS {
            return None;
        }
        self.sampled_ns = added.at_ns;
        let passed = passed_ns as f64;
        let before = std::mem::replace(&mut self.cost, cost);
        let cores =
            |now: Duration, before: Duration| now.saturating_sub(before).as_nanos() as f64 / passed;
        let server = cost.server.zip(before.server).map(|(now, before)| cores(now.0, before.0));
        let sample = Sample {
            at_ns: added.at_ns,
            rate: added.completed as f64 * 1e9 / passed,
            p50_ns: added.latency.value_at_quantile(0.5),
            p99_ns: added.latency.value_at_quantile(0.99),
            failed: added.failed,
            in_flight: added.in_flight,
            generator_cores: cores(cost.generator_cpu, before.generator_cpu),
            server_cores: server,
        };
        self.series.push(sample);
        self.progress = Progress {
            elapsed: Duration::from_nanos(added.at_ns),
            rate: sample.rate,
            p50_ns: sample.p50_ns,
            p99_ns: sample.p99_ns,
            in_flight: sample.in_flight,
            generator_cores: sample.generator_cores,
            server_cores: sample.server_cores,
            ..self.progress
        };
        Some(&self.progress)
    }

    /// What was seen last.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(index: u64, completed: u64, latency_ns: u64) -> Look {
        let mut latency = empty();
        latency.saturating_record_n(latency_ns, completed);
        Look {
            records: Vec::new(),
            index,
            at_ns: index * 100_000_000,
            completed,
            failed: 1,
            latency,
            in_flight: 3,
            down_since_ns: None,
        }
    }

    #[test]
    fn a_sample_waits_for_every_thread() {
        let mut watch = Watch::new(2, CostSample::default());
        watch.look(0, &look(1, 100, 1_000_000));
        assert!(!watch.has_sample());
        watch.look(0, &look(2, 50, 1_000_000));
        watch.look(1, &look(1, 200, 3_000_000));
        assert!(watch.has_sample());
        let cost = CostSample { generator_cpu: Duration::from_millis(50), ..Default::default() };
        let progress = *watch.sample(cost).unwrap();
        assert_eq!((progress.completed, progress.failed, progress.in_flight), (300, 2, 6));
        assert!((progress.rate - 3000.0).abs() < 1e-6);
        assert!((progress.generator_cores - 0.5).abs() < 1e-9);
        assert!(watch.series[0].p50_ns.abs_diff(3_000_000) < 10_000);
        assert!(!watch.has_sample());
        watch.ended(1);
        assert!(watch.has_sample());
        assert!((watch.sample(cost).unwrap().rate - 500.0).abs() < 1e-6);
        watch.ended(0);
        assert!(watch.is_over());
    }

    #[test]
    fn the_server_is_down_when_no_thread_gets_through() {
        let mut watch = Watch::new(2, CostSample::default());
        let down = |since| Look { down_since_ns: since, ..look(1, 0, 0) };
        watch.look(0, &down(Some(5)));
        assert_eq!(watch.down_since_ns(), None);
        watch.look(1, &down(Some(9)));
        assert_eq!(watch.down_since_ns(), Some(9));
        watch.look(0, &down(None));
        assert_eq!(watch.down_since_ns(), None);
    }
}
