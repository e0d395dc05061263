//! Outputs of a measurement.

pub mod live;
pub mod text;

/// Bits per second with their unit: `12.3 Gbit/s`.
pub fn speed(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        value if value >= 1e9 => (value / 1e9, "Gbit/s"),
        value if value >= 1e6 => (value / 1e6, "Mbit/s"),
        value => (value / 1e3, "kbit/s"),
    };
    let digits = if value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_carry_three_digits_and_a_unit() {
        for (bits, text) in [
            (0.0, "0.00 kbit/s"),
            (1_500.0, "1.50 kbit/s"),
            (12_345_678.0, "12.3 Mbit/s"),
            (999_000_000.0, "999 Mbit/s"),
            (40_100_000_000.0, "40.1 Gbit/s"),
        ] {
            assert_eq!(speed(bits), text);
        }
    }
}
