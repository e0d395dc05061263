//! Connections that are accepted, of TCP and Unix sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::echo::{Echo, MAILS, Message};
use bolide_eventloop::{Address, Config, Handle, Limits, Listeners, Stats, limits, run};
use socket2::{Domain, SockAddr, Socket, Type};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(20);

fn limits() -> Limits {
    // Some tests keep their end open through a shutdown.
    Limits {
        closing: limits::Closing { linger: Duration::from_millis(200), ..limits::Closing::DEFAULT },
        ..Limits::default()
    }
}

fn start(workers: usize, limits: Limits) -> (SocketAddr, Handle<Message>) {
    let mut listeners = Listeners::new(workers);
    let address = listeners.bind(ANY_PORT).unwrap();
    (address, serve(listeners, limits))
}

fn serve(listeners: Listeners, limits: Limits) -> Handle<Message> {
    let config = Config { limits, ..Config::default() };
    run(&config, listeners, |_, mailbox| Echo::new(mailbox)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn end(handle: Handle<Message>) -> Stats {
    handle.shut_down(PATIENCE);
    let mut sum = Stats::default();
    handle.join().unwrap().into_iter().for_each(|stats| sum += stats);
    sum
}

fn ask(stream: &mut (impl Read + Write), bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).unwrap();
    let mut response = vec![0; bytes.len()];
    stream.read_exact(&mut response).unwrap();
    response
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 | 0x80).collect()
}

/// The worker handles what it was sent in order, so a count that was asked for later is later.
fn wait_until(handle: &Handle<Message>, mut reached: impl FnMut(Stats) -> bool) {
    let start = Instant::now();
    loop {
        let mut sum = Stats::default();
        handle.stats().into_iter().for_each(|stats| sum += stats);
        if reached(sum) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "still {sum:?}");
        std::thread::yield_now();
    }
}

#[test]
fn bytes_come_back() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    for number in 0..1000_u32 {
        let bytes = number.to_be_bytes().map(|byte| byte | 0x80);
        assert_eq!(ask(&mut stream, &bytes), bytes);
    }
    drop(stream);
    wait_until(&handle, |stats| stats.closed.finished == 1);
    let stats = end(handle);
    assert_eq!((stats.accepted, stats.panics), (1, 0));
    assert_eq!((stats.bytes_received, stats.bytes_sent), (4000, 4000));
}

#[test]
fn megabytes_in_both_directions_at_once() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    let sent = pattern(8 * 1024 * 1024);
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    let stats = end(handle);
    assert_eq!((stats.closed.finished, stats.open), (1, 0));
}

#[test]
fn a_reader_that_waits_holds_the_writer_up_and_loses_nothing() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    // More than the buffers of both sockets hold: the worker must stop reading.
    let sent = pattern(48 * 1024 * 1024);
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = std::thread::spawn(move || writer.write_all(&copy).unwrap());
    wait_until(&handle, |stats| stats.work.write_blocked > 0);
    let mut received = vec![0; sent.len()];
    stream.read_exact(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent);
    drop(stream);
    end(handle);
}

#[test]
fn a_peer_that_reads_nothing_is_handed_little_in_small_pieces_too() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    let mut written = 0;
    let mut seen = Stats::default();
    while seen.work.write_blocked == 0 {
        stream.write_all(&pattern(4096)).unwrap();
        written += 4096;
        wait_until(&handle, |stats| {
            seen = stats;
            stats.bytes_sent >= written || stats.work.write_blocked > 0
        });
    }
    let window = 128 * 1024;
    let unsent = limits().unsent.unsent_start_bytes as u64;
    assert!(seen.bytes_sent <= window + 2 * unsent, "{}", seen.bytes_sent);
    end(handle);
}

#[test]
fn a_response_reaches_a_peer_that_has_ended_its_side() {
    let (address, handle) = start(1, limits());
    for length in [0, 1, 300_000] {
        let mut stream = connect(address);
        let sent = pattern(length);
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == sent);
    }
    assert_eq!(end(handle).closed.finished, 3);
}

#[test]
fn the_last_response_survives_an_upload_that_goes_on() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    // `Q` closes; what comes behind is never read by the session.
    let mut bytes = b"one Q".to_vec();
    bytes.extend(pattern(32 * 1024 * 1024));
    stream.write_all(&bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"one ");
    wait_until(&handle, |stats| stats.closed.finished == 1);
    end(handle);
}

#[test]
fn endless_upload_after_the_last_response_is_cut_off() {
    let limits = Limits {
        closing: limits::Closing { linger_bytes: 100_000, ..limits().closing },
        ..limits()
    };
    let (address, handle) = start(1, limits);
    let mut stream = connect(address);
    stream.write_all(b"Q").unwrap();
    let error = loop {
        if let Err(error) = stream.write_all(&[0x80; 65_536]) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe));
    assert_eq!(end(handle).closed.finished, 1);
}

#[test]
fn a_lingering_connection_ends_by_itself() {
    let limits = Limits {
        closing: limits::Closing { linger: Duration::from_millis(30), ..limits().closing },
        ..limits()
    };
    let (address, handle) = start(1, limits);
    let mut stream = connect(address);
    stream.write_all(b"Q").unwrap();
    // The peer never closes.
    wait_until(&handle, |stats| stats.closed.finished == 1);
    end(handle);
}

#[test]
fn slow_reader_of_the_last_response_is_cut_off() {
    let limits = Limits {
        closing: limits::Closing { close_stall: Duration::from_millis(30), ..limits().closing },
        ..limits()
    };
    let (address, handle) = start(1, limits);
    let mut stream = connect(address);
    // `B` asks for more than all buffers hold and closes behind it; the client reads nothing.
    stream.write_all(b"B").unwrap();
    wait_until(&handle, |stats| stats.closed.stalled == 1);
    end(handle);
}

#[test]
fn ipv6_unix_and_handed_in_listeners_serve() {
    for workers in [1, 2] {
        let directory =
            std::env::temp_dir().join(format!("bolide-{}-{workers}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, given_path) = (directory.join("bound"), directory.join("given"));
        let given = TcpListener::bind(ANY_PORT).unwrap();
        let given_address = given.local_addr().unwrap();
        let mut listeners = Listeners::new(workers);
        listeners.bind_unix(&path).unwrap();
        listeners.hand_in(given).unwrap();
        listeners.hand_in(UnixListener::bind(&given_path).unwrap()).unwrap();
        let v6 = listeners.bind(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0)).ok();
        assert_eq!(listeners.addresses()[1], Address::Inet(given_address));
        let handle = serve(listeners, limits());

        for _ in 0..4 {
            assert_eq!(ask(&mut connect(given_address), b"handed in"), b"handed in");
            for path in [&path, &given_path] {
                let mut stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                assert_eq!(ask(&mut stream, b"unix"), b"unix");
            }
            if let Some(address) = v6 {
                assert_eq!(ask(&mut connect(address), b"v6"), b"v6");
            }
        }
        if workers == 2 {
            // The acceptor deals out in turn.
            assert!(handle.stats().iter().all(|stats| stats.accepted >= 6));
        }
        wait_until(&handle, |stats| stats.open == 0);
        end(handle);
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn an_abandoned_socket_file_is_replaced_and_a_live_one_is_not() {
    let path = std::env::temp_dir().join(format!("bolide-abandoned-{}", std::process::id()));
    let live = UnixListener::bind(&path).unwrap();
    let error = Listeners::new(1).bind_unix(&path).unwrap_err();
    assert_eq!(error.error.kind(), ErrorKind::AddrInUse);
    drop(live);
    std::fs::remove_file(&path).unwrap();
    // One that never listened: a process that another test starts would keep one that does until it runs its program.
    let abandoned = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    abandoned.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    drop(abandoned);
    Listeners::new(1).bind_unix(&path).unwrap();
    std::fs::write(path.with_extension("file"), "precious").unwrap();
    let error = Listeners::new(1).bind_unix(&path.with_extension("file")).unwrap_err();
    assert_eq!(error.error.kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(path.with_extension("file")).unwrap(), b"precious");
    std::fs::remove_file(path.with_extension("file")).unwrap();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_busy_port_is_found_before_anything_runs() {
    for (theirs, ours) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let mut first = Listeners::new(theirs);
        let address = first.bind(ANY_PORT).unwrap();
        let error = Listeners::new(ours).bind(address).unwrap_err();
        assert_eq!(error.error.kind(), ErrorKind::AddrInUse, "{theirs} and {ours} workers");
        assert!(error.to_string().contains(&address.to_string()));
    }
}

#[test]
fn workers_share_a_port() {
    let (address, handle) = start(2, limits());
    let mut streams: Vec<_> = (0..64).map(|_| connect(address)).collect();
    for stream in &mut streams {
        assert_eq!(ask(stream, b"shared"), b"shared");
    }
    // 64 connections all on one of two workers: one in 2^63.
    assert!(handle.stats().iter().all(|stats| stats.accepted > 0));
    end(handle);
}

#[test]
fn mails_that_come_together_are_one_turn_of_their_session() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    stream.write_all(b"P").unwrap();
    let mut response = vec![0; MAILS * b"mail".len()];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(response, b"mail".repeat(MAILS));
    drop(stream);
    let stats = end(handle);
    assert_eq!(stats.work.mails, MAILS as u64);
    assert!(stats.work.turns <= 4, "the order, the mail, the end: {stats:?}");
}

#[test]
fn mail_reaches_a_session_and_comes_back_from_one_that_is_gone() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    // `M` makes a thread answer by mail.
    stream.write_all(b"M").unwrap();
    let mut response = [0; 4];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"mail");
    // `L` keeps the session's token for the mail after its end.
    stream.write_all(b"LQ").unwrap();
    drop(stream);
    wait_until(&handle, |stats| stats.closed.finished == 1);
    let mut other = connect(address);
    other.write_all(b"U").unwrap();
    let mut response = [0; 11];
    other.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"undelivered");
    end(handle);
}

#[test]
fn a_panic_ends_its_session_alone() {
    let (address, handle) = start(1, limits());
    let mut bystander = connect(address);
    assert_eq!(ask(&mut bystander, b"before"), b"before");
    let mut stream = connect(address);
    stream.write_all(b"!").unwrap();
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    assert_eq!(received, b"");
    assert_eq!(ask(&mut bystander, b"after"), b"after");
    let stats = end(handle);
    assert_eq!((stats.panics, stats.closed.panicked), (1, 1));
}

#[test]
fn connection_flood_sheds_the_longest_idle() {
    let limits = Limits { connections_max_count: 3, ..limits() };
    let (address, handle) = start(1, limits);
    let mut streams: Vec<_> = (0..3).map(|_| connect(address)).collect();
    for stream in &mut streams {
        assert_eq!(ask(stream, b"here"), b"here");
        // Idle times are told apart by ticks.
        let tick = Instant::now() + Duration::from_millis(20);
        wait_until(&handle, |_| Instant::now() > tick);
    }
    assert_eq!(ask(&mut streams[0], b"again"), b"again");
    let mut late = connect(address);
    assert_eq!(ask(&mut late, b"late"), b"late");
    // The second was idle for the longest; it is told.
    let mut goodbye = Vec::new();
    streams[1].read_to_end(&mut goodbye).unwrap();
    assert_eq!(goodbye, b"bye");
    assert_eq!(ask(&mut streams[0], b"still"), b"still");
    assert_eq!(ask(&mut streams[2], b"still"), b"still");
    let stats = end(handle);
    assert_eq!((stats.accepted, stats.closed.shed), (4, 1));
}

#[test]
fn memory_of_a_connection_is_bounded_by_reading_no_more() {
    const HELD_BYTES: usize = 256 * 1024;
    let limits = Limits { connection_held_bytes_max: HELD_BYTES, ..limits() };
    let most = (HELD_BYTES + limits.turns.pass_bytes + limits.turns.bulk_block_bytes) as u64;
    let (address, handle) = start(1, limits);
    let mut greedy = connect(address);
    greedy.write_all(b"LK").unwrap();
    wait_until(&handle, |stats| stats.bytes_received == 2);
    let sender = std::thread::spawn(move || {
        greedy.write_all(&pattern(32 * 1024 * 1024)).unwrap();
        greedy
    });
    wait_until(&handle, |stats| stats.work.held_full == 1);
    let mut other = connect(address);
    assert_eq!(ask(&mut other, b"others go on"), b"others go on");
    let received = handle.stats()[0].bytes_received;
    assert!(received <= most, "{received} were read of a connection that is full");
    // Each time it forgets what it has, it reads on.
    while !sender.is_finished() {
        assert_eq!(ask(&mut other, b"F"), b"F");
    }
    wait_until(&handle, |stats| {
        assert_eq!(ask(&mut other, b"F"), b"F");
        stats.bytes_received > 32 * 1024 * 1024
    });
    assert!(handle.stats()[0].work.held_full > 1);
    drop((sender, other));
    assert_eq!(end(handle).held_bytes, 0);
}

#[test]
fn memory_of_a_worker_is_bounded_by_closing_those_that_hold_most() {
    // What waits to be read is held, too: the second one is smaller by more than that.
    const LARGE_BYTES: usize = 2 * 1024 * 1024;
    const NEWEST_BYTES: usize = LARGE_BYTES / 2;
    const MAX_BYTES: usize = 5 * LARGE_BYTES / 4;
    let limits = Limits { held_bytes_max: MAX_BYTES, ..limits() };
    let (address, handle) = start(1, limits);
    let keep = |bytes: usize| {
        let before = handle.stats()[0].bytes_received;
        let mut stream = connect(address);
        stream.write_all(b"K").unwrap();
        stream.write_all(&pattern(bytes)).unwrap();
        let until = before + 1 + bytes as u64;
        wait_until(&handle, |stats| stats.bytes_received == until);
        stream
    };
    let mut small = keep(10_000);
    let mut oldest = keep(LARGE_BYTES);
    assert_eq!(handle.stats()[0].closed.memory, 0);
    let mut newest = keep(NEWEST_BYTES);
    wait_until(&handle, |stats| stats.closed.memory == 1);
    let _ = oldest.read_to_end(&mut Vec::new());
    for survivor in [&mut small, &mut newest] {
        // The mail is no byte that is kept.
        assert_eq!(ask(survivor, b"W"), b"W");
    }
    let held = handle.stats()[0].held_bytes;
    assert!((1..=MAX_BYTES as u64).contains(&held), "{held}");
    drop((small, newest));
    end(handle);
}

#[test]
fn connection_flood_waits_while_nobody_is_idle() {
    let limits = Limits { connections_max_count: 1, ..limits() };
    let (address, handle) = start(1, limits);
    let mut busy = connect(address);
    // `W` keeps the session busy.
    assert_eq!(ask(&mut busy, b"W"), b"W");
    let mut waiting = connect(address);
    waiting.write_all(b"me too").unwrap();
    wait_until(&handle, |stats| stats.work.accept_pauses >= 1);
    assert_eq!(ask(&mut busy, b"W"), b"W");
    drop(busy);
    let mut response = [0; 6];
    waiting.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"me too");
    end(handle);
}

#[test]
fn a_shutdown_says_goodbye_and_a_busy_session_may_finish() {
    let (address, handle) = start(1, limits());
    let mut idle = connect(address);
    assert_eq!(ask(&mut idle, b"idle"), b"idle");
    let mut busy = connect(address);
    assert_eq!(ask(&mut busy, b"W"), b"W");
    handle.shut_down(PATIENCE);
    let mut goodbye = Vec::new();
    idle.read_to_end(&mut goodbye).unwrap();
    assert_eq!(goodbye, b"bye");
    drop(idle);
    assert_eq!(ask(&mut busy, b"W"), b"W");
    assert!(TcpStream::connect(address).is_err());
    // `I` ends the work, and so the session.
    busy.write_all(b"I").unwrap();
    let mut goodbye = Vec::new();
    busy.read_to_end(&mut goodbye).unwrap();
    assert_eq!(goodbye, b"Ibye");
    drop(busy);
    let stats = handle.join().unwrap();
    assert!(stats.iter().all(|stats| stats.closed.drained == 0 && stats.open == 0));
}

#[test]
fn a_shutdown_runs_out_of_patience() {
    let (address, handle) = start(1, limits());
    let mut busy = connect(address);
    assert_eq!(ask(&mut busy, b"W"), b"W");
    handle.shut_down(Duration::from_millis(30));
    assert_eq!(handle.join().unwrap()[0].closed.drained, 1);
}

#[test]
fn a_deadline_calls_a_session_that_nobody_talks_to() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    let start = Instant::now();
    // `D` sets a deadline after 40 ms.
    stream.write_all(b"D").unwrap();
    let mut response = [0; 1];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"D");
    assert!(start.elapsed() >= Duration::from_millis(40));
    end(handle);
}

#[test]
fn the_kernel_tells_the_round_trip_time() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    // `R` answers whether it is known.
    let known = if cfg!(target_os = "linux") { b"y" } else { b"N" };
    stream.write_all(b"R").unwrap();
    let mut response = [0; 1];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(&response, known);
    end(handle);
}

#[test]
fn a_reset_ends_a_session_that_does_not_read() {
    let (address, handle) = start(1, limits());
    let mut stream = connect(address);
    // `S` stops reading for good; unread bytes make the close a reset.
    stream.write_all(b"S and more").unwrap();
    wait_until(&handle, |stats| stats.bytes_received > 0);
    stream.write_all(b"unread").unwrap();
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    wait_until(&handle, |stats| stats.closed.failed == 1);
    end(handle);
}

#[test]
fn greedy_peer_does_not_starve_the_others() {
    let limits = Limits {
        turns: limits::Turns { pass_bytes: 4096, block_bytes: 4096, ..limits().turns },
        ..limits()
    };
    let (address, handle) = start(1, limits);
    let greedy = connect(address);
    let mut feeder = greedy.try_clone().unwrap();
    // `N` takes everything and answers nothing.
    let feeding = std::thread::spawn(move || {
        feeder.write_all(b"N").unwrap();
        feeder.write_all(&vec![0x80; 32 * 1024 * 1024]).unwrap();
    });
    let mut modest = connect(address);
    for _ in 0..100 {
        assert_eq!(ask(&mut modest, b"ping"), b"ping");
    }
    feeding.join().unwrap();
    wait_until(&handle, |stats| stats.bytes_received > 32 * 1024 * 1024);
    drop(greedy);
    assert!(end(handle).work.requeued > 0);
}
