//! RFC 9113 §6.9: what was sent and the peer has not answered by a WINDOW_UPDATE.

/// With nothing sent since the update before, one that gives back less is useless, in bytes.
const SMALL_BYTES: u32 = 1024;

/// Bytes that were sent on a stream or a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unanswered {
    since_update: u32,
    bytes: u32,
}

impl Unanswered {
    /// So many were sent.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.since_update = self.since_update.saturating_add(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The peer gives back so many. Whether that does nothing useful: it answers nothing at all, or less than
    /// one per cent of what was sent since the update before. Several updates may answer what left in one piece.
    #[inline]
    pub(crate) fn is_answered_uselessly(&mut self, increment: u32) -> bool {
        let since = std::mem::take(&mut self.since_update);
        let is_small = if since == 0 {
            increment < SMALL_BYTES
        } else {
            u64::from(increment) * 100 < u64::from(since)
        };
        let answers_nothing = self.bytes == 0;
        self.bytes = self.bytes.saturating_sub(increment);
        is_small || answers_nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_may_come_in_pieces_of_what_left_at_once() {
        let mut unanswered = Unanswered::default();
        unanswered.sent(65_535);
        assert!(!unanswered.is_answered_uselessly(32_768));
        assert!(!unanswered.is_answered_uselessly(32_767));
        assert!(unanswered.is_answered_uselessly(32_768), "everything was answered");
    }

    #[test]
    fn tiny_updates_are_useless() {
        let mut unanswered = Unanswered::default();
        unanswered.sent(65_535);
        assert!(unanswered.is_answered_uselessly(600));
        assert!(unanswered.is_answered_uselessly(1));
        unanswered.sent(50);
        assert!(!unanswered.is_answered_uselessly(1), "a large share of what was sent since");
    }
}
