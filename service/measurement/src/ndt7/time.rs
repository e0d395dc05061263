//! Times as RFC 3339 writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// UTC, to the nanosecond.
pub(super) fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (year, month, day) = civil(since.as_secs() / 86_400);
    let second = since.as_secs() % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let nanos = since.subsec_nanos();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// The same without signs that a file name should not have.
pub(super) fn for_file_name(at: SystemTime) -> String {
    rfc3339(at).chars().filter(|sign| !matches!(sign, '-' | ':')).collect()
}

/// Year, month and day of a day counted from 1970-01-01: eras of 400 years, which begin in March, so that the
/// leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let at = |seconds, nanos| UNIX_EPOCH + Duration::new(seconds, nanos);
        assert_eq!(rfc3339(at(0, 0)), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(at(784_111_777, 5)), "1994-11-06T08:49:37.000000005Z");
        assert_eq!(rfc3339(at(951_782_400, 0)), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(rfc3339(at(4_107_542_399, 0)), "2100-02-28T23:59:59.000000000Z");
        assert_eq!(rfc3339(at(4_107_542_400, 0)), "2100-03-01T00:00:00.000000000Z");
        assert_eq!(for_file_name(at(0, 0)), "19700101T000000.000000000Z");
    }
}
