//! Running out of file descriptors: a process of its own, for the limit is the process's.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod echo;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bolide_eventloop::{Config, Handle, Limits, Listeners, Stats, raise_file_limit, run};
use echo::{Echo, Message};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PATIENCE: Duration = Duration::from_secs(20);

fn stats(handle: &Handle<Message>) -> Stats {
    handle.stats()[0]
}

fn wait_until(handle: &Handle<Message>, reached: impl Fn(Stats) -> bool) {
    let start = Instant::now();
    while !reached(stats(handle)) {
        assert!(start.elapsed() < PATIENCE, "still {:?}", stats(handle));
        std::thread::yield_now();
    }
}

/// The lowest number that the next descriptor will have.
fn next_descriptor() -> u64 {
    use std::os::fd::AsRawFd;
    std::fs::File::open("/dev/null").unwrap().as_raw_fd() as u64
}

fn ask(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut response = vec![0; bytes.len()];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(response, bytes);
}

#[test]
fn descriptor_exhaustion_degrades_and_never_spins() {
    let limit = raise_file_limit().unwrap();
    assert_eq!(limit.after, bolide_eventloop::file_limit());

    let mut listeners = Listeners::new(1);
    let address = listeners.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let config = Config {
        limits: Limits { connections_max_count: 1000, ..Limits::default() },
        ..Config::default()
    };
    let handle = run(&config, listeners, |_, mailbox| Echo::new(mailbox)).unwrap();
    // `W` keeps a session at work, so that it cannot be shed.
    let mut busy = TcpStream::connect(address).unwrap();
    ask(&mut busy, b"W");

    // One more descriptor: the client's. The worker has none for its side.
    let whole = getrlimit(Resource::Nofile);
    let current = Some(next_descriptor() + 1);
    setrlimit(Resource::Nofile, Rlimit { current, ..whole }).unwrap();
    let mut waiting = TcpStream::connect(address).unwrap();
    wait_until(&handle, |stats| stats.work.accept_pauses >= 3);
    let before = stats(&handle);
    assert_eq!(before.accepted, 1);
    // Asking for the counters wakes the worker, too: only the pauses tell how often it tried.
    let start = Instant::now();
    wait_until(&handle, |stats| stats.work.accept_pauses >= before.work.accept_pauses + 3);
    assert!(start.elapsed() > Duration::from_millis(200), "it tried again too soon");
    // Connected clients are served as before.
    ask(&mut busy, b"W");

    setrlimit(Resource::Nofile, whole).unwrap();
    ask(&mut waiting, b"at last");
    handle.shut_down(Duration::ZERO);
    let stats = handle.join().unwrap()[0];
    assert_eq!((stats.accepted, stats.closed.shed), (2, 0));
}
