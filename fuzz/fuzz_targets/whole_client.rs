//! A client that sends requests as it can to a server that follows a script.

#![no_main]

use std::io;
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use bolide_buffers::{Flush, SendQueue};
use bolide_client::{Dial, Ending, Established, Orders, Owner, Session, Speaks, Workbench};
use bolide_connection::Limits;
use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Destination, Limits as LoopLimits, Outbound, Service, Turn,
};
use bolide_fuzz::{Party, Script, network, run};
use bolide_semantics::{End, ExchangeEvent, ExchangeId, FieldName, FieldRef, RequestHead};
use bolide_simnet::Simulation;
use bytes::Bytes;
use http::Method;
use libfuzzer_sys::fuzz_target;

const SERVER: &str = "203.0.113.1:9000";

/// How many requests a client sends.
const REQUESTS: usize = 8;

/// How long it waits for a response.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Arbitrary)]
struct Plan {
    server: Script,
    bodies: [u16; 4],
    takes: bool,
}

/// Sends requests, and takes responses or leaves them.
struct Asker {
    bodies: [u16; 4],
    takes: bool,
    sent: usize,
    until: Instant,
    ended: u32,
}

impl Owner for Asker {
    fn ready(&mut self, _: &Established, orders: &mut Orders<'_>) {
        self.settled(orders);
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        match event {
            ExchangeEvent::Data(data, _) if self.takes => orders.consumed(id, data.len()),
            _ => {}
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        while self.sent < REQUESTS && orders.available() > 0 {
            let body = usize::from(self.bodies[self.sent % 4]);
            let length = body.to_string();
            let fields = [FieldRef::known(FieldName::ContentLength, length.as_bytes())];
            let (scheme, authority, path, protocol) = ("http", "a", "/", None);
            let method = if body == 0 { &Method::GET } else { &Method::POST };
            let fields = if body == 0 { &[][..] } else { &fields };
            let head = RequestHead { method, scheme, authority, path, protocol, fields };
            let end = if body == 0 { End::Yes } else { End::No };
            let Ok(id) = orders.send_request(&head, end) else { return };
            self.sent += 1;
            if body > 0 {
                // It may have been ended meanwhile.
                let _ = orders.send_data(id, Bytes::from(vec![b'b'; body]), End::Yes);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.until)
    }

    fn ended(&mut self, _: &Ending) {
        self.ended += 1;
        assert_eq!(self.ended, 1, "the end is told once");
    }
}

struct Client {
    bench: Workbench,
    plan: Option<([u16; 4], bool)>,
    is_h2: bool,
}

impl Service for Client {
    type Session = (Session, Asker);
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        if self.plan.is_some() {
            agenda.connect(Destination::Inet(SERVER.parse().expect("an address")), 0);
        }
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Self::Session, After)> {
        None
    }

    fn connecting(&mut self, _: &Outbound, now: Instant) -> Option<(Self::Session, After)> {
        let speaks = if self.is_h2 { Speaks::Http2 } else { Speaks::Http1 };
        let dial = Dial { speaks, timeout: Duration::from_secs(10), preamble: None };
        let session = Session::new(&dial, &self.bench, now).ok()?;
        let after = session.first_wish();
        let (bodies, takes) = self.plan.take()?;
        let asker = Asker { bodies, takes, sent: 0, until: now + PATIENCE, ended: 0 };
        Some(((session, asker), after))
    }

    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        let after = session.0.turn(turn, &mut self.bench, &mut session.1);
        if turn.now >= session.1.until { After::CLOSED } else { after }
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

    fn close(&mut self, session: Self::Session, cause: CloseCause, _: &mut Agenda) {
        let (session, mut asker) = session;
        session.close(cause, &mut asker);
        assert_eq!(asker.ended, 1, "the end is told");
    }
}

fuzz_target!(|plan: Plan| {
    let Plan { server, bodies, takes } = plan;
    let client = Client {
        bench: Workbench::new(Limits::default()),
        plan: Some((bodies, takes)),
        is_h2: server.is_h2,
    };
    let faults = network(server.piece);
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), |_| client);
    simulation.answer(Destination::Inet(SERVER.parse().expect("an address")), move || {
        Party::new(server.clone(), false)
    });
    run(simulation);
});
