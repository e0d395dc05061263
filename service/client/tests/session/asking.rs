//! One session on a worker of its own, and the server that it asks.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Flush, SendQueue};
use bolide_client::{Dial, Ending, Established, Orders, Owner, Session, Speaks, Workbench};
use bolide_connection::{ClientTls, Limits, Trust, WallClock};
use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Destination, Limits as LoopLimits, MioKernel, Outbound,
    Service, Turn, Worker,
};
use bolide_semantics::{End, ExchangeEvent, ExchangeId, RequestHead};
use http::Method;

/// Report to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Connected,
    Ready,
    Head(u16),
    Data(Vec<u8>),
    Aborted,
}

/// Result of a request.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) told: Vec<Told>,
    pub(crate) ending: Option<Ending>,
    /// Memory that the session said it keeps when it wanted the connection closed.
    pub(crate) held_bytes: usize,
    /// Bytes that the server read.
    pub(crate) received: Vec<u8>,
}

impl Asked {
    pub(crate) fn body(&self) -> Vec<u8> {
        let pieces = self.told.iter().filter_map(|told| match told {
            Told::Data(data) => Some(data.as_slice()),
            _ => None,
        });
        pieces.collect::<Vec<_>>().concat()
    }
}

#[derive(Default)]
struct Asker {
    asked: Asked,
}

impl Owner for Asker {
    fn connected(&mut self) {
        self.asked.told.push(Told::Connected);
    }

    fn ready(&mut self, _: &Established, orders: &mut Orders<'_>) {
        self.asked.told.push(Told::Ready);
        let head = RequestHead {
            method: &Method::GET,
            scheme: "http",
            authority: "test",
            path: "/ping",
            protocol: None,
            fields: &[],
        };
        assert!(orders.available() > 0);
        orders.send_request(&head, End::Yes).unwrap();
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        self.asked.told.push(match event {
            ExchangeEvent::Head(_) => Told::Head(orders.head().status().as_u16()),
            ExchangeEvent::Data(data, _) => {
                orders.consumed(id, data.len());
                Told::Data(data.to_vec())
            }
            ExchangeEvent::Aborted(_) => Told::Aborted,
            other => panic!("{other:?}"),
        });
    }

    fn settled(&mut self, _: &mut Orders<'_>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn ended(&mut self, ending: &Ending) {
        assert!(self.asked.ending.replace(ending.clone()).is_none(), "told once");
    }
}

struct AskService {
    dial: Dial,
    to: Option<SocketAddr>,
    bench: Workbench,
    done: Rc<RefCell<Option<Asked>>>,
}

impl Service for AskService {
    type Session = (Session, Asker);
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        if let Some(to) = self.to.take() {
            agenda.connect(Destination::Inet(to), 7);
        }
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Self::Session, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(Self::Session, After)> {
        assert_eq!(outbound.tag, 7);
        let session = Session::new(&self.dial, &self.bench, now).unwrap();
        let after = session.first_wish();
        Some(((session, Asker::default()), after))
    }

    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        let after = session.0.turn(turn, &mut self.bench, &mut session.1);
        if after.close.is_some() {
            session.1.asked.held_bytes = after.held_bytes;
        }
        after
    }

    fn shut_down(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        session.0.shut_down(turn, &mut self.bench, &mut session.1)
    }

    fn flush(
        &mut self,
        session: &mut Self::Session,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        session.0.flush(output, sink)
    }

    fn close(&mut self, session: Self::Session, cause: CloseCause, _: &mut Agenda) {
        let (session, mut asker) = session;
        session.close(cause, &mut asker);
        *self.done.borrow_mut() = Some(asker.asked);
    }
}

/// Sends requests to `to`, until the connection is closed.
fn run(speaks: Speaks, to: SocketAddr, timeout: Duration) -> Asked {
    let done = Rc::new(RefCell::new(None));
    let service = AskService {
        dial: Dial { speaks, timeout, preamble: None },
        to: Some(to),
        bench: Workbench::new(Limits::default()),
        done: Rc::clone(&done),
    };
    let mut worker =
        Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), move |_| service);
    let latest = Instant::now() + Duration::from_secs(20);
    while done.borrow().is_none() {
        assert!(Instant::now() < latest, "the connection never ended");
        worker.step(Some(Duration::from_millis(100))).unwrap();
    }
    done.take().unwrap()
}

/// Asks a server that reads once, writes these pieces, and closes.
pub(crate) fn ask(speaks: Speaks, pieces: &'static [&'static [u8]]) -> Asked {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        let mut block = [0; 4096];
        let mut received = Vec::new();
        let count = socket.read(&mut block).unwrap();
        received.extend_from_slice(&block[..count]);
        for piece in pieces {
            socket.write_all(piece).unwrap();
        }
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        // A close with bytes unread would reset what was written. How it ends is the client's choice.
        let _ = socket.read_to_end(&mut received);
        received
    });
    let mut asked = run(speaks, to, Duration::from_secs(10));
    asked.received = serving.join().unwrap();
    asked
}

/// How a connection ends that is not accepted.
pub(crate) fn refused() -> Ending {
    let to = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    run(Speaks::Http1, to, Duration::from_secs(10)).ending.unwrap()
}

/// How a TLS handshake ends that gets no response.
pub(crate) fn silent_handshake() -> Ending {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    run(tls(), to, Duration::from_secs(1)).ending.unwrap()
}

/// TLS that trusts any server.
pub(crate) fn tls() -> Speaks {
    let settings = ClientTls::new(&Trust::Any, &[], WallClock(SystemTime::now)).unwrap();
    Speaks::Tls { settings, server_name: "localhost".to_owned(), required: None }
}
