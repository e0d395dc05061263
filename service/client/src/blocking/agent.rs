//! The client's own thread: it reads its post, keeps pools, and makes connections.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::{Datagram, DatagramSink, Flush, SendQueue};
use bolide_connection::Limits;
use bolide_eventloop::{
    Accepted, After, Agenda, Arriving, CloseCause, DatagramFlush, Outbound, Routed, Service, Turn,
};
use slab::Slab;

use super::client_state::{ClientState, ConnectionTasks, Dialling};
use super::connection::{ClientConnection, ConnectionExchanges};
use super::error::{ClientError, ErrorKind};
use super::pending_request::{Command, CommandQueue};
use crate::{Session, Workbench};

/// The service of the client's thread.
#[derive(Debug)]
pub(crate) struct Agent {
    client_state: Rc<RefCell<ClientState>>,
    bench: Workbench,
    post: Arc<CommandQueue>,
    commands: Vec<Command>,
    dials: Slab<Dialling>,
}

impl Agent {
    pub(crate) fn new(
        limits: Limits,
        connections: usize,
        waiting: usize,
        post: Arc<CommandQueue>,
    ) -> Self {
        let client_state = ClientState::new(connections, waiting);
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

    /// Ends a turn of a connection.
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
