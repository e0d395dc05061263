//! Student's distribution, for whole degrees of freedom.

use std::f64::consts::FRAC_2_PI;

/// Bisections of a quantile: to more digits than a figure has.
const BISECTIONS_COUNT: usize = 60;

/// The probability of a value at least as far from 0 as `t`, with `freedom` degrees of freedom
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
pub fn two_sided(t: f64, freedom: usize) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // Powers of the cosine from 0 (even) or 1 (odd) to `freedom` - 2, in steps of two.
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    let mut power = usize::from(is_odd);
    while power + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    let inside = if is_odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    (1.0 - inside).max(0.0)
}

/// The value that is exceeded to either side with probability `chance` together.
pub fn quantile(chance: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1e9_f64);
    for _ in 0..BISECTIONS_COUNT {
        // Halves of the exponent first: the tails of few degrees of freedom are long.
        let middle = if high > 4.0 * (low + 1.0) {
            ((low + 1.0) * high).sqrt()
        } else {
            f64::midpoint(low, high)
        };
        if two_sided(middle, freedom) > chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_books() {
        for (chance, freedom, right) in [
            (0.05, 1, 12.706),
            (0.05, 2, 4.303),
            (0.05, 5, 2.571),
            (0.05, 6, 2.447),
            (0.01, 5, 4.032),
            (0.001, 11, 4.437),
            (0.2, 5, 1.476),
            (0.05, 30, 2.042),
            (0.05, 999, 1.962),
        ] {
            let found = quantile(chance, freedom);
            assert!((found - right).abs() < 6e-4, "{chance}, {freedom}: {found}");
            assert!((two_sided(found, freedom) - chance).abs() < 1e-9);
            assert!((two_sided(-found, freedom) - chance).abs() < 1e-9);
        }
        assert!((two_sided(0.0, 7) - 1.0).abs() < 1e-12);
    }
}
