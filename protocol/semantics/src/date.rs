//! RFC 9110 §5.6.7: the `Date` field, formatted once a second.

use std::time::{Duration, SystemTime};

/// The current date as it goes on the wire.
///
/// [`update`](Self::update) is called as often as one likes; the text changes once a second.
#[derive(Debug, Clone)]
pub struct Date {
    second: u64,
    text: [u8; 29],
}

impl Date {
    /// The date at `now`.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        let mut date = Self { second: u64::MAX, text: [b' '; 29] };
        date.update(now);
        date
    }

    /// Moves on to `now`, and says whether the text has changed.
    pub fn update(&mut self, now: SystemTime) -> bool {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        // The format ends with the year 9999.
        let second = since.as_secs().min(253_402_300_799);
        if second == self.second {
            return false;
        }
        self.second = second;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let text = httpdate::fmt_http_date(time);
        self.text.copy_from_slice(text.as_bytes());
        true
    }

    /// Seconds since the epoch: changes exactly when the text does.
    #[inline]
    #[must_use]
    pub fn second(&self) -> u64 {
        self.second
    }

    /// The text, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 29] {
        &self.text
    }
}

/// Reads a date in any of the three forms of §5.6.7: seconds since the epoch. `None` is anything else,
/// and what lies before the epoch.
#[must_use]
pub fn parse_http_date(value: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_three_forms() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), Some(784_111_777), "{text}");
        }
        for text in ["", "now", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT"] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_http_date(b"\xff"), None);
    }

    #[test]
    fn the_text_changes_with_the_second() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_200);
        let mut date = Date::new(time);
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(!date.update(time + Duration::from_millis(700)));
        assert!(date.update(time + Duration::from_millis(900)));
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }

    #[test]
    fn a_clock_far_in_the_future_is_no_panic() {
        let date = Date::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40));
        assert_eq!(date.as_bytes(), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
