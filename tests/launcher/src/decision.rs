//! One decision from measurements that a busy machine may blur.

/// How likely a measurement is right, at least, where what is tested is right: a machine on which fewer are can't be tested on.
const RIGHT_CHANCE: f64 = 0.6;

/// How likely it is that what is wrong passes, at most.
const WRONG_PASSES: f64 = 0.05;

/// How likely it is that what is right fails, at most.
const RIGHT_FAILS: f64 = 0.001;

/// Repeats `measure` until its results decide: Wald's sequential probability ratio test. `wrong_chance` is how likely a measurement is
/// right where what is tested is wrong.
///
/// What is wrong passes at most once in 20 times. What is right fails at most once in 1000 times, on a machine on which at least 6 of 10
/// measurements are right. With a `wrong_chance` of 0.1, two right ones or nine wrong ones in a row decide.
///
/// # Errors
///
/// What the wrong measurements said.
pub fn decide<E>(
    wrong_chance: f64,
    mut measure: impl FnMut() -> Result<(), E>,
) -> Result<(), Vec<E>> {
    let passes_at = ((1.0 - RIGHT_FAILS) / WRONG_PASSES).ln();
    let fails_at = (RIGHT_FAILS / (1.0 - WRONG_PASSES)).ln();
    let mut evidence = 0.0;
    let mut wrong = Vec::new();
    while evidence > fails_at {
        match measure() {
            Ok(()) => evidence += (RIGHT_CHANCE / wrong_chance).ln(),
            Err(said) => {
                wrong.push(said);
                evidence += ((1.0 - RIGHT_CHANCE) / (1.0 - wrong_chance)).ln();
            }
        }
        if evidence >= passes_at {
            return Ok(());
        }
    }
    Err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often of 100,000 times it passes where so many of a thousand measurements are right.
    fn passes(right_in_thousand: u64) -> u32 {
        let mut random = fastrand::Rng::with_seed(1);
        let mut measure = || if random.u64(..1000) < right_in_thousand { Ok(()) } else { Err(()) };
        (0..100_000).map(|_| u32::from(decide(0.1, &mut measure).is_ok())).sum()
    }

    #[test]
    fn what_is_wrong_seldom_passes_and_what_is_right_hardly_ever_fails() {
        assert_eq!(passes(0), 0);
        assert!(passes(100) <= 5_000, "{}", passes(100));
        assert!(passes(600) >= 99_900, "{}", passes(600));
        assert!(passes(900) >= 99_999, "{}", passes(900));
        assert_eq!(passes(1000), 100_000);
    }

    #[test]
    fn few_measurements_decide_where_all_are_the_same() {
        let mut count = 0;
        let mut counted = |result: Result<(), ()>, wrong_chance| {
            count = 0;
            let _ = decide(wrong_chance, || {
                count += 1;
                result
            });
            count
        };
        assert_eq!((counted(Ok(()), 0.1), counted(Err(()), 0.1)), (2, 9));
        assert_eq!((counted(Ok(()), 0.001), counted(Err(()), 0.001)), (1, 8));
    }
}
