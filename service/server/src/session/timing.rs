//! The `Server-Timing` field (W3C Server Timing): what an exchange took here, told to its client.

use std::time::Instant;

use crate::exchange::State;
use crate::handler::Reply;
use crate::server_timing::add;

/// The clock of one exchange.
#[derive(Debug)]
pub(super) struct Timing {
    began: Instant,
    routed: Instant,
}

impl Timing {
    /// A head has arrived.
    pub(super) fn new() -> Self {
        let began = Instant::now();
        Self { began, routed: began }
    }

    /// The handler is found.
    pub(super) fn routed(&mut self) {
        self.routed = Instant::now();
    }

    /// The handler has returned: a response gets the field, and what answers later is to have it then.
    pub(super) fn handled(self, reply: &mut Reply, state: &mut State) {
        match reply {
            Reply::Now(response) => {
                let handler = self.routed.elapsed().as_secs_f64();
                let route = (self.routed - self.began).as_secs_f64();
                add(response, &[("route", route), ("handler", handler)]);
            }
            _ => state.timed = Some(self.began),
        }
    }
}
