//! RFC 9218 §4: the priority of a response, from a `Priority` field or a PRIORITY_UPDATE frame.

/// How urgent a response is, and whether it is useful in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (last).
    pub urgency: u8,
    /// True if it shares its turn with others of the same urgency.
    pub incremental: bool,
}

impl Priority {
    /// Of a request that says nothing. RFC 9218 would answer such requests strictly one after the
    /// other; but a client that says nothing most likely knows nothing of that, and expects that a
    /// short response does not wait for a long one.
    pub const UNSPOKEN: Self = Self { urgency: 3, incremental: true };

    /// Reads a structured field dictionary (RFC 8941 §3.2). What is not understood, or is out of
    /// range, is ignored.
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        Self { urgency: 3, incremental: false }.merge(value)
    }

    /// The same with what the server says of its response (RFC 9218 §8): what it does not mention
    /// stays as the client wants it.
    #[must_use]
    pub fn merge(self, value: &[u8]) -> Self {
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
}
