//! The client's own thread: it reads its post, keeps pools, and makes connections.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramSink, Flush, SendQueue};
use bolide_connection::Limits;
use bolide_eventloop::{
    Accepted, After, Agenda, Arriving, CloseCause, DatagramFlush, Destination, Outbound, Routed,
    Service, Token, Turn,
};
use slab::Slab;

use super::command_queue::{Command, CommandQueue, Job, Origin};
use super::connection::{ClientConnection, ConnectionExchanges};
use super::error::{ClientError, ErrorKind};
use super::pending_request::PendingRequest;
use crate::{ConnectionKey, Dial, Pool, PoolLimits, Session, Workbench};

/// What is left for a connection to look at.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTasks {
    pub(crate) token: Option<Token>,
    pub(crate) inbox: Vec<Arc<PendingRequest>>,
}

/// One server, as the client knows it.
#[derive(Debug)]
pub(crate) struct Host {
    origin: Origin,
    pub(crate) pool: Pool<usize, Arc<PendingRequest>>,
    dial: Dial,
    destinations: Vec<Destination>,
    next: usize,
    /// Connections in a row that could not be made.
    pub(crate) failures: usize,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct ClientState {
    pub(crate) hosts: Slab<Host>,
    by_origin: BTreeMap<Origin, usize>,
    pub(crate) tasks: Slab<ConnectionTasks>,
    pool_limits: PoolLimits,
}

/// A connection that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialling {
    pub(crate) host: usize,
    pub(crate) key: ConnectionKey,
    pub(crate) tasks: usize,
}

/// The service of the client's thread.
#[derive(Debug)]
pub(crate) struct Agent {
    client_state: Rc<RefCell<ClientState>>,
    bench: Workbench,
    post: Arc<CommandQueue>,
    commands: Vec<Command>,
    dials: Slab<Dialling>,
}

/// Requests wait for as long as their callers do.
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(366 * 24 * 3600);

impl ClientState {
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
            _ if matches!(job.destinations[..], [Destination::Datagrams(_), ..]) => Some(true),
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

    /// Takes a new request. Returns the connection that is to be called.
    fn begin(&mut self, job: Job) -> (usize, Option<Token>) {
        let host = self.host(&job);
        let pool = &mut self.hosts[host].pool;
        if let Some(tasks) = pool.take() {
            let tasks = *tasks;
            let mut state = job.pending.lock();
            state.connection = Some(tasks);
            state.listed = true;
            drop(state);
            let tasks = &mut self.tasks[tasks];
            tasks.inbox.push(job.pending);
            return (host, tasks.token);
        }
        match pool.wait(Arc::clone(&job.pending), Instant::now()) {
            Ok(key) => job.pending.lock().waits = Some((host, key)),
            Err(pending) => {
                let what = "as many requests wait for this server as may";
                pending.fail(ClientError::new(ErrorKind::Full, what));
            }
        }
        (host, None)
    }

    /// A caller has left something.
    fn look(&mut self, pending: Arc<PendingRequest>) -> Option<Token> {
        let mut state = pending.lock();
        let Some(connection) = state.connection else {
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
        let tasks = self.tasks.get_mut(connection)?;
        tasks.inbox.push(pending);
        tasks.token
    }

    /// A connection could not be made: another address is tried, or those who wait are told.
    pub(crate) fn dial_failed(&mut self, dialling: Dialling, error: &ClientError) {
        let host = &mut self.hosts[dialling.host];
        host.next = (host.next + 1) % host.destinations.len();
        host.failures += 1;
        let waiting = host.pool.closed(dialling.key);
        let tries_another = !host.failures.is_multiple_of(host.destinations.len());
        for pending in waiting {
            if !tries_another {
                pending.fail(error.clone());
                continue;
            }
            match host.pool.wait(Arc::clone(&pending), Instant::now()) {
                Ok(key) => pending.lock().waits = Some((dialling.host, key)),
                Err(pending) => pending.fail(error.clone()),
            }
        }
        self.tasks.remove(dialling.tasks);
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
    pub(crate) fn new(
        limits: Limits,
        connections: usize,
        waiting: usize,
        post: Arc<CommandQueue>,
    ) -> Self {
        let pool_limits = PoolLimits {
            connections_count: connections.max(1),
            waiting_count: waiting,
            wait_timeout: UNTIL_GIVEN_UP,
        };
        let client_state = ClientState {
            hosts: Slab::new(),
            by_origin: BTreeMap::new(),
            tasks: Slab::new(),
            pool_limits,
        };
        Self {
            client_state: Rc::new(RefCell::new(client_state)),
            bench: Workbench::new(limits),
            post,
            commands: Vec::new(),
            dials: Slab::new(),
        }
    }

    /// Makes the connections that are wanted to a server.
    fn dial(&mut self, host: usize, agenda: &mut Agenda) {
        let client_state = &mut *self.client_state.borrow_mut();
        let Some(known) = client_state.hosts.get_mut(host) else { return };
        if known.failures > 0 && known.pool.census().open > 0 {
            // Those that there are do; to try again at once would only fail again.
            return;
        }
        for _ in 0..known.pool.dials_wanted() {
            let tasks = client_state.tasks.insert(ConnectionTasks::default());
            let key = known.pool.dial(tasks);
            let tag = self.dials.insert(Dialling { host, key, tasks });
            agenda.connect(known.destinations[known.next].clone(), tag as u64);
        }
    }

    /// What follows a turn of a connection.
    fn settle(&mut self, host: usize, agenda: &mut Agenda) {
        self.dial(host, agenda);
        self.client_state.borrow_mut().tidy(host);
    }
}

impl Service for Agent {
    type Session = ClientConnection;
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        let mut commands = std::mem::take(&mut self.commands);
        self.post.take(&mut commands);
        for command in commands.drain(..) {
            let called = match command {
                Command::Begin(job) => {
                    let (host, called) = self.client_state.borrow_mut().begin(*job);
                    self.settle(host, agenda);
                    called
                }
                Command::Look(pending) => self.client_state.borrow_mut().look(pending),
            };
            if let Some(token) = called {
                agenda.call(token);
            }
        }
        self.commands = commands;
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(ClientConnection, After)> {
        None
    }

    fn connecting(
        &mut self,
        outbound: &Outbound,
        now: Instant,
    ) -> Option<(ClientConnection, After)> {
        let dialling = self.dials.remove(outbound.tag as usize);
        let mut client_state = self.client_state.borrow_mut();
        let dial = &client_state.hosts[dialling.host].dial;
        match Session::begin(dial, outbound, &mut self.bench, now) {
            Ok(session) => {
                client_state.tasks[dialling.tasks].token = Some(outbound.token);
                let after = session.first_wish();
                let exchanges = ConnectionExchanges::new(Rc::clone(&self.client_state), dialling);
                Some((ClientConnection { session, exchanges }, after))
            }
            Err(error) => {
                let error = ClientError::new(ErrorKind::Request, error.to_string());
                client_state.dial_failed(dialling, &error);
                None
            }
        }
    }

    fn connect_failed(&mut self, tag: u64, error: io::Error, agenda: &mut Agenda) {
        let dialling = self.dials.remove(tag as usize);
        self.client_state.borrow_mut().dial_failed(dialling, &ClientError::unconnected(&error));
        self.settle(dialling.host, agenda);
    }

    fn turn(&mut self, connection: &mut ClientConnection, turn: &mut Turn<'_, ()>) -> After {
        connection.exchanges.eof |= turn.eof;
        let host = connection.exchanges.host();
        let after = connection.session.turn(turn, &mut self.bench, &mut connection.exchanges);
        self.settle(host, turn.agenda);
        if after.close.is_some() {
            return after;
        }
        After { idle: connection.session.is_ready() && connection.exchanges.is_idle(), ..after }
    }

    fn shut_down(&mut self, connection: &mut ClientConnection, turn: &mut Turn<'_, ()>) -> After {
        let host = connection.exchanges.host();
        connection.exchanges.draws_to_its_end();
        let after = connection.session.shut_down(turn, &mut self.bench, &mut connection.exchanges);
        self.settle(host, turn.agenda);
        after
    }

    fn flush(
        &mut self,
        connection: &mut ClientConnection,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        connection.session.flush(output, sink)
    }

    fn datagram(
        &mut self,
        _: Option<usize>,
        datagram: Datagram,
        _: Arriving,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        self.bench.datagram(datagram, now, sink)
    }

    fn flush_datagrams(
        &mut self,
        connection: &mut ClientConnection,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        self.bench.flush_datagrams(&mut connection.session, sink)
    }

    fn close(&mut self, connection: ClientConnection, cause: CloseCause, agenda: &mut Agenda) {
        let ClientConnection { mut session, mut exchanges } = connection;
        self.bench.forget(&mut session, Instant::now());
        let host = exchanges.host();
        session.close(cause, &mut exchanges);
        self.settle(host, agenda);
    }
}
