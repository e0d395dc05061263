//! Memory that a client makes a session keep.

use super::Session;
use crate::exchange::{Active, WaitingBody};

impl Session {
    /// The memory that the client makes the session keep, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let connection = self.connection.held_bytes() + self.connection.unconsumed_bytes();
        connection + self.exchanges.iter().map(Active::held_bytes).sum::<usize>()
    }
}

impl Active {
    /// The body that waits for a handler, if one is to be found out.
    pub(super) fn waiting_body(&mut self) -> Option<&mut WaitingBody> {
        self.or_else.as_mut().and_then(|other| other.body.as_mut())
    }

    /// The memory that it keeps, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let driver = self.driver.as_deref();
        let driver = driver.map_or(0, |driver| size_of_val(driver) + driver.held_bytes());
        let entry = self.state.record.entry.as_ref().map_or(0, |entry| entry.held_bytes());
        let or_else = self.or_else.as_ref();
        let or_else =
            or_else.map_or(0, |other| other.head.allocated_bytes() + other.handler.held_bytes());
        let encoded = self.state.encoded.as_ref().map_or(0, |encoded| encoded.held_bytes());
        let slowed = self.state.slowed.as_ref().map_or(0, |slowed| slowed.held_bytes());
        let content = encoded + slowed + self.state.rest_bytes();
        size_of::<Self>() + driver + entry + or_else + content + self.state.policy.held_bytes()
    }
}
