//! Non-interference: what a connection is told and what its handler sees is the same whatever the others of its worker
//! send.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_eventloop::Limits as LoopLimits;
use bolide_frames::{client_preface, frame};
use bolide_simnet::{Faults, Random, Simulation, Wire, for_each_seed};

use super::simulated::wall_clock;
use super::*;
use crate::Request;

const SEEDS: u64 = 128;

/// Longer than every deadline of a server.
const LONG: Duration = Duration::from_secs(3600);

/// Observations of the handlers of one connection, by its name.
type Log = Rc<RefCell<Vec<String>>>;

/// A worker whose handlers answer with everything that a request says, and note it.
fn service(log: &Log) -> HttpService {
    let log = Rc::clone(log);
    let says = move |request: &mut Request<'_>| {
        let head = request.head();
        let mut text = format!("{} {}", head.method(), head.path_and_query());
        for field in head.fields() {
            text += &format!("\n{}: {}", field.name, field.value.escape_ascii());
        }
        log.borrow_mut().push(text.clone());
        text
    };
    let echo = says.clone();
    let router = Router::new().get("/echo", says).get("/other/{id}", echo).get("/ping", |_| "pong");
    let now = Instant::now();
    HttpService::new(router, Limits::default(), vec![None, None], wall_clock, now)
}

/// Pieces that a client sends, and after how long it sends the next.
type Script = Vec<(Vec<u8>, Duration)>;

/// A request over HTTP/1.1. Few kinds, so that different clients send the same, or nearly.
fn http1(name: &str, random: &mut Random) -> Vec<u8> {
    let path = ["/echo", "/ping", "/other/7", "/none"][random.within(0..=3)];
    let secret = if random.once_in(2) { format!("cookie: {name}\r\n") } else { String::new() };
    let wrong = if random.once_in(12) { "x y: z\r\n" } else { "" };
    format!("GET {path}?{name} HTTP/1.1\r\nhost: a\r\n{secret}{wrong}\r\n").into_bytes()
}

fn string(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

/// A header block: fields that enter the table, fields from it, changes of its size, and sometimes what is wrong.
fn block(name: &str, random: &mut Random) -> Vec<u8> {
    let mut block = Vec::new();
    for size in [0_u8, 0x3f].into_iter().filter(|_| random.once_in(6)) {
        block.extend(if size == 0 { vec![0x20] } else { vec![0x3f, 0xe1, 0x1f] });
    }
    block.extend([0x82, 0x86, 0x41]);
    block.extend(string("a"));
    let path = ["/echo", "/ping", "/other/7"][random.within(0..=2)];
    if random.once_in(2) {
        // The same bytes for every client: an entry of the dynamic table, whatever that is.
        block.extend([0x84 + 0x3a + random.within(0..=3) as u8]);
    }
    block.push(if random.once_in(2) { 0x44 } else { 0x04 });
    block.extend(string(&format!("{path}?{name}")));
    for _ in 0..random.within(0..=3) {
        block.push(0x40);
        block.extend(string(["x-a", "cookie", "x-b"][random.within(0..=2)]));
        block.extend(string(if random.once_in(2) { name } else { "same" }));
    }
    block
}

fn http2(name: &str, random: &mut Random) -> Script {
    let mut script = vec![(client_preface(&[]), Duration::ZERO)];
    for index in 0..random.within(1..=8) as u32 {
        let stream = 1 + 2 * index;
        let block = block(name, random);
        let bytes = if random.once_in(4) {
            let (first, rest) = block.split_at(block.len() / 2);
            [frame(1, 1, stream, first), frame(9, 4, stream, rest)].concat()
        } else {
            frame(1, 5, stream, &block)
        };
        script.push((bytes, Duration::from_millis(random.within(0..=3) as u64)));
    }
    script
}

fn script(name: &str, random: &mut Random) -> Script {
    if random.once_in(2) {
        return http2(name, random);
    }
    let requests = 0..random.within(1..=8);
    let wait = |random: &mut Random| Duration::from_millis(random.within(0..=3) as u64);
    requests.map(|_| (http1(name, random), wait(random))).collect()
}

fn client(script: &Script) -> impl FnMut(&mut Wire<'_>) + use<> {
    let mut rest: std::collections::VecDeque<_> = script.iter().cloned().collect();
    let mut due = Duration::ZERO;
    move |wire: &mut Wire<'_>| {
        while wire.now() >= due && !wire.was_reset() && !wire.eof() {
            let Some((bytes, wait)) = rest.pop_front() else { break };
            wire.send(&bytes);
            due = wire.now() + wait;
            if wait > Duration::ZERO {
                break;
            }
        }
        if !rest.is_empty() && due > wire.now() {
            wire.wake_after(due - wire.now());
        }
    }
}

/// Returns what each of these connections receives from one worker, and what the handlers saw of it.
fn play(scripts: &[(&str, &Script)]) -> Vec<(Vec<u8>, Vec<String>)> {
    let log = Log::default();
    let make = |_| service(&log);
    let mut simulation = Simulation::with(1, Faults::none(), LoopLimits::default(), make);
    let listeners = [simulation.listen(), simulation.listen()];
    let clients: Vec<_> = scripts
        .iter()
        .enumerate()
        .map(|(index, (_, script))| {
            simulation.connect_after(Duration::ZERO, listeners[index % 2], client(script))
        })
        .collect();
    simulation.run_for(LONG);
    assert_eq!(simulation.stats().panics, 0);
    let seen = log.borrow();
    let of = |name: &str| seen.iter().filter(|text| text.contains(name)).cloned().collect();
    let received = clients.into_iter().map(|client| simulation.received(client));
    received.zip(scripts).map(|(bytes, (name, _))| (bytes, of(name))).collect()
}

#[test]
fn what_one_connection_sends_changes_nothing_of_another() {
    for_each_seed(0..SEEDS, |seed| {
        let mut random = Random::new(seed);
        // Names of one length, so that the scripts differ in contents and not in lengths.
        let names = ["one-1", "two-2", "six-6"];
        let scripts = names.map(|name| script(name, &mut random));
        let all: Vec<_> = names.into_iter().zip(&scripts).collect();
        let together = play(&all);
        for (index, alone) in all.iter().enumerate() {
            let (name, script) = *alone;
            assert!(play(&[(name, script)])[0] == together[index], "{name} is told something else");
        }
        let others = |text: &str, own: &str| names.iter().any(|n| *n != own && text.contains(n));
        for ((bytes, seen), own) in together.iter().zip(names) {
            assert!(!seen.iter().any(|text| others(text, own)), "a handler saw another's request");
            let text = String::from_utf8_lossy(bytes);
            assert!(!others(&text, own), "{own} got what another sent");
        }
    });
}
