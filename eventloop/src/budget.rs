//! Budget of one connection in one pass, so that it cannot starve the others.

use crate::limits::Limits;

/// Counts down what is left of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    bytes: usize,
    reads: u32,
    calls: u32,
    /// A read filled its block.
    pub(crate) filled: bool,
}

impl Budget {
    /// A whole pass.
    #[inline]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes: limits.turns.pass_bytes,
            reads: limits.turns.pass_reads_count,
            calls: limits.turns.pass_calls_count,
            filled: false,
        }
    }

    /// Counts one read that brought `bytes`.
    #[inline]
    pub(crate) fn spend_read(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.reads = self.reads.saturating_sub(1);
    }

    /// Counts bytes that left.
    #[inline]
    pub(crate) fn spend_sent(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts one call of the session.
    #[inline]
    pub(crate) fn spend_call(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// Returns whether one more read fits.
    #[inline]
    pub(crate) fn allows_read(&self) -> bool {
        self.bytes > 0 && self.reads > 0 && self.calls > 0
    }

    /// Returns whether one more call fits.
    #[inline]
    pub(crate) fn allows_call(&self) -> bool {
        self.bytes > 0 && self.calls > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn limits() -> Limits {
        Limits {
            turns: limits::Turns {
                pass_bytes: 100,
                pass_reads_count: 3,
                pass_calls_count: 5,
                ..limits::Turns::DEFAULT
            },
            ..Limits::default()
        }
    }

    #[test]
    fn each_of_bytes_reads_and_calls_ends_a_pass() {
        let mut by_bytes = Budget::new(&limits());
        by_bytes.spend_read(60);
        assert!(by_bytes.allows_read());
        by_bytes.spend_sent(60);
        assert!(!by_bytes.allows_read() && !by_bytes.allows_call());

        let mut by_reads = Budget::new(&limits());
        (0..3).for_each(|_| by_reads.spend_read(1));
        assert!(!by_reads.allows_read() && by_reads.allows_call());

        let mut by_calls = Budget::new(&limits());
        (0..5).for_each(|_| by_calls.spend_call());
        assert!(!by_calls.allows_read() && !by_calls.allows_call());
    }
}
