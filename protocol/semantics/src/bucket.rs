//! RFC 9113 §10.5, RFC 9114 §10.5: a budget that comes back with time.

/// Tokens that are used up and come back with time, counted in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    thousandths: u64,
    at_ms: u32,
}

impl Bucket {
    /// A full bucket; without a `burst` there is no limit.
    #[must_use]
    pub fn full(burst: Option<u32>) -> Self {
        Self { thousandths: u64::from(burst.unwrap_or(0)) * 1000, at_ms: 0 }
    }

    /// Takes one token; false when there is none.
    #[inline]
    pub fn take(&mut self, now_ms: u32, burst: Option<u32>, refill: u32) -> bool {
        let Some(burst) = burst else { return true };
        // A token per second is a thousandth per millisecond.
        let gained = u64::from(now_ms.wrapping_sub(self.at_ms)) * u64::from(refill);
        self.at_ms = now_ms;
        self.thousandths = self.thousandths.saturating_add(gained).min(u64::from(burst) * 1000);
        match self.thousandths.checked_sub(1000) {
            Some(left) => {
                self.thousandths = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_burst_is_as_large_as_it_says() {
        let burst = 5_000_000;
        let mut bucket = Bucket::full(Some(burst));
        assert!((0..burst).all(|_| bucket.take(0, Some(burst), 0)));
        assert!(!bucket.take(0, Some(burst), 0));
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let mut bucket = Bucket::full(Some(3));
        for _ in 0..3 {
            assert!(bucket.take(0, Some(3), 10));
        }
        assert!(!bucket.take(99, Some(3), 10));
        assert!(bucket.take(100, Some(3), 10));
        assert!(!bucket.take(100, Some(3), 10));
        for _ in 0..3 {
            assert!(bucket.take(60_000, Some(3), 10));
        }
        assert!(!bucket.take(60_000, Some(3), 10));
    }

    #[test]
    fn time_that_wraps_refills() {
        let mut bucket = Bucket { thousandths: 0, at_ms: u32::MAX - 50 };
        assert!(bucket.take(50, Some(3), 10));
    }
}
