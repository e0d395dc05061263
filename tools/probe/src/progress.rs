//! Progress of a phase while it runs, and the engine that carries phases out.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::Phase;
use crate::report::{Failure, PartsReport, PhaseReport};

/// A look at a phase that runs.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Since the phase began, its warm-up included.
    pub elapsed: Duration,
    /// Responses per second since the look before.
    pub rate: f64,
    /// Median latency of the responses since the look before, in nanoseconds.
    pub p50_ns: u64,
    /// Their 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests answered since the phase began.
    pub completed: u64,
    /// Requests failed since the phase began, by what was wrong.
    pub failures: BTreeMap<Failure, u64>,
    /// Cores that the generator used since the look before.
    pub generator_cores: f64,
    /// Cores that the server used, where it is watched.
    pub server_cores: Option<f64>,
    /// Parts of the run that are there, and all of them, where several carry it out.
    pub parts: Option<(usize, usize)>,
}

impl Progress {
    /// Requests failed since the phase began.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// Record of one request that counts in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was complete or had failed, after the start of its phase with the warm-up, in nanoseconds.
    pub at_ns: u64,
    /// From its start (closed loop) or its intended start (open loop) until then.
    pub latency_ns: u64,
    /// Which request of the plan it was, from 0.
    pub request: u32,
    /// The status of its response; 0: none came, or messages have none.
    pub status: u16,
    /// Content of the response, in bytes.
    pub bytes: u64,
    /// Failure, if any.
    pub failure: Option<Failure>,
}

/// Takes the records of a phase, by its name.
pub type RecordSink = Box<dyn FnMut(&str, &[Record])>;

/// Order to a phase that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Go on.
    Continue,
    /// End now, with what was done.
    Stop,
}

/// Carries phases out, one after the other, on connections that stay open between them.
pub trait Runner {
    /// Runs one phase. `observer` is called every 100 ms or so, on the calling thread.
    fn run(&mut self, phase: &Phase, observer: &mut dyn FnMut(&Progress) -> Control)
    -> PhaseReport;

    /// Records of requests go there from now on, every 100 ms, if the plan asks for any.
    fn record_to(&mut self, sink: RecordSink) {
        drop(sink);
    }

    /// Returns what was spoken: `http/1.1`, `h2c`, `h2`; empty until something was.
    fn protocol(&self) -> String;

    /// Returns what TLS came to, over TLS.
    fn tls(&self) -> Option<crate::report::TlsReport>;

    /// When the server went away for good, after the start of the run, in nanoseconds.
    fn server_died_after_ns(&self) -> Option<u64>;

    /// Returns whether the run has to end: too many of its parts are lost.
    fn is_over(&self) -> bool {
        false
    }

    /// The run is over. Returns what is known of its parts, where several carry it out.
    fn finish(&mut self) -> Option<PartsReport> {
        None
    }
}
