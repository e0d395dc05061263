//! How connections go out, and how the rest of a service's [`Agenda`] is carried out.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agenda::{Agenda, Destination, Outbound};
use crate::close_cause::CloseCause;
use crate::kernel::Kernel;
use crate::service::{After, Service};
use crate::slots::Token;
use crate::socket::{Call, Slot};
use crate::worker::Worker;

/// Times in one turn of the loop that sessions may call each other on: a request that goes through two
/// sessions and comes back at once. What is left waits until the sockets had their turn.
const ROUNDS_COUNT: u32 = 4;

impl<K: Kernel, S: Service> Worker<K, S> {
    /// Carries out what the service asked for.
    #[inline]
    pub(crate) fn carry_out_agenda(&mut self) {
        for _ in 0..ROUNDS_COUNT {
            if !self.cx.agenda.has_work() {
                return;
            }
            self.carry_out_once();
        }
    }

    fn carry_out_once(&mut self) {
        let Agenda { connects, calls, .. } = &mut self.cx.agenda;
        let connects = std::mem::take(connects);
        std::mem::swap(calls, &mut self.calling);
        for (to, tag) in connects {
            self.connect(&to, tag);
        }
        for position in 0..self.calling.len() {
            let token = self.calling[position];
            if self.slots.get_mut(token).is_some_and(|slot| slot.is_open()) {
                self.pass(token, Call::Asked);
            }
        }
        self.calling.clear();
    }

    fn connect(&mut self, to: &Destination, tag: u64) {
        if let Err(error) = self.try_connect(to, tag) {
            self.cx.stats.connects_failed += 1;
            let (service, agenda) = (&mut self.cx.service, &mut self.cx.agenda);
            let told = AssertUnwindSafe(|| service.connect_failed(tag, error, agenda));
            if catch_unwind(told).is_err() {
                self.cx.stats.panics += 1;
            }
        }
    }

    /// Begins a connection and opens its session.
    fn try_connect(&mut self, to: &Destination, tag: u64) -> io::Result<()> {
        if !self.has_room() {
            return Err(io::Error::other("the worker holds as many connections as it may"));
        }
        if let Destination::Datagrams(to) = to {
            return self.begin_datagrams(*to, tag);
        }
        let mut socket = self.cx.kernel.connect(to)?;
        self.cx.kernel.limit_unsent(&mut socket, self.cx.limits.unsent.unsent_start_bytes);
        let token = self.slots.vacant();
        if let Err(error) = self.cx.kernel.register(&mut socket, token.key()) {
            self.cx.kernel.close(socket);
            return Err(error);
        }
        let Some((session, after)) = self.begun(&Outbound { token, tag, datagrams_to: None })
        else {
            self.cx.kernel.close(socket);
            return Ok(());
        };
        let tick = self.short_tick();
        let slot = Slot::connecting(Some(socket), session, after, &mut self.cx, tick);
        self.keep(token, slot, after);
        Ok(())
    }

    /// The same for a connection of datagrams, whose first turn comes at once.
    fn begin_datagrams(&mut self, to: SocketAddr, tag: u64) -> io::Result<()> {
        let position = self.share_datagrams(to)?;
        let token = self.slots.vacant();
        self.joined_datagrams(position, token);
        let Some((session, after)) = self.begun(&Outbound { token, tag, datagrams_to: Some(to) })
        else {
            self.left_datagrams(position);
            return Ok(());
        };
        let tick = self.short_tick();
        let mut slot = Slot::new(None, session, after, &mut self.cx, tick);
        slot.state.datagram_socket = position;
        self.keep(token, slot, after);
        self.cx.agenda.call(token);
        Ok(())
    }

    /// A connection has begun: its session, unless it is given up.
    fn begun(&mut self, outbound: &Outbound) -> Option<(S::Session, After)> {
        let (service, now) = (&mut self.cx.service, self.cx.now);
        let opened = catch_unwind(AssertUnwindSafe(|| service.connecting(outbound, now)));
        self.cx.stats.panics += u64::from(opened.is_err());
        let opened = opened.ok()?;
        self.cx.stats.outbound += u64::from(opened.is_some());
        opened
    }

    /// Gives a connection that has begun its place.
    fn keep(&mut self, token: Token, slot: Slot<K, S>, after: After) {
        let deadline = self.slots.insert(slot).deadline_to_file();
        if let Some(deadline) = deadline {
            self.file(token, deadline);
        }
        if after.close.is_some() {
            self.close(token, CloseCause::Finished);
        }
    }
}
