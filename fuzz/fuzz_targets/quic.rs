//! RFC 9000, RFC 9114: any datagrams, and any frames in packets of a connection whose packets are not protected, up to HTTP/3. Whatever
//! comes, the server does not spin, its account stays within its bound, and it does not panic but for what the transport
//! counts wrongly: that ends the connection, as in a worker.
//!
//! The first byte says whether the handshake is made first. Then steps: a kind, a length, and as many bytes.

#![no_main]

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::Datagram;
use bolide_h3::{Connection as Http, Context, Limits};
use bolide_quic::{Arrived, Connection, Endpoint};
use bolide_semantics::{Content, ExchangeEvent, Head, Output, ResponseHead, Role};
use bolide_tls::WallClock;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use libfuzzer_sys::fuzz_target;

/// The connection's identifiers as the client chose them.
const FIRST: [u8; 8] = *b"original";
const CLIENT: [u8; 4] = *b"mine";

/// The least size of a datagram with an Initial packet, in bytes (RFC 9000 §14.1).
const INITIAL_BYTES: usize = 1200;

/// More than any account of one connection may hold, in bytes: windows, and what is sent and not acknowledged.
const HELD_BYTES: usize = 64 << 20;

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn client() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 50_000))
}

/// RFC 9000 §16, in two bytes.
fn length(bytes: usize) -> [u8; 2] {
    (0x4000 | bytes as u16 & 0x3fff).to_be_bytes()
}

/// RFC 9000 §19.6: a CRYPTO frame at the beginning of its stream.
fn crypto(bytes: &[u8]) -> Vec<u8> {
    [&[6, 0][..], &length(bytes.len()), bytes].concat()
}

/// RFC 9000 §18: what an ordinary client allows.
fn parameters() -> Vec<u8> {
    let mut all = [&[0x0f, CLIENT.len() as u8][..], &CLIENT].concat();
    for id in [4, 5, 6, 7, 8, 9] {
        all.extend([id, 2, 0x60, 0]);
    }
    all
}

/// Everything that a worker has for one connection.
struct Server {
    endpoint: Endpoint,
    quic: Option<Connection>,
    http: Http,
    head: Head,
    now: Instant,
    /// The server's identifier of the connection.
    own: Vec<u8>,
    packets: u32,
    buffer: Vec<u8>,
}

impl Server {
    fn new() -> Self {
        let clock = WallClock(|| SystemTime::UNIX_EPOCH);
        let endpoint = Endpoint::unprotected(clock, [1; 32]).expect("nothing can go wrong");
        let http = Http::new(Role::Server, &Arc::new(Limits::default()), start());
        let (head, now, own) = (Head::default(), start(), FIRST.to_vec());
        Self { endpoint, quic: None, http, head, now, own, packets: 0, buffer: Vec::new() }
    }

    fn datagram(&mut self, bytes: &[u8]) {
        let received = Datagram { from: client(), to: None, ecn: 0, bytes: BytesMut::from(bytes) };
        match self.endpoint.receive(received, false, self.now, &mut self.buffer) {
            Arrived::For(key, delivery) => {
                if let Some(quic) = self.quic.as_mut().filter(|quic| quic.key() == key) {
                    quic.deliver(&mut self.endpoint, delivery, self.now);
                }
            }
            Arrived::New(_, quic) if self.quic.is_none() => self.quic = Some(*quic),
            Arrived::New(_, quic) => quic.forget(&mut self.endpoint),
            _ => {}
        }
        self.turn();
    }

    /// RFC 9000 §17: a packet with these frames. `first`: its type, with a packet number of four bytes.
    fn packet(&mut self, first: u8, frames: &[u8]) {
        self.packets += 1;
        let (number, mut packet) = (self.packets.to_be_bytes(), vec![first]);
        if first & 0x80 == 0 {
            packet.extend_from_slice(&self.own);
        } else {
            packet.extend([0, 0, 0, 1, self.own.len() as u8]);
            packet.extend_from_slice(&self.own);
            packet.push(CLIENT.len() as u8);
            packet.extend_from_slice(&CLIENT);
            let is_initial = first & 0x30 == 0;
            packet.extend(is_initial.then_some(0));
            let padded = if is_initial { INITIAL_BYTES } else { 4 };
            let payload = frames.len().max(padded);
            packet.extend(length(4 + payload));
            packet.extend(number);
            packet.extend_from_slice(frames);
            packet.resize(packet.len() + payload - frames.len(), 0);
            return self.datagram(&packet);
        }
        packet.extend(number);
        packet.extend_from_slice(frames);
        packet.resize(packet.len().max(25), 0);
        self.datagram(&packet);
    }

    /// The connection has its turn.
    fn turn(&mut self) {
        let Some(quic) = &mut self.quic else { return };
        quic.advance(&mut self.endpoint, self.now);
        for polls in 0.. {
            assert!(polls < 100_000, "it spins");
            let cx = &mut Context { quic, head: &mut self.head, now: self.now };
            match self.http.poll(cx) {
                Output::Wait(_) | Output::Closed(_) => break,
                Output::Connection(_) => {}
                Output::Exchange(id, ExchangeEvent::Head(_)) => {
                    let head = ResponseHead::new(StatusCode::OK, &[]);
                    let content = Content::Whole(&mut Bytes::from_static(&[7; 3000]).into());
                    let _ = self.http.send_response(cx, id, &head, content);
                }
                Output::Exchange(id, ExchangeEvent::Data(bytes, _)) => {
                    self.http.consumed(cx, id, bytes.len());
                }
                Output::Exchange(..) => {}
            }
        }
        for batches in 0.. {
            assert!(batches < 100_000, "it sends without end");
            let Some(sent) = quic.send(&mut self.endpoint, &mut self.buffer) else { break };
            // RFC 9000 §17.2: its own identifier, after the client's.
            if let Some([first, _, _, _, _, 4, _, _, _, _, count, rest @ ..]) =
                self.buffer.get(..sent.bytes)
                && first & 0x80 != 0
                && let Some(own) = rest.get(..usize::from(*count))
            {
                self.own = own.to_vec();
            }
        }
        let held = quic.held_bytes() + self.http.held_bytes();
        assert!(held <= HELD_BYTES, "{held} bytes are held");
        if quic.is_over() {
            self.quic = None;
        }
    }
}

/// Lets panics of the transport unwind; all others end the process, as a fuzz target's do.
fn spare_the_transport() {
    let abort = take_hook();
    set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|at| at.file().contains("quinn-proto")) {
            abort(panic);
        }
    }));
}

fuzz_target!(init: spare_the_transport(), |input: &[u8]| {
    // What unwinds is the end of the connection.
    let _ = catch_unwind(AssertUnwindSafe(|| converse(input)));
});

fn converse(input: &[u8]) {
    let Some((first, mut rest)) = input.split_first() else { return };
    let mut server = Server::new();
    if first & 1 == 1 {
        server.packet(0xc3, &crypto(&parameters()));
        server.packet(0xe3, &crypto(b"done"));
        // SETTINGS on the control stream.
        server.packet(0x43, &[0x0a, 2, 3, 0, 4, 0]);
    }
    for _ in 0..64 {
        let Some(([step, count], after)) = rest.split_first_chunk::<2>() else { return };
        let (bytes, after) = after.split_at(usize::from(*count).min(after.len()));
        rest = after;
        match step % 6 {
            0 => {
                server.now += Duration::from_millis(u64::from(*count) * 50);
                server.turn();
            }
            1 => server.datagram(bytes),
            2 => server.packet(0xc3, bytes),
            3 => server.packet(0xe3, bytes),
            4 => server.packet(0xc3, &crypto(bytes)),
            _ => server.packet(0x43, bytes),
        }
    }
}
