//! Work that a server may make a client do in one turn of the loop before other connections have theirs.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_buffers::SendQueue;
use bolide_client::{Dial, Ending, Established, Orders, Owner, Session, Speaks, Workbench};
use bolide_connection::Limits;
use bolide_eventloop::{Accepted, After, Agenda, Destination, Outbound, Service, Turn};
use bolide_semantics::{ExchangeEvent, ExchangeId, RequestHead};
use bolide_server::{End, Flush, LoopLimits, Method};
use bolide_simnet::Simulation;

use crate::talk::{Pace, Talk, network};
use crate::wire::CHUNK;

const SERVER: &str = "203.0.113.1:9000";

/// How many chunks the server sends.
const CHUNKS: u32 = 20_000;

/// Sends one request and counts what comes.
struct Counts(Rc<Cell<u32>>);

impl Owner for Counts {
    fn ready(&mut self, _: &Established, orders: &mut Orders<'_>) {
        let (scheme, authority, path, protocol) = ("http", "a", "/", None);
        let method = &Method::GET;
        let head = RequestHead { method, scheme, authority, path, protocol, fields: &[] };
        orders.send_request(&head, End::Yes).expect("a request");
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        self.0.set(self.0.get() + 1);
        if let ExchangeEvent::Data(data, _) = event {
            orders.consumed(id, data.len());
        }
    }

    fn settled(&mut self, _: &mut Orders<'_>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn ended(&mut self, ending: &Ending) {
        panic!("{ending:?}");
    }
}

/// A client with one connection.
struct Client {
    bench: Workbench,
    events: Rc<Cell<u32>>,
    is_asked: bool,
}

impl Service for Client {
    type Session = (Session, Counts);
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        if !std::mem::replace(&mut self.is_asked, true) {
            agenda.connect(Destination::Inet(SERVER.parse().expect("an address")), 0);
        }
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Self::Session, After)> {
        None
    }

    fn connecting(&mut self, _: &Outbound, now: Instant) -> Option<(Self::Session, After)> {
        let timeout = Duration::from_secs(10);
        let dial = Dial { speaks: Speaks::Http1, timeout, preamble: None };
        let session = Session::new(&dial, &self.bench, now).ok()?;
        let after = session.first_wish();
        Some(((session, Counts(Rc::clone(&self.events))), after))
    }

    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        session.0.turn(turn, &mut self.bench, &mut session.1)
    }

    fn shut_down(&mut self, _: &mut Self::Session, _: &mut Turn<'_, ()>) -> After {
        After::CLOSED
    }

    fn flush(
        &mut self,
        session: &mut Self::Session,
        output: &mut SendQueue,
        sink: &mut impl io::Write,
    ) -> io::Result<Flush> {
        session.0.flush(output, sink)
    }
}

#[test]
fn one_byte_chunks_of_a_server_let_other_connections_have_their_turns() {
    let events = Rc::new(Cell::new(0));
    let client = Client {
        bench: Workbench::new(Limits::default()),
        events: Rc::clone(&events),
        is_asked: false,
    };
    let limits = LoopLimits::default();
    let mut simulation = Simulation::with(1, network(128 * 1024), limits, |_| client);
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    simulation.answer(Destination::Inet(SERVER.parse().expect("an address")), move || {
        Talk::new("").opening(head).pieces(CHUNKS as usize, Pace::AtOnce, CHUNK)
    });
    let mut most = 0;
    while events.get() < CHUNKS + 1 {
        let before = events.get();
        assert!(simulation.step(Some(Duration::from_secs(1))), "only {before} events");
        most = most.max(events.get() - before);
    }
    // A connection may have two calls in a turn: for what its socket brought, and from the run queue.
    assert!(most <= 2 * 1024, "{most} events in a turn");
}
