//! Fast, long bodies are read in large pieces, and nothing waits for bytes that don't come.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::echo::{Echo, Message};
use bolide_eventloop::{Config, Handle, Limits, Listeners, Stats, limits, run};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(20);

/// Every connection counts as fast.
fn limits() -> Limits {
    Limits {
        gathering: limits::Gathering { gather_after_bytes: 1, ..limits::Gathering::DEFAULT },
        closing: limits::Closing { linger: Duration::from_millis(200), ..limits::Closing::DEFAULT },
        ..Limits::default()
    }
}

fn start(limits: Limits) -> (TcpStream, Handle<Message>) {
    let mut listeners = Listeners::new(1);
    let address = listeners.bind(ANY_PORT).unwrap();
    let config = Config { limits, ..Config::default() };
    let handle = run(&config, listeners, |_, mailbox| Echo::new(mailbox)).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    (stream, handle)
}

fn stats(handle: &Handle<Message>) -> Stats {
    let mut sum = Stats::default();
    handle.stats().into_iter().for_each(|stats| sum += stats);
    sum
}

fn wait_until(handle: &Handle<Message>, reached: impl Fn(Stats) -> bool) {
    let start = Instant::now();
    while !reached(stats(handle)) {
        assert!(start.elapsed() < PATIENCE, "still {:?}", stats(handle));
        std::thread::yield_now();
    }
}

fn asked(stream: &mut TcpStream, order: u8) {
    stream.write_all(&[order]).unwrap();
    let mut response = [0];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(response, [order]);
}

/// The order `G` makes the session expect more than will come, `N` keeps it silent about what does.
const BEGIN: &[u8] = b"GN";

#[test]
fn a_pause_in_a_body_is_found_out_about() {
    let (mut stream, handle) = start(limits());
    stream.write_all(BEGIN).unwrap();
    for round in 1..=20 {
        stream.write_all(&[0x80; 300_000]).unwrap();
        // Behind it less than is gathered, and then nothing: the response needs that it is read all the same.
        asked(&mut stream, b'W');
        let counted = stats(&handle);
        assert!(counted.work.gathered >= 1, "{counted:?}");
        assert_eq!(counted.bytes_received, 2 + round * 300_001);
    }
    drop(stream);
    handle.shut_down(PATIENCE);
    handle.join().unwrap();
}

#[test]
fn the_end_of_a_gathered_connection_is_seen_at_once() {
    let patient = Limits {
        gathering: limits::Gathering {
            gather_time: Duration::from_secs(3600),
            ..limits().gathering
        },
        ..limits()
    };
    let (mut stream, handle) = start(patient);
    stream.write_all(BEGIN).unwrap();
    wait_until(&handle, |stats| stats.work.gathered == 1);
    stream.write_all(&[0x80; 1000]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let counted = stats(&handle);
    assert_eq!((counted.bytes_received, counted.closed.finished), (1002, 1));
    handle.shut_down(PATIENCE);
    handle.join().unwrap();
}

#[test]
fn fewer_bytes_than_are_gathered_wait_and_more_don_t() {
    let patient = Limits {
        gathering: limits::Gathering {
            gather_time: Duration::from_secs(3600),
            ..limits().gathering
        },
        ..limits()
    };
    let (mut stream, handle) = start(patient);
    stream.write_all(BEGIN).unwrap();
    wait_until(&handle, |stats| stats.work.gathered == 1);
    stream.write_all(&[0x80; 100_000]).unwrap();
    // A worker that has answered this was asked after the bytes lay in its socket.
    assert_eq!(stats(&handle).bytes_received, 2);
    stream.write_all(&vec![0x80; patient.gathering.gather_bytes]).unwrap();
    wait_until(&handle, |stats| stats.bytes_received >= 2 + patient.gathering.gather_bytes as u64);
    drop(stream);
    handle.shut_down(PATIENCE);
    handle.join().unwrap();
}

#[test]
fn who_expects_nothing_more_is_read_byte_by_byte_again() {
    let patient = Limits {
        gathering: limits::Gathering {
            gather_time: Duration::from_secs(3600),
            ..limits().gathering
        },
        ..limits()
    };
    let (mut stream, handle) = start(patient);
    stream.write_all(BEGIN).unwrap();
    wait_until(&handle, |stats| stats.work.gathered == 1);
    // The first byte says that no more is expected; what is behind the first piece is then read at once.
    let mut last = vec![0x80; 2 * patient.gathering.gather_bytes];
    last[0] = b'H';
    stream.write_all(&last).unwrap();
    for _ in 0..3 {
        asked(&mut stream, b'W');
    }
    assert_eq!(stats(&handle).work.gathered, 1);
    drop(stream);
    handle.shut_down(PATIENCE);
    handle.join().unwrap();
}

#[test]
fn nothing_is_gathered_where_that_is_turned_off_or_slow() {
    for limits in [
        Limits {
            gathering: limits::Gathering { gather_bytes: 0, ..limits().gathering },
            ..limits()
        },
        Limits::default(),
    ] {
        let (mut stream, handle) = start(limits);
        stream.write_all(BEGIN).unwrap();
        stream.write_all(&[0x80; 100_000]).unwrap();
        asked(&mut stream, b'W');
        assert_eq!(stats(&handle).work.gathered, 0);
        drop(stream);
        handle.shut_down(PATIENCE);
        handle.join().unwrap();
    }
}
