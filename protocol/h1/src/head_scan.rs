//! RFC 9112 §2.2: how far an incomplete head or trailer section has been looked at.

use memchr::memchr;

/// State between two looks at an incomplete section, so that a section that comes one
/// byte at a time is not parsed at each byte.
#[derive(Debug, Default)]
pub(crate) struct HeadScan {
    /// The bytes that have been looked at.
    scanned: u32,
    /// The empty lines that were skipped before the head.
    pub(crate) empty_lines: u8,
}

impl HeadScan {
    /// Returns whether parsing could come further than last time: a line was completed, or a limit reached.
    #[inline]
    pub(crate) fn is_worthwhile(&self, unread: &[u8], limits: [u32; 2]) -> bool {
        self.scanned == 0 || self.has_news(unread, limits)
    }

    #[cold]
    fn has_news(&self, unread: &[u8], limits: [u32; 2]) -> bool {
        let fresh = unread.get(self.scanned as usize..).unwrap_or_default();
        let reaches = |limit| self.scanned < limit && unread.len() >= limit as usize;
        memchr(b'\n', fresh).is_some() || limits.into_iter().any(reaches)
    }

    /// An empty line was skipped.
    pub(crate) fn skip_empty_line(&mut self) {
        *self = Self { scanned: 0, empty_lines: self.empty_lines + 1 };
    }

    /// Everything was looked at, and the section was not complete.
    pub(crate) fn incomplete(&mut self, unread: usize) {
        self.scanned = u32::try_from(unread).unwrap_or(u32::MAX);
    }

    /// The section was complete.
    #[inline]
    pub(crate) fn complete(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_line_or_a_limit_is_news() {
        let mut scan = HeadScan::default();
        assert!(scan.is_worthwhile(b"", [10, 20]));
        scan.incomplete(5);
        assert!(!scan.is_worthwhile(b"GET /", [10, 20]));
        assert!(!scan.is_worthwhile(b"GET /abc", [10, 20]));
        assert!(scan.is_worthwhile(b"GET /abcde", [10, 20]));
        assert!(scan.is_worthwhile(b"GET /\n", [10, 20]));
        scan.incomplete(10);
        assert!(!scan.is_worthwhile(b"GET /abcdef", [10, 20]));
        scan.complete();
        assert!(scan.is_worthwhile(b"G", [10, 20]));
    }
}
