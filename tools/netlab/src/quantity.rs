//! Quantities for one direction or for both, and how rates, times and shares are shown.

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

/// Reads a time of the network: `20ms`, `500us`, `1.5s`.
///
/// # Errors
///
/// If it is none up to 60 s.
pub fn time(text: &str) -> Result<Duration, String> {
    let time = bolide_units::duration(text)?;
    if time > Duration::from_secs(60) {
        return Err(format!("`{text}`: must be at most 60s"));
    }
    Ok(time)
}

/// A rate with its unit.
pub fn shown_rate(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        rate if rate >= 1e9 => (rate / 1e9, "Gbit/s"),
        rate if rate >= 1e6 => (rate / 1e6, "Mbit/s"),
        rate => (rate / 1e3, "kbit/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A time with its unit.
pub fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        seconds if seconds >= 1.0 => format!("{} s", three_digits(seconds)),
        seconds if seconds >= 1e-3 => format!("{} ms", three_digits(seconds * 1e3)),
        seconds => format!("{} µs", three_digits(seconds * 1e6)),
    }
}

/// A share in per cent.
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
    fn both_directions_are_one_value_or_two() {
        let rate = bolide_units::bit_rate;
        assert_eq!(both("1mbit", rate), Ok(Both { down: 1_000_000, up: 1_000_000 }));
        assert_eq!(both("3mbit/1mbit", rate), Ok(Both { down: 3_000_000, up: 1_000_000 }));
        assert!(both("1mbit/x", rate).unwrap_err().contains("`x` is not a rate"));
    }

    #[test]
    fn times_have_a_unit_and_end_at_a_minute() {
        assert_eq!(time("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert!(time("20").unwrap_err().contains("is not a time"));
        assert!(time("2h").unwrap_err().contains("at most 60s"));
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
