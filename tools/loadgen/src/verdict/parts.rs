//! Parts of a run that could not keep up: each is named, for the sum hides it.

use bolide_probe::plan::Load;
use bolide_probe::report::{Bound, PartPhase, PhaseReport, Verdict};

use super::facts::{duration, p99, percent};
use super::{FULL, PACING_LATE_NS};

/// The verdict on the sum, with what the parts add to it.
pub(super) fn with_parts(report: &PhaseReport, mut verdict: Verdict) -> Verdict {
    let is_open = matches!(report.phase.load, Load::Open { .. });
    let behind: Vec<String> =
        report.course.parts.iter().filter_map(|part| why_behind(part, is_open)).collect();
    if !behind.is_empty() {
        verdict.bound = Bound::Client;
        verdict.evidence.splice(0..0, behind);
    }
    verdict
}

/// Why a part's own figures are not the server's doing.
fn why_behind(part: &PartPhase, is_open: bool) -> Option<String> {
    let (number, late_ns) = (part.part, p99(&part.pacing));
    let busy = part.generator.busiest_thread;
    if is_open {
        // An open loop may spin while it waits: its CPU says nothing, its pacing does.
        (late_ns > PACING_LATE_NS).then(|| {
            let late = duration(late_ns);
            format!("Part {number} was slow: its clock was late by {late} (p99), which latencies include.")
        })
    } else {
        (busy >= FULL).then(|| {
            let busy = percent(busy.min(1.0));
            format!("Part {number} was short of CPU: its busiest thread was {busy} busy.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::fabricated::{OPEN_1000, cost, flat, latencies, quiet};

    fn part(number: usize, late_ns: u64, busy: f64) -> PartPhase {
        let whole = quiet(Load::Closed);
        PartPhase {
            part: number,
            elapsed_ns: whole.elapsed_ns,
            counts: whole.counts,
            latency: whole.times.latency,
            lag: latencies(&[]),
            pacing: latencies(&[late_ns]),
            round_trip_ns: 0,
            generator: cost(busy, busy),
        }
    }

    #[test]
    fn a_part_that_lags_is_named_and_the_run_is_client_bound() {
        let mut report = quiet(OPEN_1000);
        assert_eq!(judge(&report, None).bound, Bound::Rate);
        report.course.parts = vec![part(1, 100_000, 1.0), part(2, 90_000, 1.0)];
        assert_eq!(judge(&report, None).bound, Bound::Rate);
        report.course.parts.push(part(3, 12_000_000, 0.2));
        let verdict = judge(&report, None);
        assert_eq!(verdict.bound, Bound::Client);
        assert!(verdict.evidence[0].starts_with("Part 3 was slow: its clock was late by 12"));
        assert!(!verdict.evidence.iter().any(|one| one.contains("Part 1")));
    }

    #[test]
    fn the_first_byte_is_compared_with_the_paths_of_all_parts() {
        let mut report = quiet(Load::Closed);
        let path = |number, round_trip_ns| PartPhase { round_trip_ns, ..part(number, 0, 0.1) };
        report.course.parts = vec![path(1, 10_000_000), path(2, 90_000_000)];
        report.times.connect = flat(10, 10_000_000);
        report.times.sent_to_first_byte_mean_ns = 50_600_000.0;
        let verdict = judge(&report, None);
        assert_eq!(verdict.bound, Bound::Network, "{verdict:?}");
        assert!(verdict.evidence[0].starts_with("A round trip takes 50.0 ms"), "{verdict:?}");
        report.times.sent_to_first_byte_mean_ns = 150_000_000.0;
        assert_eq!(judge(&report, None).bound, Bound::Server);
    }

    #[test]
    fn a_part_without_cpu_is_named_in_a_closed_loop() {
        let mut report = quiet(Load::Closed);
        report.course.parts = vec![part(1, 0, 0.3), part(2, 0, 0.99)];
        let verdict = judge(&report, Some(2));
        assert_eq!(verdict.bound, Bound::Client);
        assert_eq!(
            verdict.evidence[0],
            "Part 2 was short of CPU: its busiest thread was 99.0 % busy."
        );
    }
}
