//! RFC 5280 §4.1.2.5: the time of day, by which certificates are valid.

use std::fmt;
use std::time::SystemTime;

/// Source of the time of day, for the validity of certificates and tickets.
#[derive(Clone, Copy)]
pub struct WallClock(pub fn() -> SystemTime);

impl fmt::Debug for WallClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WallClock")
    }
}
