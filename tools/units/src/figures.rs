//! Figures as people read them: three digits and a unit.

/// A duration with its unit: `850 ns`, `12.3 µs`, `4.56 ms`, `7.89 s`.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(value / 1e6)),
        _ => format!("{} s", three_digits(value / 1e9)),
    }
}

/// Bytes with a decimal unit: `12 B`, `3.40 kB`, `5.67 MB`, `1.20 GB`.
pub fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{} kB", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", three_digits(value / 1e6)),
        _ => format!("{} GB", three_digits(value / 1e9)),
    }
}

/// Memory with a binary unit: `12 KiB`, `3.40 MiB`, `1.20 GiB`.
pub fn memory(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_048_576 => format!("{} KiB", three_digits(value / 1024.0)),
        1_048_576..1_073_741_824 => format!("{} MiB", three_digits(value / 1_048_576.0)),
        _ => format!("{} GiB", three_digits(value / 1_073_741_824.0)),
    }
}

/// A rate or a count with thousands apart: `1 234 567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Requests per second: whole numbers from 100 on, three digits below.
pub fn rate(per_second: f64) -> String {
    if per_second >= 100.0 { grouped(per_second.round() as u64) } else { three_digits(per_second) }
}

fn three_digits(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_three_digits_and_a_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (999_400, "999 µs"),
            (4_560_000, "4.56 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn sizes_say_which_unit_they_mean() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(3_400), "3.40 kB");
        assert_eq!(bytes(1_200_000_000), "1.20 GB");
        assert_eq!(memory(13 << 20), "13.0 MiB");
        assert_eq!(memory(1536), "1.50 KiB");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(rate(99.5), "99.5");
        assert_eq!(rate(123_456.7), "123,457");
    }
}
