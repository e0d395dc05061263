//! One connection to an upstream, on the worker's event loop.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Instant;

use bolide_client::{LineKey, Session};
use bolide_server::{
    After, Agenda, CloseCause, Destination, Dialled, Flush, Message, Outbound, SendQueue, Token,
    Turn, Waker,
};

use crate::crossing::Shared;
use crate::failure::Failure;
use crate::traffic::Traffic;
use crate::worker::{Dial, Worker};

/// Where the client's sides leave what a line is to look at.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Where the line goes to.
    pub(crate) to: Destination,
    pub(crate) key: Cell<Option<LineKey>>,
    /// The upstream is no longer there: the line takes no more requests.
    pub(crate) is_leaving: Cell<bool>,
    token: Cell<Option<Token>>,
    /// Calls the line from where no agenda is at hand.
    waker: RefCell<Option<Waker>>,
    pub(crate) inbox: RefCell<Vec<Shared>>,
    /// Many exchanges share the line, and its receive window.
    pub(crate) is_multiplexed: Cell<bool>,
}

impl Desk {
    pub(crate) fn new(to: Destination) -> Self {
        Self {
            to,
            key: Cell::default(),
            is_leaving: Cell::default(),
            token: Cell::default(),
            waker: RefCell::default(),
            inbox: RefCell::default(),
            is_multiplexed: Cell::default(),
        }
    }

    /// Leaves a crossing to be looked at. Returns whom to call, unless that was done before.
    pub(crate) fn leave(&self, crossing: Shared) -> Option<Token> {
        let mut inbox = self.inbox.borrow_mut();
        inbox.push(crossing);
        self.token.get().filter(|_| inbox.len() == 1)
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.token.get()
    }

    /// Calls the line, later than [`Agenda::call`] would.
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
    pub(crate) key: LineKey,
    pub(crate) desk: Rc<Desk>,
    /// When it was asked for.
    pub(crate) now: Instant,
}

impl Dialled for Dialling {
    fn begin(self: Box<Self>, token: Token, now: Instant) -> Option<(Box<dyn Outbound>, After)> {
        let Self { worker, upstream, key, desk, .. } = *self;
        desk.token.set(Some(token));
        let session = {
            let backends = worker.backends.borrow();
            // The upstream's name was checked when the proxy was made.
            Session::new(&backends[upstream].dial, &worker.bench.borrow(), now).ok()?
        };
        let after = worker.until_next_wait(upstream, session.first_wish());
        let traffic = Traffic::new(worker, upstream, key, desk, now);
        Some((Box::new(Line { session, traffic }), after))
    }

    fn failed(self: Box<Self>, error: io::Error, agenda: &mut Agenda) {
        let Self { worker, upstream, key, desk, now } = *self;
        let failure = &Failure::unconnected(&error);
        let dial = Dial { upstream, key, to: &desk.to, failure, now };
        worker.dial_failed(&dial, &error, agenda);
    }
}

/// One connection to an upstream.
pub(crate) struct Line {
    session: Session,
    traffic: Traffic,
}

impl Line {
    /// What follows each turn: those whom it concerns are woken.
    fn settle(&mut self, after: After, agenda: &mut Agenda, now: Instant) -> After {
        self.traffic.wake_all(agenda);
        let worker = &self.traffic.worker;
        worker.end_overdue(self.traffic.upstream, agenda, now);
        worker.show(self.traffic.upstream);
        if after.close.is_some() {
            return after;
        }
        let after = worker.until_next_wait(self.traffic.upstream, after);
        After { idle: self.session.is_ready() && self.traffic.is_idle(), ..after }
    }
}

impl Outbound for Line {
    fn turn(&mut self, turn: &mut Turn<'_, Message>) -> After {
        let desk = &self.traffic.desk;
        if desk.waker.borrow().is_none() {
            *desk.waker.borrow_mut() = Some(Waker::of_outbound(turn));
        }
        self.traffic.eof |= turn.eof;
        self.traffic.now = turn.now;
        let worker = Rc::clone(&self.traffic.worker);
        let after = self.session.turn(turn, &mut worker.bench.borrow_mut(), &mut self.traffic);
        self.settle(after, turn.agenda, turn.now)
    }

    fn shut_down(&mut self, turn: &mut Turn<'_, Message>) -> After {
        self.traffic.worker.draining.set(true);
        if !self.session.is_ready() {
            // Whoever waits for it is still to be answered.
            return self.turn(turn);
        }
        if !self.traffic.is_idle() {
            return self.turn(turn);
        }
        let worker = Rc::clone(&self.traffic.worker);
        let after = self.session.shut_down(turn, &mut worker.bench.borrow_mut(), &mut self.traffic);
        self.settle(after, turn.agenda, turn.now)
    }

    fn flush(&mut self, output: &mut SendQueue, mut sink: &mut dyn io::Write) -> io::Result<Flush> {
        self.session.flush(output, &mut sink)
    }

    fn close(self: Box<Self>, cause: CloseCause, agenda: &mut Agenda) {
        let Self { session, mut traffic } = *self;
        session.close(cause, &mut traffic);
        traffic.worker.show(traffic.upstream);
        traffic.wake_all(agenda);
    }
}
