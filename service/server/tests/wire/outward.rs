//! Handlers that ask another server, on connections of the same worker.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Instant;

use bolide_eventloop::Outbound as BegunOutbound;
use bolide_server::{
    After, Agenda, Bytes, CloseCause, Destination, Dialled, End, Exchange, Io, Message, Outbound,
    OutwardQuic, Reply, Request, Response, Router, StatusCode, Turn, Waker,
};

use crate::raw_client::Served;

/// Bytes that have come back, or why nothing has.
type Slot = Rc<RefCell<Option<Result<Vec<u8>, io::ErrorKind>>>>;

/// Answers with what the other server says.
#[derive(Debug)]
struct Ask {
    to: SocketAddr,
    slot: Slot,
}

impl Exchange for Ask {
    fn on_start(&mut self, io: &mut Io<'_>) {
        let line = Line { waker: io.waker(), slot: Rc::clone(&self.slot), received: Vec::new() };
        io.outward().connect(Destination::Inet(self.to), Box::new(line));
    }

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        io.consumed(data.len());
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        match self.slot.borrow_mut().take() {
            Some(Ok(bytes)) => io.respond(Response::text(bytes)),
            Some(Err(kind)) => {
                io.respond(Response::text(kind.to_string()).with_status(StatusCode::BAD_GATEWAY))
            }
            None => {}
        }
    }
}

/// The connection behind it.
struct Line {
    waker: Waker,
    slot: Slot,
    received: Vec<u8>,
}

impl Line {
    fn end(&self, result: Result<Vec<u8>, io::ErrorKind>) {
        self.slot.borrow_mut().get_or_insert(result);
        self.waker.wake();
    }
}

impl Dialled for Line {
    fn begin(
        self: Box<Self>,
        _: &BegunOutbound,
        _: &mut OutwardQuic,
        _: Instant,
    ) -> Option<(Box<dyn Outbound>, After)> {
        Some((self, After { more: true, ..After::READ }))
    }

    fn failed(self: Box<Self>, error: io::Error, _: &mut Agenda) {
        self.end(Err(error.kind()));
    }
}

impl Outbound for Line {
    fn turn(&mut self, turn: &mut Turn<'_, Message>, _: &mut OutwardQuic) -> After {
        if self.received.is_empty() && turn.input.is_empty() && !turn.eof {
            turn.output.push(Bytes::from_static(b"hello"));
        }
        self.received.extend_from_slice(&turn.input.take(turn.input.len()));
        if turn.eof {
            let received = std::mem::take(&mut self.received);
            self.end(Ok(received));
            return After::SENT;
        }
        After::READ
    }

    fn shut_down(&mut self, _: &mut Turn<'_, Message>, _: &mut OutwardQuic) -> After {
        After::CLOSED
    }

    fn close(self: Box<Self>, cause: CloseCause, _: &mut OutwardQuic, _: &mut Agenda) {
        if let CloseCause::Failed(kind) = cause {
            self.end(Err(kind));
        }
    }
}

fn asking(to: SocketAddr) -> Served {
    Served::new(move || {
        Router::new().get("/ask", move |_: &mut Request<'_>| {
            Reply::Exchange(Box::new(Ask { to, slot: Slot::default() }))
        })
    })
}

const REQUEST: &[u8] = b"GET /ask HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn a_handler_asks_another_server_and_answers_with_what_it_says() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let served = asking(other.local_addr().expect("an address"));
    let responses = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = other.accept().expect("a connection");
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).expect("a greeting");
            stream.write_all(b"good day, ").expect("it listens");
            stream.write_all(&hello).expect("it listens");
        }
    });
    let mut client = served.connect();
    for _ in 0..2 {
        client.send(REQUEST);
        assert_eq!(client.answer().body, b"good day, hello");
    }
    responses.join().expect("the other server ends");
    drop(client);
    assert_eq!(served.shut_down().outbound, 2);
}

#[test]
fn a_handler_learns_that_nobody_listens() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = other.local_addr().expect("an address");
    drop(other);
    let served = asking(to);
    let mut client = served.connect();
    client.send(REQUEST);
    let response = client.answer();
    assert_eq!((response.status, response.body), (502, b"connection refused".to_vec()));
}
