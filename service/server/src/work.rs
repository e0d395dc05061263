//! Resources that a worker lends to a session.

use std::cell::Cell;

use bolide_connection::Connection;
use bolide_eventloop::{Meter, Path};
use bolide_semantics::{Context, ExchangeId};

use crate::ends::Ends;
use crate::exchange::{Io, State};
use crate::local_waker::Calls;
use crate::observe::Observer;
use crate::outward::Outward;
use crate::responder::Address;
use crate::response_settings::Shared;

/// Resources of a session during one turn: its worker's things.
pub(crate) struct Work<'a> {
    pub(crate) cx: Context<'a>,
    pub(crate) shared: &'a Shared,
    pub(crate) address: Address<'a>,
    pub(crate) outward: Outward<'a>,
    pub(crate) observer: &'a mut Observer,
    pub(crate) path: &'a dyn Path,
    pub(crate) meter: &'a Meter,
    /// How many events of this call are left.
    pub(crate) events_left: &'a Cell<u32>,
}

impl Work<'_> {
    /// Returns what a handler gives its orders through.
    pub(crate) fn io<'s>(
        &'s mut self,
        connection: &'s mut Connection,
        ends: &'s Ends,
        id: ExchangeId,
        state: &'s mut State,
        calls: &'s mut Option<Calls>,
    ) -> Io<'s> {
        Io {
            connection,
            cx: self.cx.reborrow(),
            id,
            state,
            date: &self.shared.date,
            advertised: &self.shared.advertised,
            address: Address { exchange: id, ..self.address },
            ends,
            path: self.path,
            meter: self.meter,
            events_left: self.events_left,
            outward: Outward { agenda: self.outward.agenda, dials: self.outward.dials },
            calls,
            yields: false,
            limit: None,
        }
    }
}
