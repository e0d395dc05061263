//! Limits of one connection before the others have their turn, in whatever its events travel.

use std::cell::Cell;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{ClientTls, Trust, WallClock};
use bolide_eventloop::{Limits as LoopLimits, MioKernel, MioListener, Worker};
use bolide_frames::{client_preface, data, websocket, websocket_request};
use bolide_launcher::decide;
use bolide_semantics::End;
use bolide_simnet::{Faults, Simulation, Wire};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

use super::simulated::tls;
use super::*;
use crate::limits::PASS_EVENTS_COUNT;
use crate::websocket::{Kind, Options, Owner, Payload, Socket, WebSocket};
use crate::{Exchange, Io, Reply, Request, Response};

/// How many chunks, frames or messages are sent.
const EVENTS: u32 = 20_000;

/// Counts what it is told.
#[derive(Debug, Clone, Default)]
struct Count(Rc<Cell<u32>>);

impl Count {
    fn add(&self) {
        self.0.set(self.0.get() + 1);
    }
}

impl Exchange for Count {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        self.add();
        io.consumed(data.len());
    }
}

impl Owner for Count {
    fn on_message(&mut self, _: Kind, _: Payload, _: End, _: &mut Socket<'_, '_>) {
        self.add();
    }
}

/// The most that one turn of the loop has done.
#[derive(Debug, Default)]
struct Most {
    events: u32,
    /// Of the processor.
    time: Duration,
}

/// Sends `opening` and then `event` many times at once: the most of a turn, and of its events.
fn most_of_a_turn(opening: &[u8], event: &[u8]) -> Most {
    let count = Count::default();
    let (body, messages) = (count.clone(), count.clone());
    let options = Options::new();
    let router = Router::new()
        .post("/count", move |_: &mut Request<'_>| Reply::Exchange(Box::new(body.clone())))
        .websocket("/ws", move |request: &mut Request<'_>| {
            WebSocket::accept(request, &options, messages.clone())
        });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut worker = Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), |_| {
        let now = Instant::now();
        HttpService::new(router, Limits::default(), vec![None], SystemTime::now, now)
    });
    worker.listen(MioListener::new(listener.into()).unwrap(), 0).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(opening).unwrap();
    client.write_all(&event.repeat(EVENTS as usize)).unwrap();
    let mut most = Most::default();
    while count.0.get() < EVENTS {
        let before = (count.0.get(), processor_time());
        worker.step(Some(Duration::from_millis(1))).unwrap();
        most.events = most.events.max(count.0.get() - before.0);
        most.time = most.time.max(processor_time().saturating_sub(before.1));
        let stats = worker.stats();
        assert!(stats.open == 1 || stats.accepted == 0, "closed after {} events", count.0.get());
    }
    assert_eq!(worker.stats().panics, 0);
    most
}

/// Returns what this thread had of the processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// A connection may have two calls in a turn of the loop: for what its socket brought, and from the run queue.
const MOST: u32 = 2 * PASS_EVENTS_COUNT;

/// How likely it is, at most, that turns which take too long are measured as short ones.
const BY_CHANCE: f64 = 0.01;

#[test]
fn a_connection_with_one_byte_chunks_lets_the_others_have_their_turns() {
    let opening = b"POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let most = most_of_a_turn(opening, b"1\r\nx\r\n");
    assert!(most.events <= MOST, "{most:?}, chunks");
}

#[test]
fn a_connection_with_small_data_frames_lets_the_others_have_their_turns() {
    let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let block = b"\x83\x86\x04\x06/count\x01\x01a";
    opening.extend_from_slice(&[0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1]);
    opening.extend_from_slice(block);
    // As small as those that no budget counts.
    let frame = [&[0, 0, 17, 0, 0, 0, 0, 0, 1][..], &[b'x'; 17]].concat();
    let most = most_of_a_turn(&opening, &frame);
    assert!(most.events <= MOST, "{most:?}, frames");
}

#[test]
fn a_connection_with_messages_of_one_byte_lets_the_others_have_their_turns() {
    let opening = b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let most = most_of_a_turn(opening, &[0x82, 0x81, 0, 0, 0, 0, b'x']);
    assert!(most.events <= MOST, "{most:?}, messages");
}

#[test]
fn websocket_messages_of_one_byte_over_http2_keep_the_others_waiting_for_at_most_5_ms() {
    let opening = [client_preface(&[]), websocket_request(1, "/ws")].concat();
    // DATA frames of 21 bytes, as small as those that no budget counts.
    let frame = data(1, false, &websocket(0x82, b"x").repeat(3));
    let decided = decide(BY_CHANCE, || {
        let most = most_of_a_turn(&opening, &frame);
        assert!(most.events <= MOST, "{most:?}");
        if most.time <= Duration::from_millis(5) { Ok(()) } else { Err(most) }
    });
    decided.unwrap();
}

/// Counts the bytes of a body.
#[derive(Debug, Clone, Default)]
struct Bytewise(Count, Rc<Cell<u32>>);

impl Exchange for Bytewise {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        self.1.set(self.1.get() + data.len() as u32);
        io.consumed(data.len());
        if end == End::Yes {
            self.0.add();
            io.respond(Response::from("all of it"));
        }
    }
}

/// Sends a request whose body comes in records of one byte, and ends its side behind them.
fn in_small_records(tls: &ClientTls) -> impl FnMut(&mut Wire<'_>) + use<> {
    let mut layer = tls.connect("a").expect("a name");
    let (mut read, mut is_sent) = (0, false);
    move |wire: &mut Wire<'_>| {
        if is_sent {
            return;
        }
        let mut input = ReceiveBuffer::new(65_536);
        input.start(&wire.received()[read..]);
        read = wire.received().len();
        layer.receive(&mut input, &mut ReceiveBuffer::new(65_536)).expect("a handshake");
        let (mut bytes, mut queue) = (Vec::new(), SendQueue::new());
        layer.flush(&mut queue, &mut bytes).expect("memory takes everything");
        if !layer.is_handshaking() {
            is_sent = true;
            let head =
                format!("POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {EVENTS}\r\n\r\n");
            queue.tail().extend_from_slice(head.as_bytes());
            layer.flush(&mut queue, &mut bytes).expect("memory takes everything");
            for _ in 0..EVENTS {
                queue.tail().push(b'x');
                layer.flush(&mut queue, &mut bytes).expect("memory takes everything");
            }
            layer.close();
            layer.flush(&mut queue, &mut bytes).expect("memory takes everything");
        }
        wire.send(&bytes);
        if is_sent {
            wire.finish();
        }
    }
}

#[test]
fn a_connection_with_one_byte_records_lets_the_others_have_their_turns_and_is_read_to_its_end() {
    let count = Bytewise::default();
    let body = count.clone();
    let router = Router::new()
        .post("/count", move |_: &mut Request<'_>| Reply::Exchange(Box::new(body.clone())));
    let (server, _) = tls(SystemTime::now);
    let client = ClientTls::new(&Trust::Any, &[], WallClock(SystemTime::now)).expect("settings");
    let buffer_bytes = 1 << 20;
    let segment_bytes = buffer_bytes..=buffer_bytes;
    let faults = Faults { segment_bytes, buffer_bytes, ..Faults::none() };
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), |_| {
        let now = Instant::now();
        HttpService::new(router, Limits::default(), vec![Some(server)], SystemTime::now, now)
    });
    simulation.connect(in_small_records(&client));
    let mut most = 0;
    while count.0.0.get() == 0 {
        let before = count.1.get();
        assert!(simulation.step(Some(Duration::from_secs(1))), "only {before} bytes");
        most = most.max(count.1.get() - before);
    }
    assert_eq!(count.1.get(), EVENTS);
    // Two calls, each of 48 KiB that are not content.
    assert!(most <= 5000, "{most} records in a turn");
}
