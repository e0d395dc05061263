//! Connections by sockets of datagrams, over the loopback interface: the first byte of a datagram says which worker its
//! connection belongs to, and the second which connection it is.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, io};

use bolide_buffers::{BpfInstruction, Datagram, DatagramBatch, DatagramSink, Flush};
use bolide_eventloop::{
    Accepted, Address, After, Arriving, CloseCause, Config, DatagramFlush, Handle, Limits,
    Listeners, Mailbox, Routed, Service, Token, Turn, run,
};
use bolide_launcher::{find, skip};

/// Byte that a client sends to end its connection.
const BYE: u8 = 255;

/// Byte that a client sends to make its connection keep a fifth of what the worker may keep.
const KEEP: u8 = 254;

/// Byte that a client sends to hear whether the worker has room.
const ASK: u8 = 253;

/// Memory that a worker may keep.
const HELD_BYTES_MAX: usize = 1_000_000;

/// Sends back what has come, once a turn has seen it.
struct Echo {
    worker: u8,
    tokens: BTreeMap<u8, Token>,
    /// Datagrams that have come for each connection.
    inboxes: BTreeMap<u8, Vec<Vec<u8>>>,
    arrived: Option<(u8, SocketAddr)>,
}

struct Session {
    name: u8,
    peer: SocketAddr,
    outbox: Vec<Vec<u8>>,
    told_after: Duration,
}

fn service(worker: usize, _: Mailbox<()>) -> Echo {
    let (tokens, inboxes) = Default::default();
    Echo { worker: worker as u8, tokens, inboxes, arrived: None }
}

impl Service for Echo {
    type Session = Session;
    type Message = ();

    fn datagram(
        &mut self,
        listener: Option<usize>,
        datagram: Datagram,
        arriving: Arriving,
        _: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        assert_eq!(listener, Some(0));
        let &[worker, name, ..] = &datagram.bytes[..] else { return Routed::Nothing };
        if worker != self.worker {
            return Routed::Elsewhere(worker.into(), datagram);
        }
        if !arriving.accepts {
            let bytes = b"closed";
            let (to, length) = (datagram.from, bytes.len());
            let batch =
                DatagramBatch { to, from: None, ecn: 0, bytes: length, segment_bytes: None };
            sink.send(&batch, bytes).expect("it works");
            return Routed::Nothing;
        }
        if datagram.bytes.last() == Some(&ASK) {
            let bytes: &[u8] = if arriving.has_room { b"room" } else { b"none" };
            let (to, length) = (datagram.from, bytes.len());
            let batch =
                DatagramBatch { to, from: None, ecn: 0, bytes: length, segment_bytes: None };
            sink.send(&batch, bytes).expect("it works");
            return Routed::Nothing;
        }
        let inbox = self.inboxes.entry(name).or_default();
        inbox.push(datagram.bytes.to_vec());
        match self.tokens.get(&name) {
            Some(token) if inbox.len() == 1 => Routed::For(*token),
            Some(_) => Routed::Nothing,
            None => {
                self.arrived = Some((name, datagram.from));
                Routed::New
            }
        }
    }

    fn open(&mut self, accepted: &Accepted, _: Instant) -> Option<(Session, After)> {
        let (name, peer) = self.arrived.take()?;
        assert_eq!(accepted.peer, Address::Inet(peer));
        self.tokens.insert(name, accepted.token);
        let (outbox, told_after) = (Vec::new(), Duration::ZERO);
        Some((Session { name, peer, outbox, told_after }, After::IDLE))
    }

    fn turn(&mut self, session: &mut Session, turn: &mut Turn<'_, ()>) -> After {
        assert!(turn.input.is_empty() && turn.rtt().is_none());
        let inbox = self.inboxes.entry(session.name).or_default();
        let keeps = inbox.iter().any(|bytes| bytes.last() == Some(&KEEP));
        let is_over = inbox.iter().any(|bytes| bytes.last() == Some(&BYE));
        if inbox.is_empty() {
            session.outbox.push(b"late".to_vec());
        }
        session.outbox.append(inbox);
        session.told_after = Duration::from_millis(20);
        let held_bytes = if keeps { HELD_BYTES_MAX / 5 } else { 0 };
        if is_over { After::FINISHED } else { After { held_bytes, ..After::IDLE } }
    }

    fn shut_down(&mut self, session: &mut Session, _: &mut Turn<'_, ()>) -> After {
        session.outbox.push(b"shut down".to_vec());
        After::FINISHED
    }

    fn flush_datagrams(
        &mut self,
        session: &mut Session,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        for bytes in session.outbox.drain(..) {
            let (to, length) = (session.peer, bytes.len());
            let batch =
                DatagramBatch { to, from: None, ecn: 0, bytes: length, segment_bytes: None };
            sink.send(&batch, &bytes).expect("it works");
        }
        let after = std::mem::take(&mut session.told_after);
        let deadline = (after > Duration::ZERO).then(|| Instant::now() + after);
        DatagramFlush { flush: Flush::Drained, deadline }
    }

    fn close(&mut self, session: Session, _: CloseCause, _: &mut bolide_eventloop::Agenda) {
        self.tokens.remove(&session.name);
        self.inboxes.remove(&session.name);
    }
}

fn start(workers: usize) -> (Handle<()>, SocketAddr) {
    let mut listeners = Listeners::new(workers);
    let (address, datagrams) = listeners.bind_both(([127, 0, 0, 1], 0).into()).expect("a port");
    datagrams.expect("it is free for datagrams");
    (start_with(listeners), address)
}

fn start_with(listeners: Listeners) -> Handle<()> {
    let limits = Limits { held_bytes_max: HELD_BYTES_MAX, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    run(&config, listeners, service).expect("it works")
}

/// A program that returns the first byte of a datagram.
fn first_byte() -> Vec<BpfInstruction> {
    let load = BpfInstruction { code: 0x30, if_true: 0, if_false: 0, operand: 0 };
    vec![load, BpfInstruction { code: 0x16, ..load }]
}

fn client(address: SocketAddr) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").expect("it works");
    client.connect(address).expect("it works");
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("it works");
    client
}

fn receive(client: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let length = client.recv(&mut buffer).expect("a datagram comes");
    buffer[..length].to_vec()
}

/// The same, whatever deadlines came between.
fn receive_prompt(client: &UdpSocket) -> Vec<u8> {
    loop {
        let bytes = receive(client);
        if bytes != b"late" {
            return bytes;
        }
    }
}

#[test]
fn a_connection_by_datagrams_is_a_session_as_any_other() {
    let (handle, address) = start(1);
    let client = client(address);
    client.send(&[0, 7, 1]).unwrap();
    assert_eq!(receive(&client), [0, 7, 1]);
    assert_eq!(receive(&client), b"late", "the deadline that a flush told came");
    for number in 0..100 {
        client.send(&[0, 7, number]).unwrap();
    }
    for number in 0..100 {
        assert_eq!(receive_prompt(&client), [0, 7, number]);
    }
    let stats = handle.stats()[0];
    assert_eq!((stats.accepted, stats.open, stats.datagrams), (1, 1, 101));
    client.send(&[0, 7, BYE]).unwrap();
    assert_eq!(receive_prompt(&client), [0, 7, BYE]);
    client.send(&[0, 7, 2]).unwrap();
    assert_eq!(receive_prompt(&client), [0, 7, 2], "a new one");
    handle.shut_down(Duration::from_secs(20));
    assert_eq!(receive_prompt(&client), b"shut down");
    let stats = handle.join().unwrap()[0];
    assert_eq!((stats.accepted, stats.closed.finished, stats.open), (2, 2, 0));
    assert!(stats.bytes_received > 300 && stats.bytes_sent > 300, "{stats:?}");
}

#[test]
fn a_worker_has_room_while_its_account_is_nearly_empty() {
    let (handle, address) = start(1);
    let client = client(address);
    let asked = |sent: &[u8]| {
        client.send(sent).unwrap();
        receive_prompt(&client)
    };
    assert_eq!(asked(&[0, 0, ASK]), b"room");
    assert_eq!(asked(&[0, 7, KEEP]), [0, 7, KEEP]);
    assert_eq!(asked(&[0, 0, ASK]), b"none");
    assert_eq!(asked(&[0, 7, 1]), [0, 7, 1], "it keeps nothing any more");
    assert_eq!(asked(&[0, 0, ASK]), b"room");
    handle.shut_down(Duration::ZERO);
    handle.join().unwrap();
}

#[test]
fn a_datagram_for_another_worker_is_passed_on() {
    let (handle, address) = start(2);
    let clients: Vec<_> = (0..8).map(|_| client(address)).collect();
    for (number, client) in clients.iter().enumerate() {
        let wanted = [number as u8 % 2, number as u8, 0];
        client.send(&wanted).unwrap();
        assert_eq!(receive_prompt(client), wanted);
        client.send(&[9, number as u8, 0]).unwrap();
    }
    // Each client's datagrams arrive at one of the workers, whichever that is: half of those would have to be at the other.
    let other = client(address);
    for worker in [0, 1] {
        other.send(&[worker, 100 + worker, 0]).unwrap();
        assert_eq!(receive_prompt(&other), [worker, 100 + worker, 0]);
    }
    let passed_on: u64 = handle.stats().iter().map(|stats| stats.datagrams_passed_on).sum();
    assert!(passed_on >= 1, "{passed_on}");
    handle.shut_down(Duration::from_secs(20));
    handle.join().unwrap();
}

#[test]
fn a_datagram_comes_to_the_worker_that_a_program_says() {
    let bound = |listeners: Listeners| {
        let mut listeners = listeners;
        let (address, offloads) = listeners.bind_both(([127, 0, 0, 1], 0).into()).unwrap();
        (listeners, address, offloads.unwrap())
    };
    let (own, at, offloads) = bound(Listeners::new(3).steer_datagrams(first_byte()));
    // Those of another process, which had no program.
    let (other, other_at, without) = bound(Listeners::new(3));
    assert!(without.is_steered, "nothing was asked for");
    let mut taken = Listeners::new(3).steer_datagrams(first_byte());
    taken.hand_in_all(other.duplicates().unwrap().remove(0)).unwrap();
    let sockets = other.duplicate_datagrams().unwrap().remove(0);
    drop(other);
    assert_eq!(taken.hand_in_datagrams(0, sockets).unwrap(), offloads);
    for (listeners, address) in [(own, at), (taken, other_at)] {
        let handle = start_with(listeners);
        for number in 0..30 {
            let wanted = [number % 3, number, 0];
            let client = client(address);
            client.send(&wanted).unwrap();
            assert_eq!(receive_prompt(&client), wanted);
        }
        // Without such programs, each of 30 comes to its own worker in one of 3³⁰ runs.
        let passed_on: u64 = handle.stats().iter().map(|stats| stats.datagrams_passed_on).sum();
        assert_eq!(passed_on == 0, offloads.is_steered, "{passed_on}");
        handle.shut_down(Duration::ZERO);
        handle.join().unwrap();
    }
}

#[test]
fn a_port_in_use_is_not_shared() {
    let mut first = Listeners::new(2);
    first.bind_both(([127, 0, 0, 1], 0).into()).unwrap().1.unwrap();
    let mut listeners = Listeners::new(2);
    listeners.hand_in_all(first.duplicates().unwrap().remove(0)).unwrap();
    let error = listeners.bind_datagrams(0).unwrap_err();
    assert_eq!(error.error.kind(), io::ErrorKind::AddrInUse);
    assert!(listeners.bind_datagrams(1).is_err(), "there is no such listener");
}

/// The variable that is set where the system has two ports to choose from.
const TWO_PORTS: &str = "BOLIDE_TWO_PORTS";

#[test]
fn a_port_that_the_system_chooses_is_free_for_datagrams() {
    let name = "datagrams::a_port_that_the_system_chooses_is_free_for_datagrams";
    if env::var_os(TWO_PORTS).is_none() {
        let Some(unshare) = find("unshare", name) else { return };
        let apart = |command: &str| {
            let mut apart = Command::new(&unshare);
            apart.args(["--user", "--map-root-user", "--net", "sh", "-c", command, name]);
            apart.arg(env::current_exe().unwrap()).env(TWO_PORTS, "1").output().unwrap()
        };
        let two_ports = "echo 45000 45001 >/proc/sys/net/ipv4/ip_local_port_range";
        if !apart(two_ports).status.success() {
            return skip(&format!("no network namespace with ports of its own ({name})"));
        }
        let output = apart(&format!("{two_ports} && \"$1\" --exact \"$0\""));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let at = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    for (taken, free) in [(45000, 45001), (45001, 45000)] {
        let _taken = UdpSocket::bind(at(taken)).unwrap();
        for workers in [1, 2] {
            let mut listeners = Listeners::new(workers);
            let (address, datagrams) = listeners.bind_both(at(0)).unwrap();
            assert_eq!(address, at(free));
            datagrams.unwrap();
            let (address, datagrams) = listeners.bind_both(at(taken)).unwrap();
            assert_eq!(address, at(taken), "a port that is asked for is not replaced");
            assert_eq!(datagrams.unwrap_err().error.kind(), io::ErrorKind::AddrInUse);
        }
    }
}
