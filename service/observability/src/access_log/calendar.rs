//! The time of a line, in the two forms of the formats.

use std::time::{Duration, SystemTime};

use bolide_semantics::Date;

/// The current time as text: made anew once a millisecond at most.
#[derive(Debug)]
pub(super) struct CalendarTime {
    date: Date,
    /// Milliseconds since the epoch that the texts stand for.
    ms: u64,
    /// `2026-11-22T00:22:06.123Z`
    iso: [u8; 24],
    /// `22/Nov/2026:00:22:06 +0000`
    common: [u8; 26],
}

impl CalendarTime {
    pub(super) fn new() -> Self {
        let mut calendar = Self {
            date: Date::new(SystemTime::UNIX_EPOCH),
            ms: 0,
            iso: *b"0000-00-00T00:00:00.000Z",
            common: *b"00/Jan/1970:00:00:00 +0000",
        };
        calendar.spell();
        calendar
    }

    /// Moves to a time since the epoch.
    #[inline]
    pub(super) fn update(&mut self, since: Duration) {
        let ms = since.as_secs() * 1000 + u64::from(since.subsec_millis());
        if ms != self.ms {
            self.ms = ms;
            if self.date.update(SystemTime::UNIX_EPOCH + since) {
                self.spell();
            }
            self.iso[20..23].copy_from_slice(&three_digits(ms % 1000));
        }
    }

    /// Makes the texts from the date, which reads `Sun, 22 Nov 2026 00:22:06 GMT`.
    fn spell(&mut self) {
        const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let date = self.date.as_bytes();
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let number = MONTHS.chunks(3).position(|name| name == month).unwrap_or_default() + 1;
        self.iso[..4].copy_from_slice(year);
        self.iso[5..7].copy_from_slice(&three_digits(number as u64)[1..]);
        self.iso[8..10].copy_from_slice(day);
        self.iso[11..19].copy_from_slice(time);
        self.common[..2].copy_from_slice(day);
        self.common[3..6].copy_from_slice(month);
        self.common[7..11].copy_from_slice(year);
        self.common[12..20].copy_from_slice(time);
    }

    #[inline]
    pub(super) fn iso(&self) -> &[u8; 24] {
        &self.iso
    }

    #[inline]
    pub(super) fn common(&self) -> &[u8; 26] {
        &self.common
    }
}

fn three_digits(number: u64) -> [u8; 3] {
    let digit = |unit: u64| b'0' + (number / unit % 10) as u8;
    [digit(100), digit(10), digit(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_both_forms() {
        let mut calendar = CalendarTime::new();
        assert_eq!(calendar.iso(), b"1970-01-01T00:00:00.000Z");
        calendar.update(Duration::from_millis(784_111_777_042));
        assert_eq!(calendar.iso(), b"1994-11-06T08:49:37.042Z");
        assert_eq!(calendar.common(), b"06/Nov/1994:08:49:37 +0000");
        // A clock that is set back.
        calendar.update(Duration::from_millis(784_111_776_999));
        assert_eq!(calendar.iso(), b"1994-11-06T08:49:36.999Z");
    }
}
