//! The client's own thread: it reads its post, keeps pools, and makes connections.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, SendQueue};
use bolide_connection::Limits;
use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Destination, Outbound, Service, Token, Turn,
};
use slab::Slab;

use super::error::{ClientError, ErrorKind};
use super::line::{Line, Traffic};
use super::post::{Job, Letter, Origin, Post};
use super::ticket::Ticket;
use crate::{Dial, LineKey, Pool, PoolLimits, Session, Workbench};

/// What is left for a line to look at.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) token: Option<Token>,
    pub(crate) inbox: Vec<Arc<Ticket>>,
}

/// One server, as the client knows it.
#[derive(Debug)]
pub(crate) struct Host {
    origin: Origin,
    pub(crate) pool: Pool<usize, Arc<Ticket>>,
    dial: Dial,
    destinations: Vec<Destination>,
    next: usize,
    /// Connections in a row that could not be made.
    pub(crate) failures: usize,
}

/// What all lines share.
#[derive(Debug)]
pub(crate) struct Office {
    pub(crate) hosts: Slab<Host>,
    by_origin: BTreeMap<Origin, usize>,
    pub(crate) desks: Slab<Desk>,
    pool_limits: PoolLimits,
}

/// A connection that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialling {
    pub(crate) host: usize,
    pub(crate) key: LineKey,
    pub(crate) desk: usize,
}

/// The service of the client's thread.
#[derive(Debug)]
pub(crate) struct Agent {
    office: Rc<RefCell<Office>>,
    bench: Workbench,
    post: Arc<Post>,
    letters: Vec<Letter>,
    dials: Slab<Dialling>,
}

/// Requests wait for as long as their callers do.
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(366 * 24 * 3600);

impl Office {
    fn host(&mut self, job: &Job) -> usize {
        if let Some(host) = self.by_origin.get(&job.origin) {
            let known = &mut self.hosts[*host];
            if known.destinations != job.destinations {
                known.destinations.clone_from(&job.destinations);
                known.next = 0;
            }
            return *host;
        }
        let multiplexes = match (job.origin.is_tls, job.origin.is_prior) {
            (false, is_prior) => Some(is_prior),
            (true, _) => None,
        };
        let host = self.hosts.insert(Host {
            origin: job.origin.clone(),
            pool: Pool::new(self.pool_limits, multiplexes),
            dial: job.dial.clone(),
            destinations: job.destinations.clone(),
            next: 0,
            failures: 0,
        });
        self.by_origin.insert(job.origin.clone(), host);
        host
    }

    /// Takes a new request. Returns the line that is to be called.
    fn begin(&mut self, job: Job) -> (usize, Option<Token>) {
        let host = self.host(&job);
        let pool = &mut self.hosts[host].pool;
        if let Some(desk) = pool.take() {
            let desk = *desk;
            let mut state = job.ticket.lock();
            state.line = Some(desk);
            state.listed = true;
            drop(state);
            let desk = &mut self.desks[desk];
            desk.inbox.push(job.ticket);
            return (host, desk.token);
        }
        match pool.wait(Arc::clone(&job.ticket), Instant::now()) {
            Ok(key) => job.ticket.lock().waits = Some((host, key)),
            Err(ticket) => {
                let what = "as many requests wait for this server as may";
                ticket.fail(ClientError::new(ErrorKind::Full, what));
            }
        }
        (host, None)
    }

    /// A caller has left something.
    fn look(&mut self, ticket: Arc<Ticket>) -> Option<Token> {
        let mut state = ticket.lock();
        let Some(line) = state.line else {
            state.listed = false;
            // Nobody waits for it any more.
            if state.abandoned
                && let Some((host, key)) = state.waits.take()
            {
                drop(state);
                self.hosts[host].pool.forget(key);
            }
            return None;
        };
        drop(state);
        let desk = self.desks.get_mut(line)?;
        desk.inbox.push(ticket);
        desk.token
    }

    /// A connection could not be made: another address is tried, or those who wait are told.
    pub(crate) fn dial_failed(&mut self, dialling: Dialling, error: &ClientError) {
        let host = &mut self.hosts[dialling.host];
        host.next = (host.next + 1) % host.destinations.len();
        host.failures += 1;
        let waiting = host.pool.closed(dialling.key);
        let tries_another = !host.failures.is_multiple_of(host.destinations.len());
        for ticket in waiting {
            if !tries_another {
                ticket.fail(error.clone());
                continue;
            }
            match host.pool.wait(Arc::clone(&ticket), Instant::now()) {
                Ok(key) => ticket.lock().waits = Some((dialling.host, key)),
                Err(ticket) => ticket.fail(error.clone()),
            }
        }
        self.desks.remove(dialling.desk);
    }

    /// Forgets servers that nothing is known of any more.
    fn tidy(&mut self, host: usize) {
        if self.hosts.get(host).is_some_and(|host| host.pool.counts() == (0, 0)) {
            let gone = self.hosts.remove(host);
            self.by_origin.remove(&gone.origin);
        }
    }
}

impl Agent {
    pub(crate) fn new(limits: Limits, connections: usize, waiting: usize, post: Arc<Post>) -> Self {
        let pool_limits = PoolLimits {
            connections_count: connections.max(1),
            waiting_count: waiting,
            wait_timeout: UNTIL_GIVEN_UP,
        };
        let office = Office {
            hosts: Slab::new(),
            by_origin: BTreeMap::new(),
            desks: Slab::new(),
            pool_limits,
        };
        Self {
            office: Rc::new(RefCell::new(office)),
            bench: Workbench::new(limits),
            post,
            letters: Vec::new(),
            dials: Slab::new(),
        }
    }

    /// Makes the connections that are wanted to a server.
    fn dial(&mut self, host: usize, agenda: &mut Agenda) {
        let office = &mut *self.office.borrow_mut();
        let Some(known) = office.hosts.get_mut(host) else { return };
        if known.failures > 0 && known.pool.census().open > 0 {
            // Those that there are do; to try again at once would only fail again.
            return;
        }
        for _ in 0..known.pool.dials_wanted() {
            let desk = office.desks.insert(Desk::default());
            let key = known.pool.dial(desk);
            let tag = self.dials.insert(Dialling { host, key, desk });
            agenda.connect(known.destinations[known.next].clone(), tag as u64);
        }
    }

    /// What follows a turn of a line.
    fn settle(&mut self, host: usize, agenda: &mut Agenda) {
        self.dial(host, agenda);
        self.office.borrow_mut().tidy(host);
    }
}

impl Service for Agent {
    type Session = Line;
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        let mut letters = std::mem::take(&mut self.letters);
        self.post.take(&mut letters);
        for letter in letters.drain(..) {
            let called = match letter {
                Letter::Begin(job) => {
                    let (host, called) = self.office.borrow_mut().begin(*job);
                    self.settle(host, agenda);
                    called
                }
                Letter::Look(ticket) => self.office.borrow_mut().look(ticket),
            };
            if let Some(token) = called {
                agenda.call(token);
            }
        }
        self.letters = letters;
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Line, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(Line, After)> {
        let dialling = self.dials.remove(outbound.tag as usize);
        let mut office = self.office.borrow_mut();
        match Session::new(&office.hosts[dialling.host].dial, &self.bench, now) {
            Ok(session) => {
                office.desks[dialling.desk].token = Some(outbound.token);
                let after = session.first_wish();
                let traffic = Traffic::new(Rc::clone(&self.office), dialling);
                Some((Line { session, traffic }, after))
            }
            Err(error) => {
                let error = ClientError::new(ErrorKind::Request, error.to_string());
                office.dial_failed(dialling, &error);
                None
            }
        }
    }

    fn connect_failed(&mut self, tag: u64, error: io::Error, agenda: &mut Agenda) {
        let dialling = self.dials.remove(tag as usize);
        self.office.borrow_mut().dial_failed(dialling, &ClientError::unconnected(&error));
        self.settle(dialling.host, agenda);
    }

    fn turn(&mut self, line: &mut Line, turn: &mut Turn<'_, ()>) -> After {
        line.traffic.eof |= turn.eof;
        let host = line.traffic.host();
        let after = line.session.turn(turn, &mut self.bench, &mut line.traffic);
        self.settle(host, turn.agenda);
        if after.close.is_some() {
            return after;
        }
        After { idle: line.session.is_ready() && line.traffic.is_idle(), ..after }
    }

    fn message(&mut self, line: &mut Line, (): (), turn: &mut Turn<'_, ()>) -> After {
        self.turn(line, turn)
    }

    fn shut_down(&mut self, line: &mut Line, turn: &mut Turn<'_, ()>) -> After {
        let host = line.traffic.host();
        line.traffic.draws_to_its_end();
        let after = line.session.shut_down(turn, &mut self.bench, &mut line.traffic);
        self.settle(host, turn.agenda);
        after
    }

    fn flush(
        &mut self,
        line: &mut Line,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        line.session.flush(output, sink)
    }

    fn close(&mut self, line: Line, cause: CloseCause, agenda: &mut Agenda) {
        let Line { session, mut traffic } = line;
        let host = traffic.host();
        session.close(cause, &mut traffic);
        self.settle(host, agenda);
    }
}
