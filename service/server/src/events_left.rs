//! How many events a call of a session may still report.

use std::cell::Cell;

/// Takes one of the events that a call has left.
#[inline]
pub(crate) fn take_event(left: &Cell<u32>) {
    left.set(left.get().saturating_sub(1));
}
