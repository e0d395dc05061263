//! Percentiles of what was probed.

use serde::Serialize;

/// How long probes took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50_us: f64,
    /// Of a hundred, ninety-five took no longer.
    pub p95_us: f64,
    /// Of a hundred, ninety-nine.
    pub p99_us: f64,
    /// Probes that were answered.
    pub count: u64,
}

/// The percentiles of these times in nanoseconds, by nearest rank: each is a time that occurred. `None`
/// without any.
pub fn percentiles(times_ns: &[u64]) -> Option<Percentiles> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    let at = |share: f64| {
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).map(|ns| *ns as f64 / 1e3)
    };
    Some(Percentiles {
        p50_us: at(0.5)?,
        p95_us: at(0.95)?,
        p99_us: at(0.99)?,
        count: sorted.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<u64> = (1..=100).rev().map(|n| n * 1000).collect();
        let found = percentiles(&times).unwrap();
        assert_eq!((found.p50_us, found.p95_us, found.p99_us), (50.0, 95.0, 99.0));
        assert_eq!(found.count, 100);
        let one = percentiles(&[7000]).unwrap();
        assert_eq!((one.p50_us, one.p99_us), (7.0, 7.0));
        assert_eq!(percentiles(&[]), None);
    }
}
