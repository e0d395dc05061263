//! Uploads on a simulated path: how fast the windows let them be, and what stalled ones hold.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{ClientTls, Limits as ConnectionLimits, ServerTls};
use bolide_eventloop::Limits as LoopLimits;
use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Output, RequestHead, Role};
use bolide_simnet::{Faults, Simulation, Wire};
use bytes::Bytes;
use http::Method;

use super::simulated::tls;
use super::*;
use crate::{Exchange, Io, Reply, Request, body_limit};

const MIB: usize = 1 << 20;

/// Size of each upload of the table.
const UPLOAD_BYTES: usize = 16 * MIB;

/// Bytes that a handler has received of its requests, and when the latest came.
type Received = Rc<RefCell<(usize, Vec<Instant>)>>;

/// Reads and discards; or, if `stalls`, keeps what comes and says nothing.
#[derive(Debug)]
struct Sink {
    received: Received,
    stalls: bool,
    kept: Vec<Bytes>,
}

impl Exchange for Sink {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        let mut received = self.received.borrow_mut();
        let before = received.0 / MIB;
        received.0 += data.len();
        // When each MiB was complete.
        for _ in before..received.0 / MIB {
            received.1.push(io.now());
        }
        if self.stalls {
            self.kept.push(data);
        } else {
            io.consumed(data.len());
        }
    }
}

fn service(
    limits: Limits,
    received: &Received,
    stalls: bool,
    tls: Option<ServerTls>,
) -> HttpService {
    let received = Rc::clone(received);
    let sink = move |_: &mut Request<'_>| {
        Reply::Exchange(Box::new(Sink { received: Rc::clone(&received), stalls, kept: Vec::new() }))
    };
    let router = Router::new().handle(Method::PUT, "/", body_limit(u64::MAX, sink));
    HttpService::new(router, limits, vec![tls], || SystemTime::UNIX_EPOCH, Instant::now())
}

/// The client's end of an upload.
struct Uploader {
    connection: Connection,
    start: Instant,
    input: ReceiveBuffer,
    plain: ReceiveBuffer,
    output: SendQueue,
    head: Head,
    /// How much of what arrived has been used.
    read: usize,
    /// Bytes that are still to be sent.
    left: usize,
    piece: Bytes,
    asked: Option<ExchangeId>,
}

impl Uploader {
    fn new(bytes: usize, tls: Option<&ClientTls>) -> Self {
        let start = Instant::now();
        let connection = match tls {
            None => Connection::with_prior_knowledge(&ConnectionLimits::default(), start),
            Some(tls) => {
                let layer = tls.connect("a").expect("a name");
                Connection::new(Role::Client, Some(layer), start)
            }
        };
        Self {
            connection,
            start,
            input: ReceiveBuffer::new(65_536),
            plain: ReceiveBuffer::new(65_536),
            output: SendQueue::new(),
            head: Head::default(),
            read: 0,
            left: bytes,
            piece: Bytes::from(vec![b'x'; 64 * 1024]),
            asked: None,
        }
    }

    fn advance(&mut self, wire: &mut Wire<'_>) {
        self.input.start(&[]);
        self.input.extend(&wire.received()[self.read..]);
        if self.connection.is_tls() {
            self.connection.open_records(&mut self.input, &mut self.plain);
        }
        self.drive(self.start + wire.now(), wire.unsent() < MIB);
        if self.connection.is_tls() {
            self.connection.keep_records(&mut self.plain);
        }
        self.read = wire.received().len() - self.input.len();
        let mut bytes = Vec::new();
        self.connection.flush(&mut self.output, &mut bytes).expect("memory takes everything");
        if !bytes.is_empty() && !wire.was_reset() && !wire.eof() {
            wire.send(&bytes);
        }
    }

    /// Takes what came, asks once that is possible, and sends what windows and path have `room` for.
    fn drive(&mut self, now: Instant, room: bool) {
        let limits = ConnectionLimits::default();
        let Self { connection, input, plain, output, head, .. } = self;
        let input = if connection.is_tls() { plain } else { input };
        let mut cx = Context { input, output, output_limit: 512 * 1024, head, now };
        let mut sendable = false;
        loop {
            if self.asked.is_none() {
                let (method, path) = (&Method::PUT, "/");
                let request = RequestHead {
                    method,
                    scheme: "http",
                    authority: "a",
                    path,
                    protocol: None,
                    fields: &[],
                };
                self.asked = connection.send_request(&mut cx, &request, End::No).ok();
                sendable = self.asked.is_some();
                assert!(
                    sendable || connection.version().is_none(),
                    "a request can be sent at once"
                );
            }
            while let Some(id) = self.asked
                && sendable
                && self.left > 0
                && room
            {
                let data = self.piece.slice(..self.left.min(self.piece.len()));
                self.left -= data.len();
                sendable = connection.send_data(&mut cx, id, data, End::No).expect("in order");
            }
            match connection.poll(&mut cx, &limits) {
                Output::Exchange(_, ExchangeEvent::Sendable) => sendable = true,
                // A handshake has just ended.
                Output::Wait(_)
                    if self.asked.is_none()
                        && connection.version() == Some(http::Version::HTTP_2) => {}
                Output::Closed(_) | Output::Wait(_) => return,
                Output::Exchange(..) | Output::Connection(_) => {}
            }
        }
    }
}

/// A client that uploads so many bytes over HTTP/2, as fast as windows and path allow.
fn upload(bytes: usize, tls: Option<&ClientTls>) -> impl FnMut(&mut Wire<'_>) + use<> {
    let mut uploader = Uploader::new(bytes, tls);
    move |wire: &mut Wire<'_>| uploader.advance(wire)
}

/// How much of the path's rate an upload used, in per cent, over its second half.
fn used_percent(
    rtt_ms: u64,
    rate_mbit: u64,
    windows_bytes: u64,
    tls: Option<&(ServerTls, ClientTls)>,
) -> u64 {
    let rate_bytes = rate_mbit * 1_000_000 / 8;
    let delay = Duration::from_micros(rtt_ms * 500);
    let faults = Faults {
        delay: delay..=delay,
        rate_bytes,
        segment_bytes: 16 * 1024..=16 * 1024,
        buffer_bytes: 64 * MIB,
        ..Faults::none()
    };
    let received = Received::default();
    let limits = Limits { windows_bytes, ..Limits::default() };
    let (server, client) = tls.map(|(server, client)| (server.clone(), client)).unzip();
    let make = |_| service(limits, &received, false, server.clone());
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), make);
    simulation.connect(upload(UPLOAD_BYTES, client));
    let arrived = |_: &Simulation<_>| received.borrow().0 == UPLOAD_BYTES;
    assert!(simulation.run_until(Duration::from_secs(600), arrived), "{rtt_ms} {rate_mbit}");
    let at = &received.borrow().1;
    let took = at[at.len() - 1] - at[at.len() / 2 - 1];
    let least = (UPLOAD_BYTES / 2) as u128 * 1_000_000 / u128::from(rate_bytes);
    u64::try_from(least * 100 / took.as_micros().max(1)).unwrap_or(u64::MAX)
}

/// Per cent of the path's rate that one upload uses: round trip in ms, rate in Mbit/s, and what the
/// worker has for windows.
const TABLE: &str = "\
rtt rate 256M 4M 0
1 100 100 100 99
1 500 100 100 100
50 100 100 100 92
50 500 100 78 28
100 100 100 100 59
100 500 82 41 15
";

/// The paths of the table, and what the worker has for windows.
const PATHS: [(u64, u64); 6] = [(1, 100), (1, 500), (50, 100), (50, 500), (100, 100), (100, 500)];
const MEMORY: [u64; 3] = [256 * MIB as u64, 4 * MIB as u64, 0];

#[test]
fn windows_follow_the_path_as_far_as_the_worker_has_memory() {
    let mut table = "rtt rate 256M 4M 0\n".to_owned();
    for (rtt_ms, rate_mbit) in PATHS {
        let _ = write!(table, "{rtt_ms} {rate_mbit}");
        for windows_bytes in MEMORY {
            let _ = write!(table, " {}", used_percent(rtt_ms, rate_mbit, windows_bytes, None));
        }
        table.push('\n');
    }
    assert_eq!(table, TABLE, "\n{table}");
}

#[test]
fn windows_grow_over_tls_as_they_do_in_cleartext() {
    let tls = tls(|| SystemTime::UNIX_EPOCH);
    for ((rtt_ms, rate_mbit), row) in PATHS.into_iter().zip(TABLE.lines().skip(1)) {
        for (windows_bytes, cleartext) in MEMORY.into_iter().zip(row.split(' ').skip(2)) {
            let used = used_percent(rtt_ms, rate_mbit, windows_bytes, Some(&tls));
            let cleartext: u64 = cleartext.parse().expect("a number");
            // Records and their tags take some of the path.
            assert!(
                used.abs_diff(cleartext) <= 2,
                "{rtt_ms} ms, {rate_mbit} Mbit/s, {windows_bytes} bytes: {used} %, {cleartext} % in cleartext"
            );
        }
    }
}

#[test]
fn a_thousand_uploads_that_stall_hold_one_stream_window_each() {
    const UPLOADS: usize = 1000;
    let received = Received::default();
    let make = |_| service(Limits::default(), &received, true, None);
    let faults = Faults { segment_bytes: 16 * 1024..=16 * 1024, ..Faults::none() };
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), make);
    for _ in 0..UPLOADS {
        simulation.connect(upload(MIB, None));
    }
    simulation.run_for(Duration::from_secs(5));
    let window = Limits::default().connection.h2.windows.stream_window_bytes as usize;
    assert_eq!(received.borrow().0, UPLOADS * window);
}
