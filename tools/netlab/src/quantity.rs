//! Rates, times and shares as people write them, for one direction or for both.

use std::time::Duration;

/// Download, then upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Both<T> {
    /// Server to client.
    pub down: T,
    /// Client to server.
    pub up: T,
}

/// Reads `VALUE` for both directions, or `DOWN/UP`.
///
/// # Errors
///
/// What `read` says about the part that it can't read.
pub fn both<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Both<T>, String> {
    match text.split_once('/') {
        Some((down, up)) => Ok(Both { down: read(down)?, up: read(up)? }),
        None => read(text).map(|value| Both { down: value.clone(), up: value }),
    }
}

const RATES: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
const TIMES: [(&str, f64); 3] = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];
const SIZES: [(&str, f64); 4] =
    [("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0), ("KiB", 1024.0), ("B", 1.0)];

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|digits| (digits, *factor)))?;
    let number: f64 = digits.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

/// Reads a rate in bits per second: `50kbit`, `30mbit`, `1.5gbit`.
///
/// # Errors
///
/// If it is none between 1 kbit and 100 Gbit.
pub fn rate(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    match with_unit(lower.trim_end_matches("/s"), &RATES) {
        Some(rate) if (1e3..=1e11).contains(&rate) => Ok(rate.round() as u64),
        _ => Err(format!("`{text}` is not a rate: use 1kbit to 100gbit, such as 20mbit")),
    }
}

/// Reads a time: `20ms`, `500us`, `1s`.
///
/// # Errors
///
/// If it is none up to 60 s.
pub fn time(text: &str) -> Result<Duration, String> {
    match with_unit(text, &TIMES) {
        Some(seconds) if seconds <= 60.0 => Ok(Duration::from_secs_f64(seconds)),
        _ if text.trim() == "0" => Ok(Duration::ZERO),
        _ => Err(format!("`{text}` is not a time: use 0 to 60s, such as 20ms or 1.5s")),
    }
}

/// Reads a share as a fraction of one: `1%`, `0.1%`, `0.01`.
///
/// # Errors
///
/// If it is none from 0 to 100 %.
pub fn share(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits, 0.01),
        None => (text, 1.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number * factor)) => Ok(number * factor),
        _ => Err(format!("`{text}` is not a proportion: use 0% to 100%, such as 1%")),
    }
}

/// Reads a number of bytes: `4096`, `64KiB`, `1GiB`.
///
/// # Errors
///
/// If it is none up to 1 TiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    let plain = text.trim().parse::<f64>().ok();
    match plain.or_else(|| with_unit(text, &SIZES)) {
        Some(bytes) if (0.0..=1_099_511_627_776.0).contains(&bytes) => Ok(bytes as u64),
        _ => Err(format!("`{text}` is not a size: use 0 to 1024GiB, such as 64KiB")),
    }
}

/// A rate with its unit.
#[must_use]
pub fn shown_rate(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        rate if rate >= 1e9 => (rate / 1e9, "Gbit/s"),
        rate if rate >= 1e6 => (rate / 1e6, "Mbit/s"),
        rate => (rate / 1e3, "kbit/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A time with its unit.
#[must_use]
pub fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        seconds if seconds >= 1.0 => format!("{} s", three_digits(seconds)),
        seconds if seconds >= 1e-3 => format!("{} ms", three_digits(seconds * 1e3)),
        seconds => format!("{} µs", three_digits(seconds * 1e6)),
    }
}

/// A share in per cent.
#[must_use]
pub fn shown_share(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// Three significant digits, no zeros at the end.
fn three_digits(value: f64) -> String {
    let places = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        assert_eq!(rate("50kbit"), Ok(50_000));
        assert_eq!(rate("1.5Gbit/s"), Ok(1_500_000_000));
        assert_eq!(time("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1e6"), Ok(1_000_000));
    }

    #[test]
    fn both_directions_are_one_value_or_two() {
        assert_eq!(both("1mbit", rate), Ok(Both { down: 1_000_000, up: 1_000_000 }));
        assert_eq!(both("3mbit/1mbit", rate), Ok(Both { down: 3_000_000, up: 1_000_000 }));
    }

    #[test]
    fn what_is_none_is_named_with_an_example() {
        for (wrong, expected) in [
            (rate("fast"), "`fast` is not a rate"),
            (rate("0mbit"), "20mbit"),
            (rate("-1gbit"), "not a rate"),
            (rate("nanmbit"), "not a rate"),
            (rate("200gbit"), "100gbit"),
            (time("20").map(|_| 0), "20ms"),
            (time("2h").map(|_| 0), "not a time"),
            (share("101%").map(|_| 0), "0% to 100%"),
            (share("x").map(|_| 0), "not a proportion"),
            (bytes("many"), "64KiB"),
            (both("1mbit/x", rate).map(|_| 0), "`x` is not a rate"),
        ] {
            let error = wrong.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn they_are_shown_with_three_digits() {
        assert_eq!(shown_rate(52_340_000_000.0), "52.3 Gbit/s");
        assert_eq!(shown_rate(50_000.0), "50 kbit/s");
        assert_eq!(shown_time(Duration::from_micros(20_310)), "20.3 ms");
        assert_eq!(shown_time(Duration::from_micros(87)), "87 µs");
        assert_eq!(shown_share(0.001), "0.1 %");
    }
}
