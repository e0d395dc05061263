//! Connections of datagrams that the loop begins, over the loopback interface: the first byte of a datagram says which
//! connection it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, Flush};
use bolide_eventloop::{
    Accepted, After, Agenda, Arriving, CloseCause, DatagramFlush, Destination, Limits, MioKernel,
    Outbound, Routed, Service, Token, Turn, Worker,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Begins connections, says a byte on each, and ends each that gets it back.
struct Caller {
    to: SocketAddr,
    /// How many connections are to be begun.
    wanted: u8,
    tokens: BTreeMap<u8, Token>,
    answered: BTreeSet<u8>,
    closed: Vec<CloseCause>,
}

struct Session {
    name: u8,
    has_spoken: bool,
}

impl Caller {
    fn new(to: SocketAddr, wanted: u8) -> Self {
        let (tokens, answered, closed) = Default::default();
        Self { to, wanted, tokens, answered, closed }
    }
}

impl Service for Caller {
    type Session = Session;
    type Message = ();

    fn turn_started(&mut self, _: Instant, agenda: &mut Agenda) {
        for name in 0..std::mem::take(&mut self.wanted) {
            agenda.connect(Destination::Datagrams(self.to), name.into());
        }
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Session, After)> {
        panic!("nothing is accepted")
    }

    fn datagram(
        &mut self,
        listener: Option<usize>,
        datagram: Datagram,
        arriving: Arriving,
        _: Instant,
        _: &mut dyn DatagramSink,
    ) -> Routed {
        assert!(listener.is_none() && arriving.accepts && datagram.from == self.to);
        let name = datagram.bytes[0];
        self.answered.insert(name);
        self.tokens.get(&name).map_or(Routed::New, |token| Routed::For(*token))
    }

    fn connecting(&mut self, outbound: &Outbound, _: Instant) -> Option<(Session, After)> {
        assert_eq!(outbound.datagrams_to, Some(self.to));
        let name = outbound.tag as u8;
        self.tokens.insert(name, outbound.token);
        // One is given up at once.
        (name != 200).then_some((Session { name, has_spoken: false }, After::READ))
    }

    fn turn(&mut self, session: &mut Session, turn: &mut Turn<'_, ()>) -> After {
        assert!(turn.connected && turn.input.is_empty());
        if self.answered.contains(&session.name) { After::FINISHED } else { After::READ }
    }

    fn shut_down(&mut self, _: &mut Session, _: &mut Turn<'_, ()>) -> After {
        After::FINISHED
    }

    fn flush_datagrams(
        &mut self,
        session: &mut Session,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        if !std::mem::replace(&mut session.has_spoken, true) {
            let (to, bytes) = (self.to, [session.name]);
            let batch = DatagramBatch { to, from: None, ecn: 0, bytes: 1, segment_bytes: None };
            sink.send(&batch, &bytes).unwrap();
        }
        DatagramFlush { flush: Flush::Drained, deadline: None }
    }

    fn close(&mut self, session: Session, cause: CloseCause, _: &mut Agenda) {
        self.tokens.remove(&session.name);
        self.closed.push(cause);
    }
}

fn run_until(caller: Caller, done: impl Fn(&Caller) -> bool) -> Worker<MioKernel, Caller> {
    let mut worker = Worker::new(MioKernel::new().unwrap(), Limits::default(), |_| caller);
    let until = Instant::now() + PATIENCE;
    while !done(worker.service()) {
        assert!(Instant::now() < until, "it does not come to an end: {:?}", worker.stats());
        worker.step(Some(Duration::from_millis(100))).unwrap();
    }
    worker
}

/// Sends back so many datagrams. Returns how many ports they came from.
fn echo(socket: &UdpSocket, count: usize) -> usize {
    let (mut buffer, mut ports) = ([0; 100], BTreeSet::new());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..count {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        ports.insert(from.port());
        socket.send_to(&buffer[..length], from).unwrap();
    }
    ports.len()
}

#[test]
fn connections_outward_share_some_sockets_and_each_hears_what_is_for_it() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let server = UdpSocket::bind(any).unwrap();
        let caller = Caller::new(server.local_addr().unwrap(), 150);
        let serving = std::thread::spawn(move || echo(&server, 150));
        let worker = run_until(caller, |caller| caller.closed.len() == 150);
        assert_eq!(serving.join().unwrap(), 64, "as many sockets as one address gets");
        let stats = worker.stats();
        assert_eq!((stats.outbound, stats.open, stats.datagrams), (150, 0, 150));
        assert!(worker.service().closed.iter().all(|cause| *cause == CloseCause::Finished));
    }
}

#[test]
fn one_that_the_service_gives_up_leaves_nothing_behind() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let caller = Caller::new(server.local_addr().unwrap(), 201);
    let serving = std::thread::spawn(move || echo(&server, 200));
    let worker = run_until(caller, |caller| caller.closed.len() == 200);
    assert_eq!(serving.join().unwrap(), 64);
    assert_eq!((worker.stats().outbound, worker.stats().open), (200, 0));
}

/// ICMP tells those that wait. No system gives port 1 to a socket of its own accord: a port that was free a moment ago
/// may be that of one of these very connections, which then speaks to itself.
#[test]
#[cfg(target_os = "linux")]
fn connections_to_a_port_where_nobody_is_are_refused() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let worker = run_until(Caller::new(nobody, 100), |caller| caller.closed.len() == 100);
    let refused = CloseCause::Failed(io::ErrorKind::ConnectionRefused);
    assert!(worker.service().closed.iter().all(|cause| *cause == refused));
    assert_eq!(worker.stats().open, 0);
}
