//! How far two cores are from each other.
//!
//! On a virtual machine the host decides where cores are, and moves them. Server and generator pass
//! every request through memory that both touch, and the kernel's share of a request costs several
//! times as much when a cache line has a long way between them. So runs can be compared only where
//! the way was equally long.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::pin_this_thread;

/// Round trips of one sample: few, so that one without a disturbance is found.
const TRIPS_COUNT: u32 = 100;

/// Samples, of which the shortest is taken.
const SAMPLES_COUNT: usize = 20;

/// Longest that looking may take, whatever else runs on these cores.
const TIME_MAX: Duration = Duration::from_millis(20);

/// Two distances are alike below this ratio: near and far cores differ by three and more.
const ALIKE: f64 = 1.5;

/// Returns whether runs with these distances, before and after each, found the cores equally far apart all
/// the time; true where it was not looked at.
pub(crate) fn are_alike(runs: [Option<[f64; 2]>; 2]) -> bool {
    let distances: Vec<f64> = runs.into_iter().flatten().flatten().collect();
    let least = distances.iter().copied().fold(f64::INFINITY, f64::min);
    distances.iter().all(|distance| *distance < least * ALIKE)
}

/// How long a cache line takes from `here` to `there` and back, in ns; `None` where they are the
/// same core, or nothing came back in time.
pub(crate) fn distance_ns(here: usize, there: usize) -> Option<f64> {
    if here == there {
        return None;
    }
    let line = AtomicU32::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| answer(there, &line, &is_over));
        let asked = scope.spawn(|| {
            let found = ask(here, &line);
            is_over.store(true, Ordering::Release);
            found
        });
        asked.join().ok().flatten()
    })
}

/// Makes every odd number even, as long as there may be more.
fn answer(core: usize, line: &AtomicU32, is_over: &AtomicBool) {
    pin_this_thread(&[core]);
    while !is_over.load(Ordering::Acquire) {
        let value = line.load(Ordering::Acquire);
        if value % 2 == 1 {
            line.store(value + 1, Ordering::Release);
        }
    }
}

/// Writes odd numbers and waits for even ones.
fn ask(core: usize, line: &AtomicU32) -> Option<f64> {
    pin_this_thread(&[core]);
    let end = Instant::now() + TIME_MAX;
    let mut value = 0;
    let mut least: Option<Duration> = None;
    for _ in 0..SAMPLES_COUNT {
        let begun = Instant::now();
        for _ in 0..TRIPS_COUNT {
            line.store(value + 1, Ordering::Release);
            value += 2;
            let mut looks = 0_u32;
            while line.load(Ordering::Acquire) != value {
                looks += 1;
                // The clock is asked seldom: it takes as long as a trip.
                if looks.is_multiple_of(1024) && Instant::now() > end {
                    return least.map(per_trip);
                }
            }
        }
        let took = begun.elapsed();
        least = Some(least.map_or(took, |least| least.min(took)));
    }
    least.map(per_trip)
}

fn per_trip(sample: Duration) -> f64 {
    sample.as_secs_f64() * 1e9 / f64::from(TRIPS_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::available;

    #[test]
    fn a_core_is_not_far_from_itself_and_others_have_a_distance() {
        assert_eq!(distance_ns(0, 0), None);
        let cores = available();
        if let [here, there, ..] = cores[..] {
            // Other tests run on these cores: nothing within the time is a response, too.
            if let Some(found) = distance_ns(here, there) {
                assert!(found > 1.0 && found < 2e5, "{found} ns");
            }
        }
    }

    #[test]
    fn runs_are_alike_unless_the_cores_moved() {
        assert!(are_alike([Some([74.0, 80.0]), Some([90.0, 75.0])]));
        assert!(!are_alike([Some([74.0, 80.0]), Some([90.0, 350.0])]));
        assert!(!are_alike([Some([350.0, 350.0]), Some([74.0, 74.0])]));
        assert!(are_alike([Some([350.0, 350.0]), None]));
    }

    #[test]
    fn a_line_that_nobody_answers_ends_in_time() {
        let begun = Instant::now();
        assert_eq!(ask(0, &AtomicU32::new(0)), None);
        assert!(begun.elapsed() >= TIME_MAX);
    }
}
