//! Sizes, durations, counts, rates and shares as people write them, and [`figures`] as they read them.

pub mod figures;

use std::time::Duration;

/// The longest duration that is taken: ten years.
const LONGEST_S: f64 = 315_576_000.0;

/// Splits `12.5ms` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let value: f64 = number.parse().ok()?;
    (value.is_finite()).then(|| (value, unit.trim_start()))
}

/// A time: a number and `ns`, `us` or `µs`, `ms`, `s`, `m` or `min`, `h`; 0 needs no unit.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a time: use a number with ns, us, ms, s, m or h, such as 500ms or 1.5s"
        )
    };
    let (value, unit) = split(text.trim()).ok_or_else(wrong)?;
    let seconds = match unit {
        "ns" => value / 1e9,
        "us" | "µs" => value / 1e6,
        "ms" => value / 1e3,
        "s" => value,
        "m" | "min" => value * 60.0,
        "h" => value * 3600.0,
        "" if value == 0.0 => value,
        _ => return Err(wrong()),
    };
    if seconds > LONGEST_S {
        return Err(format!("`{text}`: must be at most ten years"));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// A time as [`duration`] reads it; a number without a unit is in seconds.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match split(text.trim()) {
        Some((_, "")) => duration(&format!("{}s", text.trim())),
        _ => duration(text),
    }
}

/// A time as [`seconds`] reads it that is not zero.
///
/// # Errors
///
/// As [`seconds`], and for zero.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    let duration = seconds(text)?;
    if duration.is_zero() {
        return Err(format!("`{text}`: must be more than 0"));
    }
    Ok(duration)
}

/// A size in bytes: a number, and `K` or `KiB`, `M` or `MiB`, `G` or `GiB` for powers of 1024, or `kB`,
/// `MB`, `GB` for powers of 1000.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a size: use a number of bytes, or one with K, M, G (powers of 1024) or kB, \
             MB, GB (powers of 1000), such as 64K"
        )
    };
    let (value, unit) = split(text.trim()).ok_or_else(wrong)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "m" | "M" | "MiB" => 1_048_576.0,
        "g" | "G" | "GiB" => 1_073_741_824.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return Err(wrong()),
    };
    let bytes = value * factor;
    if bytes > 1e15 || bytes.fract() != 0.0 {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

/// A size that fits in a field of 32 bits.
///
/// # Errors
///
/// As [`size`], and beyond 2³¹ − 1, which is HTTP/2's greatest window.
pub fn small_size(text: &str) -> Result<u32, String> {
    let bytes = size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= 0x7fff_ffff)
        .ok_or_else(|| format!("`{text}`: must be at most 2147483647 bytes, the maximum of HTTP/2"))
}

/// A count of at least 1: digits, and `k` or `M` for thousands and millions.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a count: use a number from 1, with k or M for thousands and millions"
        )
    };
    let value = scaled(text.trim()).ok_or_else(wrong)?;
    if value < 1.0 || value.fract() != 0.0 || value > 1e18 {
        return Err(wrong());
    }
    Ok(value as u64)
}

/// A factor above 0.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| format!("`{text}` is not a number above 0, such as 2 or 0.5"))
}

/// A rate per second, more than 0: a number, and `k` or `M`, and `/s` if one likes.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn rate(text: &str) -> Result<f64, String> {
    let bare = text.trim();
    let value = scaled(bare.strip_suffix("/s").unwrap_or(bare).trim_end());
    value.filter(|rate| *rate > 0.0 && *rate <= 1e9).ok_or_else(|| {
        format!("`{text}` is not a rate: use a number of requests per second, more than 0, such as 500 or 50k")
    })
}

fn scaled(text: &str) -> Option<f64> {
    let (value, unit) = split(text)?;
    match unit {
        "" => Some(value),
        "k" | "K" => Some(value * 1e3),
        "m" | "M" => Some(value * 1e6),
        _ => None,
    }
}

/// A rate in bits per second, from 1 kbit to 100 Gbit: a number and `kbit`, `mbit` or `gbit` in any case, and `/s` if
/// one likes.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn bit_rate(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let rate = split(lower.strip_suffix("/s").unwrap_or(&lower)).and_then(|(value, unit)| {
        Some(match unit {
            "bit" => value,
            "kbit" => value * 1e3,
            "mbit" => value * 1e6,
            "gbit" => value * 1e9,
            _ => return None,
        })
    });
    rate.filter(|rate| (1e3..=1e11).contains(rate))
        .map(|rate| rate.round() as u64)
        .ok_or_else(|| format!("`{text}` is not a rate: use 1kbit to 100gbit, such as 20mbit"))
}

/// A share from 0 to 1, or a percentage with `%`.
///
/// # Errors
///
/// What would be right, in a sentence.
pub fn share(text: &str) -> Result<f64, String> {
    let value = match split(text.trim()) {
        Some((value, "")) => Some(value),
        Some((value, "%")) => Some(value / 100.0),
        _ => None,
    };
    value.filter(|share| *share <= 1.0).ok_or_else(|| {
        format!(
            "`{text}` is not a proportion: use a number from 0 to 1 or a percentage, such as 1%"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, ns) in [
            ("10s", 10_000_000_000_u64),
            ("1.5ms", 1_500_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("3 ns", 3),
            ("2m", 120_000_000_000),
            ("5min", 300_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1x", "1s2", "1e3s", "..", "99999999h", "nan", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(seconds(" 2.5 "), Ok(Duration::from_millis(2500)));
        assert_eq!(seconds("20ms"), Ok(Duration::from_millis(20)));
        assert!(positive_seconds("0ms").unwrap_err().contains("more than 0"));
    }

    #[test]
    fn sizes_are_read_with_both_kinds_of_units() {
        for (text, bytes) in
            [("0", 0), ("64K", 65_536), ("1.5KiB", 1_536), ("2kB", 2_000), ("1G", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1.5", "-1", "1T", "9999999G"] {
            assert!(size(text).unwrap_err().contains("64K"), "{text}");
        }
        assert!(small_size("2G").is_err());
        assert_eq!(small_size("65535"), Ok(65_535));
    }

    #[test]
    fn counts_rates_and_shares_have_bounds() {
        assert_eq!(count("100k"), Ok(100_000));
        assert_eq!(count("2.5M"), Ok(2_500_000));
        assert!(count("0").is_err() && count("1.5").is_err());
        assert_eq!(rate("50k/s"), Ok(50_000.0));
        assert_eq!(rate("0.5"), Ok(0.5));
        assert!(rate("0").is_err() && rate("-1").is_err() && rate("10/m").is_err());
        assert_eq!(bit_rate("50kbit"), Ok(50_000));
        assert_eq!(bit_rate("1.5Gbit/s"), Ok(1_500_000_000));
        for text in ["fast", "0mbit", "-1gbit", "nanmbit", "200gbit"] {
            assert!(bit_rate(text).unwrap_err().contains("20mbit"), "{text}");
        }
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert!(share("101%").is_err() && share("2").is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_parser(text in ".{0,12}") {
            let _ = (duration(&text), size(&text), count(&text), rate(&text), share(&text));
            let _ = (positive_seconds(&text), small_size(&text), bit_rate(&text));
        }

        #[test]
        fn milliseconds_come_back(ms in 0_u64..10_000_000) {
            prop_assert_eq!(duration(&format!("{ms}ms")), Ok(Duration::from_millis(ms)));
        }

        #[test]
        fn kibibytes_come_back(kib in 0_u64..1_000_000_000) {
            prop_assert_eq!(size(&format!("{kib}K")), Ok(kib * 1024));
        }
    }
}
