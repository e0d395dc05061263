//! One connection to an upstream, on the worker's event loop.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use bolide_client::{ConnectionKey, Session};
use bolide_eventloop::{DatagramFlush, Outbound as BegunOutbound};
use bolide_server::{
    After, Agenda, CloseCause, DatagramSink, Dialled, Flush, Message, Outbound, Outward,
    OutwardQuic, SendQueue, Turn, Waker,
};

use crate::exchanges::UpstreamExchanges;
use crate::failure::Failure;
use crate::shared_exchange::ConnectionTasks;
use crate::worker::{Dial, Worker};

impl Worker {
    /// Makes the connections that are wanted.
    pub(crate) fn dial(self: &Rc<Self>, upstream: usize, outward: &mut Outward<'_>, now: Instant) {
        let mut backends = self.backends.borrow_mut();
        let backend = &mut backends[upstream];
        for _ in 0..backend.pool.dials_wanted() {
            let (key, tasks, to) = backend.begin_dial();
            let worker = Rc::clone(self);
            outward.connect(to, Box::new(Dialling { worker, upstream, key, tasks, now }));
        }
    }
}

/// A connection that was asked for.
struct Dialling {
    worker: Rc<Worker>,
    upstream: usize,
    key: ConnectionKey,
    tasks: Rc<ConnectionTasks>,
    /// When it was asked for.
    now: Instant,
}

impl Dialled for Dialling {
    fn begin(
        self: Box<Self>,
        begun: &BegunOutbound,
        quic: &mut OutwardQuic,
        now: Instant,
    ) -> Option<(Box<dyn Outbound>, After)> {
        let Self { worker, upstream, key, tasks, .. } = *self;
        tasks.token.set(Some(begun.token));
        let session = {
            let backends = worker.backends.borrow();
            let mut bench = worker.bench.borrow_mut();
            // The upstream's name was checked when the proxy was made.
            let dial = &backends[upstream].dial;
            Session::begin(dial, begun, &mut bench.with_quic(quic), now).ok()?
        };
        let after = worker.until_next_wait(upstream, session.first_wish());
        let exchanges = UpstreamExchanges::new(worker, upstream, key, tasks, now);
        Some((Box::new(UpstreamConnection { session, exchanges }), after))
    }

    fn failed(self: Box<Self>, error: io::Error, agenda: &mut Agenda) {
        let Self { worker, upstream, key, tasks, now } = *self;
        let failure = &Failure::unconnected(&error);
        let dial = Dial { upstream, key, to: &tasks.to, failure, now };
        worker.dial_failed(&dial, &error, agenda);
    }
}

/// One connection to an upstream.
pub(crate) struct UpstreamConnection {
    session: Session,
    exchanges: UpstreamExchanges,
}

impl UpstreamConnection {
    /// Ends each turn: wakes those whom it concerns.
    fn settle(&mut self, after: After, agenda: &mut Agenda, now: Instant) -> After {
        self.exchanges.wake_all(agenda);
        let worker = &self.exchanges.worker;
        worker.end_overdue(self.exchanges.upstream, agenda, now);
        worker.show(self.exchanges.upstream);
        if after.close.is_some() {
            return after;
        }
        let after = worker.until_next_wait(self.exchanges.upstream, after);
        After { idle: self.session.is_ready() && self.exchanges.is_idle(), ..after }
    }
}

impl Outbound for UpstreamConnection {
    fn turn(&mut self, turn: &mut Turn<'_, Message>, quic: &mut OutwardQuic) -> After {
        let tasks = &self.exchanges.tasks;
        if tasks.waker.borrow().is_none() {
            *tasks.waker.borrow_mut() = Some(Waker::of_outbound(turn));
        }
        self.exchanges.now = turn.now;
        let worker = Rc::clone(&self.exchanges.worker);
        let mut bench = worker.bench.borrow_mut();
        let after = self.session.turn(turn, &mut bench.with_quic(quic), &mut self.exchanges);
        drop(bench);
        self.settle(after, turn.agenda, turn.now)
    }

    fn shut_down(&mut self, turn: &mut Turn<'_, Message>, quic: &mut OutwardQuic) -> After {
        self.exchanges.worker.draining.set(true);
        if !self.session.is_ready() {
            // The client that waits for it still has no response.
            return self.turn(turn, quic);
        }
        if !self.exchanges.is_idle() {
            return self.turn(turn, quic);
        }
        let worker = Rc::clone(&self.exchanges.worker);
        let mut bench = worker.bench.borrow_mut();
        let after = self.session.shut_down(turn, &mut bench.with_quic(quic), &mut self.exchanges);
        drop(bench);
        self.settle(after, turn.agenda, turn.now)
    }

    fn flush(&mut self, output: &mut SendQueue, mut sink: &mut dyn io::Write) -> io::Result<Flush> {
        self.session.flush(output, &mut sink)
    }

    fn flush_datagrams(
        &mut self,
        quic: &mut OutwardQuic,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let mut bench = self.exchanges.worker.bench.borrow_mut();
        bench.with_quic(quic).flush_datagrams(&mut self.session, sink)
    }

    fn close(self: Box<Self>, cause: CloseCause, quic: &mut OutwardQuic, agenda: &mut Agenda) {
        let Self { mut session, mut exchanges } = *self;
        let mut bench = exchanges.worker.bench.borrow_mut();
        bench.with_quic(quic).forget(&mut session, exchanges.now);
        drop(bench);
        session.close(cause, &mut exchanges);
        exchanges.worker.show(exchanges.upstream);
        exchanges.wake_all(agenda);
    }
}
