//! Uploads on a simulated path: how fast the windows let them be, and what stalled ones hold.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::Limits as ConnectionLimits;
use bolide_eventloop::Limits as LoopLimits;
use bolide_semantics::{Context, End, ExchangeEvent, OutgoingHead, Output, Start};
use bolide_simnet::{Faults, Simulation, Wire};
use bytes::Bytes;
use http::Method;

use super::*;
use crate::{Exchange, Io, Reply, Request, body_limit};

const MIB: usize = 1 << 20;

/// What each upload of the table sends.
const UPLOAD_BYTES: usize = 16 * MIB;

/// What a handler has received of its requests, and when the latest came.
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

fn service(limits: Limits, received: &Received, stalls: bool) -> HttpService {
    let received = Rc::clone(received);
    let sink = move |_: &mut Request<'_>| {
        Reply::Exchange(Box::new(Sink { received: Rc::clone(&received), stalls, kept: Vec::new() }))
    };
    let router = Router::new().handle(Method::PUT, "/", body_limit(u64::MAX, sink));
    HttpService::new(router, limits, vec![None], || SystemTime::UNIX_EPOCH, Instant::now())
}

/// A client that uploads so many bytes over HTTP/2, as fast as windows and path allow.
fn upload(bytes: usize) -> impl FnMut(&mut Wire<'_>) {
    let start = Instant::now();
    let limits = ConnectionLimits::default();
    let mut connection = Connection::with_prior_knowledge(&limits, start);
    let (mut input, mut output) = (ReceiveBuffer::new(65_536), SendQueue::new());
    let (mut head, mut read, mut left, mut asked) = (Head::default(), 0, bytes, None);
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    move |wire: &mut Wire<'_>| {
        input.start(&[]);
        input.extend(&wire.received()[read..]);
        read = wire.received().len();
        let now = start + wire.now();
        let output_limit = 512 * 1024;
        let mut cx =
            Context { input: &mut input, output: &mut output, output_limit, head: &mut head, now };
        let mut sendable = false;
        if asked.is_none() {
            let (method, path) = (&Method::PUT, "/");
            let start =
                Start::Request { method, scheme: "http", authority: "a", path, protocol: None };
            let request = OutgoingHead { start, fields: std::iter::empty() };
            asked = connection.send_request(&mut cx, request, End::No).ok();
            sendable = true;
        }
        let id = asked.expect("a request can be sent at once");
        loop {
            while sendable && left > 0 && wire.unsent() < MIB {
                let data = piece.slice(..left.min(piece.len()));
                left -= data.len();
                sendable = connection.send_data(&mut cx, id, data, End::No).expect("in order");
            }
            match connection.poll(&mut cx, &limits) {
                Output::Exchange(_, ExchangeEvent::Sendable) => sendable = true,
                Output::Closed(_) | Output::Wait(_) => break,
                Output::Exchange(..) | Output::Connection(_) => {}
            }
        }
        read = wire.received().len() - input.len();
        let mut bytes = Vec::new();
        connection.flush(&mut output, &mut bytes).expect("memory takes everything");
        if !bytes.is_empty() && !wire.was_reset() && !wire.eof() {
            wire.send(&bytes);
        }
    }
}

/// How much of the path's rate an upload used, in per cent, over its second half.
fn used_percent(rtt_ms: u64, rate_mbit: u64, windows_bytes: u64) -> u64 {
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
    let make = |_| service(limits, &received, false);
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), make);
    simulation.connect(upload(UPLOAD_BYTES));
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
1 500 100 100 99
50 100 100 100 92
50 500 100 69 28
100 100 100 100 59
100 500 80 34 15
";

#[test]
fn windows_follow_the_path_as_far_as_the_worker_has_memory() {
    let mut table = "rtt rate 256M 4M 0\n".to_owned();
    for rtt_ms in [1, 50, 100] {
        for rate_mbit in [100, 500] {
            let _ = write!(table, "{rtt_ms} {rate_mbit}");
            for windows_bytes in [256 * MIB as u64, 4 * MIB as u64, 0] {
                let _ = write!(table, " {}", used_percent(rtt_ms, rate_mbit, windows_bytes));
            }
            table.push('\n');
        }
    }
    assert_eq!(table, TABLE, "\n{table}");
}

#[test]
fn a_thousand_uploads_that_stall_hold_one_stream_window_each() {
    const UPLOADS: usize = 1000;
    let received = Received::default();
    let make = |_| service(Limits::default(), &received, true);
    let faults = Faults { segment_bytes: 16 * 1024..=16 * 1024, ..Faults::none() };
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), make);
    for _ in 0..UPLOADS {
        simulation.connect(upload(MIB));
    }
    simulation.run_for(Duration::from_secs(5));
    let window = Limits::default().connection.h2.stream_window_bytes as usize;
    assert_eq!(received.borrow().0, UPLOADS * window);
}
