//! One connection to an upstream, on the worker's event loop.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Instant;

use bolide_client::{ConnectionKey, Session};
use bolide_eventloop::{DatagramFlush, Outbound as BegunOutbound};
use bolide_server::{
    After, Agenda, CloseCause, DatagramSink, Destination, Dialled, Flush, Message, Outbound,
    OutwardQuic, SendQueue, Token, Turn, Waker,
};

use crate::exchanges::UpstreamExchanges;
use crate::failure::Failure;
use crate::shared_exchange::Shared;
use crate::worker::{Dial, Worker};

/// Where the client's sides leave what a connection is to look at.
#[derive(Debug)]
pub(crate) struct ConnectionTasks {
    /// Where the connection goes to.
    pub(crate) to: Destination,
    /// Keeps its backend.
    _lease: Rc<()>,
    pub(crate) key: Cell<Option<ConnectionKey>>,
    /// The upstream is no longer there: the connection takes no more requests.
    pub(crate) is_leaving: Cell<bool>,
    token: Cell<Option<Token>>,
    /// Calls the connection from where no agenda is at hand.
    waker: RefCell<Option<Waker>>,
    pub(crate) inbox: RefCell<Vec<Shared>>,
    /// Many exchanges share the connection, and its receive window.
    pub(crate) is_multiplexed: Cell<bool>,
}

impl ConnectionTasks {
    pub(crate) fn new(to: Destination, lease: Rc<()>) -> Self {
        Self {
            to,
            _lease: lease,
            key: Cell::default(),
            is_leaving: Cell::default(),
            token: Cell::default(),
            waker: RefCell::default(),
            inbox: RefCell::default(),
            is_multiplexed: Cell::default(),
        }
    }

    /// Leaves an exchange to be looked at. Returns whom to call, unless that was done before.
    pub(crate) fn leave(&self, state: Shared) -> Option<Token> {
        let mut inbox = self.inbox.borrow_mut();
        inbox.push(state);
        self.token.get().filter(|_| inbox.len() == 1)
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.token.get()
    }

    /// Calls the connection, later than [`Agenda::call`] would.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake();
        }
    }
}

/// A connection that was asked for.
pub(crate) struct Dialling {
    pub(crate) worker: Rc<Worker>,
    pub(crate) upstream: usize,
    pub(crate) key: ConnectionKey,
    pub(crate) tasks: Rc<ConnectionTasks>,
    /// When it was asked for.
    pub(crate) now: Instant,
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
    /// What follows each turn: those whom it concerns are woken.
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
        self.exchanges.eof |= turn.eof;
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
            // Whoever waits for it is still to be answered.
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
