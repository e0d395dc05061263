//! View of a phase while it runs: from looks to samples.

use std::collections::BTreeMap;
use std::time::Duration;

use super::histograms::{add, empty};
use super::messages::Look;
use crate::progress::Progress;
use crate::report::Sample;

/// An interval shorter than this is too short for a rate, in nanoseconds (20 ms).
const LEAST_NS: u64 = 20_000_000;

/// Adds up the looks of several sources, threads or engines, by their intervals.
#[derive(Debug)]
pub struct Watch {
    intervals: BTreeMap<u64, Look>,
    /// The last interval that each source spoke of; `None` once its phase is over.
    last: Vec<Option<u64>>,
    in_flight: Vec<u64>,
    /// Since when each source can't make a connection.
    down: Vec<Option<u64>>,
}

impl Watch {
    /// Of so many sources.
    pub fn new(sources: usize) -> Self {
        Self {
            intervals: BTreeMap::new(),
            last: vec![Some(0); sources],
            in_flight: vec![0; sources],
            down: vec![None; sources],
        }
    }

    /// A source has looked.
    pub fn look(&mut self, source: usize, look: &Look) {
        if let Some(last) = &mut self.last[source] {
            *last = look.index;
        }
        self.in_flight[source] = look.in_flight;
        self.down[source] = look.down_since_ns;
        let in_flight = self.in_flight.iter().sum();
        let added = self.intervals.entry(look.index).or_insert_with(|| Look {
            index: look.index,
            at_ns: 0,
            completed: 0,
            failures: BTreeMap::new(),
            latency: empty(),
            in_flight: 0,
            generator_cpu_ns: 0,
            server_cpu_ns: None,
            records: Vec::new(),
            down_since_ns: None,
        });
        added.at_ns = added.at_ns.max(look.at_ns);
        added.completed += look.completed;
        for (failure, count) in &look.failures {
            *added.failures.entry(*failure).or_default() += count;
        }
        added.in_flight = in_flight;
        added.generator_cpu_ns += look.generator_cpu_ns;
        // There is one server, however many watch it.
        added.server_cpu_ns = added.server_cpu_ns.max(look.server_cpu_ns);
        add(&mut added.latency, &look.latency);
    }

    /// The phase is over for a source.
    pub fn ended(&mut self, source: usize) {
        self.last[source] = None;
        self.in_flight[source] = 0;
    }

    /// Returns whether it is over for all of them.
    pub fn is_over(&self) -> bool {
        self.last.iter().all(Option::is_none)
    }

    /// Since when no source can make a connection.
    pub(super) fn down_since_ns(&self) -> Option<u64> {
        self.down.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// The sum of the next interval that every source has spoken of.
    pub fn next_complete(&mut self) -> Option<Look> {
        let said = self.last.iter().flatten().min().copied().unwrap_or(u64::MAX);
        let first = self.intervals.first_entry().filter(|first| *first.key() <= said)?;
        Some(first.remove())
    }
}

/// Makes samples of looks.
#[derive(Debug, Default)]
pub struct Series {
    samples: Vec<Sample>,
    progress: Progress,
    /// Up to when samples were made.
    sampled_ns: u64,
    /// CPU time since the sample before: the generator's, and the server's.
    cpu_ns: (u64, Option<u64>),
}

impl Series {
    /// Another interval is complete. `None`: it is too short for a sample.
    pub fn add(&mut self, look: &Look) -> Option<&Progress> {
        self.progress.completed += look.completed;
        for (failure, count) in &look.failures {
            *self.progress.failures.entry(*failure).or_default() += count;
        }
        self.cpu_ns.0 += look.generator_cpu_ns;
        if let Some(ns) = look.server_cpu_ns {
            *self.cpu_ns.1.get_or_insert_default() += ns;
        }
        let passed_ns = look.at_ns.saturating_sub(self.sampled_ns);
        if passed_ns < LEAST_NS {
            return None;
        }
        self.sampled_ns = look.at_ns;
        let passed = passed_ns as f64;
        let (generator_ns, server_ns) = std::mem::take(&mut self.cpu_ns);
        let sample = Sample {
            at_ns: look.at_ns,
            rate: look.completed as f64 * 1e9 / passed,
            p50_ns: look.latency.value_at_quantile(0.5),
            p99_ns: look.latency.value_at_quantile(0.99),
            failed: look.failures.values().sum(),
            in_flight: look.in_flight,
            generator_cores: generator_ns as f64 / passed,
            server_cores: server_ns.map(|ns| ns as f64 / passed),
        };
        self.samples.push(sample);
        self.progress = Progress {
            elapsed: Duration::from_nanos(look.at_ns),
            rate: sample.rate,
            p50_ns: sample.p50_ns,
            p99_ns: sample.p99_ns,
            in_flight: sample.in_flight,
            generator_cores: sample.generator_cores,
            server_cores: sample.server_cores,
            ..std::mem::take(&mut self.progress)
        };
        Some(&self.progress)
    }

    /// Returns what was seen last.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// All samples, in order.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Failure;

    fn look(index: u64, completed: u64, latency_ns: u64) -> Look {
        let mut latency = empty();
        latency.saturating_record_n(latency_ns, completed);
        Look {
            records: Vec::new(),
            index,
            at_ns: index * 100_000_000,
            completed,
            failures: BTreeMap::from([(Failure::Timeout, 1)]),
            latency,
            in_flight: 3,
            generator_cpu_ns: 25_000_000,
            server_cpu_ns: None,
            down_since_ns: None,
        }
    }

    #[test]
    fn a_sample_waits_for_every_thread() {
        let (mut watch, mut series) = (Watch::new(2), Series::default());
        watch.look(0, &look(1, 100, 1_000_000));
        assert!(watch.next_complete().is_none());
        watch.look(0, &look(2, 50, 1_000_000));
        watch.look(1, &look(1, 200, 3_000_000));
        let progress = series.add(&watch.next_complete().unwrap()).unwrap().clone();
        assert_eq!((progress.completed, progress.failed(), progress.in_flight), (300, 2, 6));
        assert!((progress.rate - 3000.0).abs() < 1e-6);
        assert!((progress.generator_cores - 0.5).abs() < 1e-9);
        assert!(watch.next_complete().is_none());
        watch.ended(1);
        let last = series.add(&watch.next_complete().unwrap()).unwrap().clone();
        assert!((last.rate - 500.0).abs() < 1e-6);
        assert!((last.generator_cores - 0.25).abs() < 1e-9);
        let samples = series.into_samples();
        assert!(samples[0].p50_ns.abs_diff(3_000_000) < 10_000 && samples.len() == 2);
        watch.ended(0);
        assert!(watch.is_over());
    }

    #[test]
    fn the_server_is_down_when_no_thread_gets_through() {
        let mut watch = Watch::new(2);
        let down = |since| Look { down_since_ns: since, ..look(1, 0, 0) };
        watch.look(0, &down(Some(5)));
        assert_eq!(watch.down_since_ns(), None);
        watch.look(1, &down(Some(9)));
        assert_eq!(watch.down_since_ns(), Some(9));
        watch.look(0, &down(None));
        assert_eq!(watch.down_since_ns(), None);
    }
}
