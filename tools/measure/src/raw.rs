//! TCP and nothing else: what the same machine does without any protocol.
//!
//! The server reads one line, `GET <bytes>` or `PUT <bytes>`. Then it sends so many bytes, or takes so many
//! or fewer until the end and says in a line how many there were, and closes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bolide_eventloop::{Destination, SocketPath};

use crate::carrier::{Carrier, Command, Facts, Look, News, Outcome, Tcp};
use crate::clock::GLANCE;
use crate::clock::{Clock, nanoseconds};
use crate::dialing::Route;
use crate::plan::{Amount, Direction, Transfer};

/// Size that one read or write is offered, in bytes.
const PIECE_BYTES: usize = 1024 * 1024;

/// Size that is asked for when only the time limits it: more than any path carries in it, in bytes (1 PiB).
const ENDLESS_BYTES: u64 = 1 << 50;

/// Bytes that are read of a server's reply at most.
const REPLY_BYTES: usize = 256;

/// How long a read or a write waits before the time is looked at.
const WAIT: Duration = Duration::from_millis(50);

/// Starts a thread that carries a raw transfer, with one more for each connection.
///
/// # Errors
///
/// When the system has no thread left.
pub(crate) fn start(
    route: &Route,
    transfer: &Transfer,
    look: Duration,
    patience: Duration,
    clock: Clock,
) -> Result<Carrier, String> {
    let raw = Raw {
        destination: route.destination.clone(),
        timeout: route.dial.timeout,
        direction: transfer.direction,
        amount: transfer.amount,
        connections: transfer.connections,
        look,
        patience,
        clock,
        subject: format!("raw://{}", route.authority),
    };
    Carrier::spawn(move |orders, news| raw.run(&orders, &news))
}

struct Raw {
    destination: Destination,
    timeout: Duration,
    direction: Direction,
    amount: Amount,
    connections: usize,
    look: Duration,
    patience: Duration,
    clock: Clock,
    subject: String,
}

/// State that the connections of a transfer share.
#[derive(Debug, Default)]
struct Tally {
    /// Payload of all connections.
    bytes: AtomicU64,
    /// All are to end: the user asked for it, or one has failed.
    ends: AtomicBool,
}

/// One connection of a transfer that goes on.
struct Moving<'a> {
    tally: &'a Tally,
    until: Option<Instant>,
    moved: Instant,
    bytes: u64,
}

/// Result of one connection.
#[derive(Debug)]
struct Carried {
    ended: Instant,
    tcp: Tcp,
    result: Result<(), String>,
}

impl Raw {
    fn run(self, orders: &Receiver<Command>, news: &Sender<News>) {
        let done = match self.carry(orders, news) {
            Ok(outcome) => outcome,
            Err(why) => {
                let error = Some(format!("{}: {why}", self.subject));
                Outcome { error, ..Outcome::default() }
            }
        };
        // Who asked may have gone.
        let _ = news.send(News::Done(Box::new(done)));
    }

    fn carry(&self, orders: &Receiver<Command>, news: &Sender<News>) -> Result<Outcome, String> {
        let Destination::Inet(address) = &self.destination else {
            return Err("a raw transfer goes to an IP address and a port".to_owned());
        };
        let dialed_ns = self.clock.now_ns();
        let mut sockets = vec![self.dial(address)?];
        let connect_ns = self.clock.now_ns() - dialed_ns;
        for _ in 1..self.connections {
            sockets.push(self.dial(address)?);
        }
        let facts =
            Facts { version: http::Version::HTTP_11, tls: None, connect_ns, handshake_ns: None };
        let _ = news.send(News::Ready(facts));
        if !matches!(orders.recv(), Ok(Command::Begin)) {
            return Ok(Outcome::default());
        }
        let began = Instant::now();
        let tally = Tally::default();
        let (line, all, until) = self.asked(began);
        let look = || {
            let (at_ns, bytes) =
                (nanoseconds(began.elapsed()), tally.bytes.load(Ordering::Relaxed));
            // Who asked may have gone.
            let _ = news.send(News::Look(Look { at_ns, bytes, samples: Vec::new() }));
        };
        let carried = std::thread::scope(|scope| {
            let (sender, results) = channel();
            for mut socket in sockets {
                let (tally, sender, line) = (&tally, sender.clone(), line.as_bytes());
                scope.spawn(move || {
                    let mut moving = Moving { tally, until, moved: began, bytes: 0 };
                    let result = self.connection(&mut socket, &mut moving, line, all);
                    // The one that waits for it lives as long.
                    let _ = sender.send(ended(&socket, self.direction, result));
                });
            }
            drop(sender);
            self.gather(orders, &results, &tally, began, &look)
        });
        look();
        Ok(self.outcome(carried, tally.bytes.into_inner(), line.len(), began))
    }

    fn dial(&self, address: &SocketAddr) -> Result<TcpStream, String> {
        let socket = TcpStream::connect_timeout(address, self.timeout)
            .map_err(|error| format!("can't connect: {}", error.kind()))?;
        let prepared = socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(WAIT)))
            .and_then(|()| socket.set_write_timeout(Some(WAIT)));
        prepared.map_err(|error| error.to_string())?;
        Ok(socket)
    }

    /// The line, the bytes, and when the time is over.
    fn asked(&self, began: Instant) -> (String, Option<u64>, Option<Instant>) {
        let (bytes, until) = match self.amount {
            Amount::Bytes(bytes) => (Some(bytes), None),
            Amount::Time(time) => (None, Some(began + time)),
            Amount::Whole => (None, None),
        };
        let verb = if self.direction == Direction::Upload { "PUT" } else { "GET" };
        (format!("{verb} {}\n", bytes.unwrap_or(ENDLESS_BYTES)), bytes, until)
    }

    /// Waits for all connections, and looks at what they have moved.
    fn gather(
        &self,
        orders: &Receiver<Command>,
        results: &Receiver<Carried>,
        tally: &Tally,
        began: Instant,
        look: &dyn Fn(),
    ) -> Vec<Carried> {
        let mut next_look = began + self.look;
        let mut carried = Vec::new();
        while carried.len() < self.connections {
            let wait = next_look.saturating_duration_since(Instant::now()).min(GLANCE);
            match results.recv_timeout(wait) {
                Ok(one) => {
                    if one.result.is_err() {
                        tally.ends.store(true, Ordering::Relaxed);
                    }
                    carried.push(one);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if matches!(orders.try_recv(), Ok(Command::Stop | Command::Finish)) {
                tally.ends.store(true, Ordering::Relaxed);
            }
            if Instant::now() >= next_look {
                next_look += self.look;
                look();
            }
        }
        carried
    }

    fn outcome(&self, carried: Vec<Carried>, bytes: u64, line: usize, began: Instant) -> Outcome {
        let ended = carried.iter().map(|one| one.ended).max().unwrap_or(began);
        let mut outcome = Outcome {
            bytes,
            elapsed_ns: nanoseconds(ended.duration_since(began)),
            wire_bytes: bytes,
            ..Outcome::default()
        };
        let is_upload = self.direction == Direction::Upload;
        for one in carried {
            if let Err(why) = one.result {
                outcome.error.get_or_insert_with(|| format!("{}: {why}", self.subject));
            }
            outcome.wire_bytes += if is_upload { line as u64 } else { 0 };
            outcome.tcp.add(one.tcp);
        }
        outcome
    }

    /// Carries one connection's part.
    fn connection(
        &self,
        socket: &mut TcpStream,
        moving: &mut Moving<'_>,
        line: &[u8],
        all: Option<u64>,
    ) -> Result<(), String> {
        socket.write_all(line).map_err(|error| error.to_string())?;
        match self.direction {
            Direction::Download => self.download(socket, moving, all),
            Direction::Upload => self.upload(socket, moving, all),
        }
    }

    fn download(
        &self,
        socket: &mut TcpStream,
        moving: &mut Moving<'_>,
        all: Option<u64>,
    ) -> Result<(), String> {
        let mut block = vec![0; PIECE_BYTES];
        while all.is_none_or(|all| moving.bytes < all) && moving.goes_on() {
            match socket.read(&mut block) {
                Ok(0) => {
                    let (bytes, all) = (moving.bytes, all.unwrap_or(ENDLESS_BYTES));
                    return Err(format!("the server ended after {bytes} of {all} bytes"));
                }
                Ok(count) => moving.moved(count),
                Err(error) => self.waited(moving, &error)?,
            }
        }
        match all {
            None if moving.bytes == 0 && !moving.is_stopped() => {
                let seconds = moving.moved.elapsed().as_secs_f64();
                Err(format!("no payload came within {seconds:.1} s"))
            }
            Some(all) if moving.bytes > all => {
                Err(format!("received {} bytes instead of {all}", moving.bytes))
            }
            _ => Ok(()),
        }
    }

    fn upload(
        &self,
        socket: &mut TcpStream,
        moving: &mut Moving<'_>,
        all: Option<u64>,
    ) -> Result<(), String> {
        let block = vec![0; PIECE_BYTES];
        while all.is_none_or(|all| moving.bytes < all) && moving.goes_on() {
            let left = all.map_or(u64::MAX, |all| all - moving.bytes);
            let piece = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match socket.write(&block[..piece]) {
                Ok(count) => moving.moved(count),
                Err(error) => self.waited(moving, &error)?,
            }
        }
        socket.shutdown(Shutdown::Write).map_err(|error| error.to_string())?;
        let mut reply = Vec::new();
        moving.moved = Instant::now();
        while reply.len() < REPLY_BYTES {
            if moving.is_stopped() {
                return Ok(());
            }
            let mut rest = [0; REPLY_BYTES];
            match socket.read(&mut rest) {
                Ok(0) => break,
                Ok(count) => reply.extend_from_slice(&rest[..count]),
                Err(error) => self.waited(moving, &error)?,
            }
        }
        counted(&String::from_utf8_lossy(&reply), moving.bytes)
    }

    /// Tells a wait that was too long from a failure.
    fn waited(&self, moving: &Moving<'_>, error: &io::Error) -> Result<(), String> {
        let is_wait = matches!(
            error.kind(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
        );
        if !is_wait {
            return Err(format!(
                "the connection failed after {} bytes: {}",
                moving.bytes,
                error.kind()
            ));
        }
        if moving.moved.elapsed() >= self.patience {
            let seconds = self.patience.as_secs_f64();
            return Err(format!("nothing moved for {seconds:.0} s, after {} bytes", moving.bytes));
        }
        Ok(())
    }
}

/// A connection has done its part: what the kernel says of it.
fn ended(socket: &TcpStream, direction: Direction, result: Result<(), String>) -> Carried {
    let path = SocketPath(socket.as_fd());
    Carried { ended: Instant::now(), tcp: Tcp::of(&path, direction), result }
}

/// Checks whether the server counted what we sent.
fn counted(response: &str, sent: u64) -> Result<(), String> {
    let response = response.trim_end();
    match response.parse::<u64>() {
        Ok(counted) if counted == sent => Ok(()),
        Ok(counted) => Err(format!("the server counted {counted} of {sent} bytes")),
        Err(_) => Err(format!("the server replied `{response}` instead of a number of bytes")),
    }
}

impl Moving<'_> {
    fn moved(&mut self, count: usize) {
        self.bytes += count as u64;
        self.tally.bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.moved = Instant::now();
    }

    fn is_stopped(&self) -> bool {
        self.tally.ends.load(Ordering::Relaxed)
    }

    fn goes_on(&self) -> bool {
        !self.is_stopped() && self.until.is_none_or(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn carry(direction: Direction, amount: Amount, serve: fn(TcpStream)) -> Outcome {
        carry_over(1, direction, amount, serve)
    }

    fn carry_over(
        connections: usize,
        direction: Direction,
        amount: Amount,
        serve: fn(TcpStream),
    ) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let raw = Raw {
            destination: Destination::Inet(listener.local_addr().unwrap()),
            timeout: Duration::from_secs(5),
            direction,
            amount,
            connections,
            look: Duration::from_millis(10),
            patience: Duration::from_millis(200),
            clock: Clock::start(),
            subject: "raw://test".into(),
        };
        let serving = std::thread::spawn(move || {
            let accepted = (0..connections).map(|_| listener.accept().unwrap().0);
            let each: Vec<_> =
                accepted.map(|socket| std::thread::spawn(move || serve(socket))).collect();
            each.into_iter().for_each(|one| one.join().unwrap());
        });
        let carrier = Carrier::spawn(move |orders, news| raw.run(&orders, &news)).unwrap();
        let outcome = loop {
            match carrier.news(Instant::now() + Duration::from_secs(20)).unwrap() {
                News::Ready(_) => carrier.tell(Command::Begin),
                News::Look(_) => {}
                News::Done(outcome) => break *outcome,
            }
        };
        drop(carrier);
        serving.join().unwrap();
        outcome
    }

    fn read_line(socket: &mut TcpStream) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_download_is_counted_to_the_byte() {
        let outcome = carry(Direction::Download, Amount::Bytes(3_000_000), |mut socket| {
            assert_eq!(read_line(&mut socket), "GET 3000000\n");
            socket.write_all(&vec![0; 3_000_000]).unwrap();
        });
        assert_eq!((outcome.bytes, outcome.error), (3_000_000, None));
        assert!(outcome.elapsed_ns > 0);
    }

    #[test]
    fn an_upload_ends_when_the_server_has_it_all() {
        let outcome = carry(Direction::Upload, Amount::Bytes(3_000_000), |mut socket| {
            assert_eq!(read_line(&mut socket), "PUT 3000000\n");
            assert_eq!(io::copy(&mut socket, &mut io::sink()).unwrap(), 3_000_000);
            socket.write_all(b"3000000\n").unwrap();
        });
        assert_eq!((outcome.bytes, outcome.error), (3_000_000, None));
    }

    #[test]
    fn several_connections_share_a_transfer() {
        for direction in [Direction::Download, Direction::Upload] {
            let outcome = carry_over(3, direction, Amount::Bytes(2_000_000), |mut socket| {
                if read_line(&mut socket).starts_with("GET") {
                    return socket.write_all(&vec![0; 2_000_000]).unwrap();
                }
                assert_eq!(io::copy(&mut socket, &mut io::sink()).unwrap(), 2_000_000);
                socket.write_all(b"2000000\n").unwrap();
            });
            assert_eq!((outcome.bytes, outcome.error), (6_000_000, None));
            let is_upload = direction == Direction::Upload;
            assert_eq!(outcome.wire_bytes, 6_000_000 + if is_upload { 3 * 12 } else { 0 });
            let told = cfg!(target_os = "linux");
            assert_eq!(outcome.tcp.retransmits.is_some(), told && is_upload);
            assert_eq!(outcome.tcp.congestion_control.is_some(), told && is_upload);
            assert_eq!(outcome.tcp.out_of_order.is_some(), told && !is_upload);
        }
    }

    #[test]
    fn one_that_fails_ends_the_others() {
        static SEEN: AtomicBool = AtomicBool::new(false);
        let outcome = carry_over(2, Direction::Download, Amount::Bytes(1 << 40), |mut socket| {
            read_line(&mut socket);
            if SEEN.swap(true, Ordering::Relaxed) {
                while socket.write_all(&[0; 4096]).is_ok() {}
            }
        });
        let error = outcome.error.unwrap();
        assert!(error.contains("the server ended after 0 of 1099511627776 bytes"), "{error}");
    }

    #[test]
    fn a_server_that_lost_something_is_told_of() {
        assert_eq!(counted("7\n", 7), Ok(()));
        assert!(counted("6\n", 7).unwrap_err().contains("counted 6 of 7"));
        assert!(counted("error: no\n", 7).unwrap_err().contains("`error: no`"));
    }

    #[test]
    fn a_server_that_ends_early_is_told_of() {
        let outcome = carry(Direction::Download, Amount::Bytes(1000), |mut socket| {
            read_line(&mut socket);
            socket.write_all(&[0; 10]).unwrap();
        });
        let error = outcome.error.unwrap();
        assert_eq!(error, "raw://test: the server ended after 10 of 1000 bytes");
    }

    #[test]
    fn a_server_that_stops_is_given_up() {
        let outcome = carry(Direction::Download, Amount::Bytes(1000), |mut socket| {
            read_line(&mut socket);
            // Until the other side has lost its patience.
            let _ = socket.read(&mut [0]);
        });
        assert!(outcome.error.unwrap().contains("nothing moved for 0 s, after 0 bytes"));
    }

    #[test]
    fn time_ends_a_download() {
        let outcome =
            carry(Direction::Download, Amount::Time(Duration::from_millis(100)), |mut socket| {
                read_line(&mut socket);
                while socket.write_all(&[0; 4096]).is_ok() {}
            });
        assert!(outcome.error.is_none() && outcome.bytes > 0);
        assert!(outcome.elapsed_ns >= 100_000_000);
    }
}
