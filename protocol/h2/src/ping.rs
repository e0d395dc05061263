//! RFC 9113 §6.7: our own PINGs, of which at most one waits for its response.

/// Purpose of a PING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// When requests that crossed our first GOAWAY must have arrived.
    Drain,
    /// Check that the peer is there.
    Alive,
}

/// The PING that waits for its response.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    waiting: Option<(Purpose, u32)>,
}

fn payload(purpose: Purpose) -> [u8; 8] {
    match purpose {
        Purpose::Drain => *b"bolide-d",
        Purpose::Alive => *b"bolide-a",
    }
}

impl Ping {
    /// Begins to wait, in place of a PING before. Returns the payload.
    pub(crate) fn send(&mut self, purpose: Purpose, now_ms: u32) -> [u8; 8] {
        self.waiting = Some((purpose, now_ms));
        payload(purpose)
    }

    /// A response came: what it was for, if it was asked for.
    pub(crate) fn answered(&mut self, bytes: &[u8]) -> Option<Purpose> {
        let (purpose, _) = self.waiting.filter(|(purpose, _)| payload(*purpose) == bytes)?;
        self.waiting = None;
        Some(purpose)
    }

    /// Returns what waits for a response, and since when.
    pub(crate) fn waiting(&self) -> Option<(Purpose, u32)> {
        self.waiting
    }

    pub(crate) fn give_up(&mut self) {
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_response_counts() {
        let mut ping = Ping::default();
        assert_eq!(ping.answered(&payload(Purpose::Alive)), None);
        let sent = ping.send(Purpose::Drain, 3);
        assert_eq!(ping.waiting(), Some((Purpose::Drain, 3)));
        assert_eq!(ping.answered(b"12345678"), None);
        assert_eq!(ping.answered(&sent), Some(Purpose::Drain));
        assert_eq!(ping.answered(&sent), None);
    }
}
