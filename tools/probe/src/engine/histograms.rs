//! Durations as they are counted, and as they are reported.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};

use crate::report::Latencies;

/// The shortest duration that is told from others, in nanoseconds (1 µs).
const LEAST_NS: u64 = 1_000;

/// The longest duration that is counted as what it is, in nanoseconds (10 min).
const GREATEST_NS: u64 = 600_000_000_000;

/// Decimal digits that are kept.
const DIGITS: u8 = 3;

/// The percentiles that are reported, by their names.
const PERCENTILES: [(&str, f64); 8] = [
    ("p50", 50.0),
    ("p75", 75.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
    ("p99.999", 99.999),
];

/// An empty histogram.
pub(super) fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(LEAST_NS, GREATEST_NS, DIGITS).expect("the bounds are in order")
}

/// Adds one of our histograms to another.
pub(super) fn add(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    if !from.is_empty() {
        to.add(from).expect("all histograms have the same bounds");
    }
}

/// Histograms between engines: HdrHistogram V2 in base64. Only one with our bounds is read, so that its size is bounded.
pub(super) mod encoded {
    use super::{DIGITS, Deserializer, GREATEST_NS, Histogram, LEAST_NS, STANDARD};
    use super::{Serializer, V2Serializer};
    use base64::Engine as _;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer as From, Serializer as To};

    /// Size of the header before the counts: cookie, length, offset, digits, bounds, ratio.
    const HEAD_BYTES: usize = 40;

    pub(in crate::engine) fn serialize<S: To>(
        histogram: &Histogram<u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(histogram, &mut bytes)
            .expect("memory takes what is written to it");
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(in crate::engine) fn deserialize<'a, D: From<'a>>(
        from: D,
    ) -> Result<Histogram<u64>, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        if !has_our_bounds(&bytes) {
            return Err(D::Error::custom("a histogram with other bounds than ours"));
        }
        let decoded = Deserializer::new().deserialize(&mut &bytes[..]);
        decoded.map_err(|error| D::Error::custom(format!("a histogram is broken: {error}")))
    }

    fn has_our_bounds(bytes: &[u8]) -> bool {
        let digits_and_bounds = bytes.get(12..HEAD_BYTES - 8);
        let ours = [
            &u32::from(DIGITS).to_be_bytes()[..],
            &LEAST_NS.to_be_bytes()[..],
            &GREATEST_NS.to_be_bytes()[..],
        ];
        digits_and_bounds == Some(&ours.concat()[..])
    }
}

/// Returns what is reported of a histogram.
pub(super) fn latencies(histogram: Histogram<u64>) -> Latencies {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&histogram, &mut bytes)
        .expect("memory takes what is written to it");
    let percentiles_ns: BTreeMap<_, _> = PERCENTILES
        .iter()
        .map(|(name, percent)| ((*name).to_owned(), histogram.value_at_percentile(*percent)))
        .collect();
    Latencies {
        count: histogram.len(),
        mean_ns: if histogram.is_empty() { 0.0 } else { histogram.mean() },
        deviation_ns: if histogram.is_empty() { 0.0 } else { histogram.stdev() },
        min_ns: if histogram.is_empty() { 0 } else { histogram.min() },
        percentiles_ns,
        // Not `max`, which takes what is shorter than can be told for nothing at all.
        max_ns: histogram.value_at_quantile(1.0),
        hdr_v2: STANDARD.encode(bytes),
        histogram: Some(histogram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn threads_merged_equal_one_thread(
            values in proptest::collection::vec((0_usize..4, 0_u64..2_000_000_000_000), 0..400)
        ) {
            let mut alone = empty();
            let mut threads = [empty(), empty(), empty(), empty()];
            for (thread, value) in values {
                alone.saturating_record(value);
                threads[thread].saturating_record(value);
            }
            let mut merged = empty();
            for thread in &threads {
                add(&mut merged, thread);
            }
            prop_assert_eq!(latencies(merged), latencies(alone));
        }
    }

    #[test]
    fn what_is_reported_can_be_read_back() {
        let mut histogram = empty();
        for micros in 1..=10_000 {
            histogram.saturating_record(micros * 1000);
        }
        let reported = latencies(histogram.clone());
        assert_eq!(reported.count, 10_000);
        let p99 = reported.percentiles_ns["p99"] as f64;
        assert!((p99 / 9.9e6 - 1.0).abs() < 0.001, "{p99}");
        let bytes = STANDARD.decode(reported.hdr_v2).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(back, histogram);
    }

    #[test]
    fn no_percentile_is_above_the_maximum() {
        for shorter_than_can_be_told in [0, 100] {
            let mut histogram = empty();
            histogram.saturating_record(shorter_than_can_be_told);
            let reported = latencies(histogram);
            assert_eq!(reported.percentiles_ns["p50"], reported.max_ns);
            assert!(reported.mean_ns <= reported.max_ns as f64, "{reported:?}");
        }
    }

    #[test]
    fn nothing_is_reported_as_zeros() {
        let reported = latencies(empty());
        assert_eq!((reported.count, reported.min_ns, reported.max_ns), (0, 0, 0));
        assert_eq!((reported.mean_ns, reported.deviation_ns), (0.0, 0.0));
    }
}
