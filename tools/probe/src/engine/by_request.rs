//! Results of each of the plan's requests, where there are few of them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::histograms::{add, empty, encoded, latencies};
use super::script::Script;
use crate::report::RequestReport;

/// More requests than this are not told apart: each has a histogram of 0.2 MB in every thread.
const TOLD_APART_COUNT: usize = 64;

/// One entry for each request of the plan, in its order; none where they are not told apart.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ByRequest(Vec<One>);

#[derive(Debug, Serialize, Deserialize)]
struct One {
    completed: u64,
    failed: u64,
    #[serde(with = "encoded")]
    latency: Histogram<u64>,
}

impl ByRequest {
    /// For so many requests. A single one is what everything else is about.
    pub(super) fn new(count: usize) -> Self {
        let count = if (2..=TOLD_APART_COUNT).contains(&count) { count } else { 0 };
        let one = || One { completed: 0, failed: 0, latency: empty() };
        Self(std::iter::repeat_with(one).take(count).collect())
    }

    /// A response to it is complete.
    #[inline]
    pub(super) fn answered(&mut self, request: u32, latency_ns: u64, is_right: bool) {
        let Some(one) = self.0.get_mut(request as usize) else { return };
        one.completed += 1;
        one.failed += u64::from(!is_right);
        one.latency.saturating_record(latency_ns);
    }

    /// It never got a response.
    pub(super) fn failed(&mut self, request: u32) {
        if let Some(one) = self.0.get_mut(request as usize) {
            one.failed += 1;
        }
    }

    /// Adds what another thread counted.
    pub(super) fn add(&mut self, other: &Self) {
        for (one, more) in self.0.iter_mut().zip(&other.0) {
            one.completed += more.completed;
            one.failed += more.failed;
            add(&mut one.latency, &more.latency);
        }
    }

    pub(super) fn report(self, script: &Script) -> Vec<RequestReport> {
        let named = self.0.into_iter().zip(&script.requests);
        named
            .map(|(one, request)| RequestReport {
                name: request.step.as_ref().map(|step| step.name.clone()),
                method: request.method.to_string(),
                target: request.target.clone(),
                completed: one.completed,
                failed: one.failed,
                latency: latencies(one.latency),
            })
            .collect()
    }
}
