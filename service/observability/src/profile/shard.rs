//! Measurements of one worker.

use std::time::Duration;

use bolide_eventloop::Measured;

use super::snapshot::{ProfileSnapshot, STAGE_BOUNDS_NS};
use super::stage::Stage;
use crate::metrics::{Counter, Histogram};

/// Time of each request of a measured turn, in nanoseconds, by [`Stage::ALL`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares(pub(crate) [u64; Stage::ALL.len()]);

impl Shares {
    /// None when no request began in the turn, or when it was disturbed.
    pub(crate) fn of(measured: &Measured) -> Option<Self> {
        let requests = u64::from(measured.units);
        let of_stage = |stage: Stage| measured.spent_ns[stage.metered().index()] / requests;
        (requests > 0 && !measured.is_disturbed).then(|| Self(Stage::ALL.map(of_stage)))
    }
}

/// One worker's sampled turns. It is the only writer.
#[derive(Debug, Default)]
pub struct ProfileShard {
    turns: Counter,
    dropped: Counter,
    requests: Counter,
    cpu_ns: Counter,
    reading_ns: Counter,
    stages: [StageShard; Stage::ALL.len()],
}

#[derive(Debug, Default)]
struct StageShard {
    spent_ns: Counter,
    per_request: Histogram,
}

impl ProfileShard {
    /// A sampled turn has ended.
    pub fn add(&self, measured: &Measured) {
        if measured.is_disturbed {
            return self.dropped.add(1);
        }
        let requests = u64::from(measured.units);
        self.turns.add(1);
        self.requests.add(requests);
        self.cpu_ns.add(measured.cpu_ns);
        self.reading_ns.add(measured.reading_ns);
        for (stage, shard) in Stage::ALL.iter().zip(&self.stages) {
            let spent_ns = measured.spent_ns[stage.metered().index()];
            shard.spent_ns.add(spent_ns);
            if requests > 0 {
                shard.per_request.record_shares(spent_ns, requests, &STAGE_BOUNDS_NS);
            }
        }
    }

    pub(super) fn add_to(&self, sum: &mut ProfileSnapshot) {
        sum.turns += self.turns.get();
        sum.dropped += self.dropped.get();
        sum.requests += self.requests.get();
        sum.cpu += Duration::from_nanos(self.cpu_ns.get());
        sum.reading += Duration::from_nanos(self.reading_ns.get());
        for (sum, shard) in sum.stages.iter_mut().zip(&self.stages) {
            sum.spent += Duration::from_nanos(shard.spent_ns.get());
            shard.per_request.add_to(&mut sum.per_request);
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_eventloop::STAGES_COUNT;

    use super::*;

    fn measured(units: u32) -> Measured {
        let mut spent_ns = [0; STAGES_COUNT];
        spent_ns[Stage::Parse.metered().index()] = 5000;
        Measured { spent_ns, units, cpu_ns: 5100, reading_ns: 100, is_disturbed: false }
    }

    fn snapshot(shard: &ProfileShard) -> ProfileSnapshot {
        let mut sum = ProfileSnapshot::default();
        shard.add_to(&mut sum);
        sum
    }

    #[test]
    fn a_batch_is_divided_by_its_requests() {
        let shard = ProfileShard::default();
        shard.add(&measured(10));
        let parse = &snapshot(&shard).stages[2];
        assert_eq!((parse.stage, parse.spent), (Stage::Parse, Duration::from_nanos(5000)));
        // Ten requests of 500 ns.
        let at = STAGE_BOUNDS_NS.iter().position(|bound| *bound == 500).unwrap();
        assert_eq!((parse.per_request.buckets[at], parse.per_request.count()), (10, 10));
        assert_eq!(parse.per_request.sum, Duration::from_nanos(5000));
    }

    #[test]
    fn a_turn_without_requests_counts_for_the_stages_and_in_no_histogram() {
        let shard = ProfileShard::default();
        shard.add(&measured(0));
        let sum = snapshot(&shard);
        assert_eq!((sum.turns, sum.requests), (1, 0));
        assert_eq!(sum.stages[2].spent, Duration::from_nanos(5000));
        assert_eq!(sum.stages[2].per_request.count(), 0);
    }

    #[test]
    fn a_disturbed_turn_is_only_counted() {
        let shard = ProfileShard::default();
        shard.add(&Measured { is_disturbed: true, ..measured(1) });
        let sum = snapshot(&shard);
        assert_eq!(sum, ProfileSnapshot { dropped: 1, ..ProfileSnapshot::default() });
    }
}
