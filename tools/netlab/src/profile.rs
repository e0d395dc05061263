//! Networks by name: round trip and rates of typical accesses, each also with a bloated queue.

use std::time::Duration;

use crate::shape::{Queue, Shape};

/// A network by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The round trip.
    pub rtt: Duration,
    /// Download, bits per second.
    pub down: Option<u64>,
    /// Upload, bits per second.
    pub up: Option<u64>,
    /// The queue of the variant `-bloated`, instead of 50 ms.
    pub bloated: Duration,
}

const fn profile(
    name: &'static str,
    rtt_ms: u64,
    down_kbit: u64,
    up_kbit: u64,
    bloated_ms: u64,
) -> Profile {
    Profile {
        name,
        rtt: Duration::from_millis(rtt_ms),
        down: if down_kbit == 0 { None } else { Some(down_kbit * 1000) },
        up: if up_kbit == 0 { None } else { Some(up_kbit * 1000) },
        bloated: Duration::from_millis(bloated_ms),
    }
}

/// All of them.
pub const PROFILES: [Profile; 9] = [
    profile("2g", 600, 200, 50, 1000),
    profile("3g", 200, 3_000, 1_000, 500),
    profile("4g", 100, 30_000, 10_000, 500),
    profile("5g", 20, 100_000, 30_000, 500),
    profile("poor-mobile", 150, 5_000, 1_000, 500),
    profile("broadband", 50, 100_000, 20_000, 1000),
    profile("ftth-100", 10, 100_000, 50_000, 500),
    profile("ftth-1g", 10, 1_000_000, 500_000, 500),
    profile("server", 2, 0, 0, 500),
];

/// The shapes, download and upload, of a profile such as `4g` or `4g-bloated`.
///
/// # Errors
///
/// If there is none of that name; all names are in the sentence.
pub fn shapes(name: &str) -> Result<(Shape, Shape), String> {
    let (plain, bloated) = match name.strip_suffix("-bloated") {
        Some(plain) => (plain, true),
        None => (name, false),
    };
    let found = PROFILES.iter().find(|profile| profile.name == plain);
    // What has no queue can't have a bloated one.
    let found = found.filter(|profile| !bloated || profile.down.is_some());
    let Some(profile) = found else {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        return Err(format!(
            "no profile `{name}`; use {}; all except `server` also with `-bloated`",
            names.join(", ")
        ));
    };
    let queue = if bloated { Queue::Time(profile.bloated) } else { Queue::default() };
    let shape = |rate| Shape { rate, queue, delay: profile.rtt / 2, ..Shape::default() };
    Ok((shape(profile.down), shape(profile.up)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_its_round_trip_rates_and_queue() {
        let (down, up) = shapes("4g").unwrap();
        assert_eq!(down.delay + up.delay, Duration::from_millis(100));
        assert_eq!((down.rate, up.rate), (Some(30_000_000), Some(10_000_000)));
        let (down, _) = shapes("2g-bloated").unwrap();
        assert_eq!(down.queue, Queue::Time(Duration::from_secs(1)));
        assert_eq!(shapes("server").unwrap().0.rate, None);
    }

    #[test]
    fn an_unknown_profile_names_all() {
        for wrong in ["6g", "server-bloated", "-bloated", ""] {
            let error = shapes(wrong).unwrap_err();
            assert!(error.contains("ftth-1g") && error.contains(wrong), "{error}");
        }
    }
}
