//! RFC 9218 §4: the priority of a response, from a `Priority` field or a PRIORITY_UPDATE frame.

/// How urgent a response is, and whether it is useful in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority {
    /// 0 (first) to 7 (last).
    pub(crate) urgency: u8,
    /// Whether it shares its turn with others of the same urgency.
    pub(crate) incremental: bool,
}

impl Priority {
    /// Of a request that says nothing. RFC 9218 would answer such requests strictly one after the
    /// other; but a client that says nothing most likely knows nothing of that, and expects that a
    /// short answer does not wait for a long one.
    pub(crate) const UNSPOKEN: Self = Self { urgency: 3, incremental: true };

    /// Reads a structured field dictionary (RFC 8941 §3.2). What is not understood, or is out of
    /// range, is ignored.
    pub(crate) fn parse(value: &[u8]) -> Self {
        Self { urgency: 3, incremental: false }.merge(value)
    }

    /// The same with what the server says of its response (RFC 9218 §8): what it does not mention
    /// stays as the client wants it.
    pub(crate) fn merge(self, value: &[u8]) -> Self {
        let mut priority = self;
        for member in value.split(|byte| *byte == b',') {
            let item = member.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            match item {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

/// Priorities of streams that are not open yet.
#[derive(Debug, Default)]
pub(crate) struct EarlyPriorities {
    waiting: Vec<(u32, Priority)>,
}

impl EarlyPriorities {
    /// Remembers a priority; the oldest is forgotten when there are too many.
    pub(crate) fn insert(&mut self, stream: u32, priority: Priority) {
        self.waiting.retain(|(id, _)| *id != stream);
        if self.waiting.len() == crate::limits::EARLY_PRIORITIES_COUNT {
            self.waiting.remove(0);
        }
        self.waiting.push((stream, priority));
    }

    /// The priority of a stream that opens.
    #[inline]
    pub(crate) fn take(&mut self, stream: u32) -> Option<Priority> {
        if self.waiting.is_empty() {
            return None;
        }
        let index = self.waiting.iter().position(|(id, _)| *id == stream)?;
        Some(self.waiting.swap_remove(index).1)
    }

    pub(crate) fn trim(&mut self) {
        self.waiting = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn fields() {
        assert_eq!(of(1, true).merge(b"u=5"), of(5, true));
        assert_eq!(of(1, true).merge(b"i=?0"), of(1, false));
        assert_eq!(of(1, true).merge(b""), of(1, true));
        assert_eq!(Priority::parse(b""), of(3, false));
        assert_eq!(Priority::parse(b"u=1, i"), of(1, true));
        assert_eq!(Priority::parse(b"i=?1,u=0"), of(0, true));
        assert_eq!(Priority::parse(b"u=5;x=1 , i;y, i=?0"), of(5, false));
        assert_eq!(Priority::parse(b"u=8, u=-1, u=10, u, i=1, x=\"i\""), of(3, false));
    }

    #[test]
    fn early_priorities_are_bounded() {
        let mut early = EarlyPriorities::default();
        for stream in 0..1000 {
            early.insert(stream, of((stream % 8) as u8, false));
        }
        assert_eq!(early.waiting.len(), crate::limits::EARLY_PRIORITIES_COUNT);
        assert_eq!(early.take(999), Some(of(7, false)));
        assert_eq!(early.take(999), None);
        assert_eq!(early.take(1), None);
    }
}
