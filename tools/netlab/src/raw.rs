//! TCP with nothing on it, as the measure of everything else: 1 MiB writes, large reads, blocking,
//! one thread for a connection.
//!
//! The protocol is one line from the client, at most 64 bytes:
//!
//! - `GET <bytes>\n`: the server sends so many zeros and closes. A client that wants to measure by
//!   time asks for more than it will take ([`ENDLESS`]) and closes when it has enough.
//! - `PUT <bytes>\n`, then so many bytes, or fewer and the end of the stream: the server reads and
//!   discards them, answers `<bytes>\n` with how many there were, and closes.
//!
//! Anything else is answered with `error: …\n` and a close.

mod request;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use socket2::SockRef;

use crate::limits::{RAW_CONNECTIONS_COUNT, RAW_REQUEST_TIMEOUT, RAW_SILENCE_TIMEOUT};
pub use request::{Request, Verb};

/// Size that is written, and read, with one system call.
pub const BLOCK_BYTES: usize = 1 << 20;

/// As many bytes as can be asked for: for transfers that end by time.
pub const ENDLESS: u64 = u64::MAX;

/// One side of a finished transfer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// Payload that this side has written, or read.
    pub bytes: u64,
    /// From the first byte to the last, as this side saw them.
    pub seconds: f64,
    /// User and system time of the thread that did it.
    pub cpu_seconds: f64,
    /// Peak memory isn't the transfer's own, so it isn't here; this is what TCP used.
    pub congestion: Option<String>,
    /// Segments that this side's network namespace sent again meanwhile; `None` where that is not
    /// known. In a lab nothing else is there.
    pub retransmits: Option<u64>,
}

impl Transfer {
    /// Payload bits per second; 0 for a transfer that took no time.
    pub fn bits_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }

    /// CPU seconds per GiB of payload; 0 for an empty transfer.
    pub fn cpu_seconds_per_gib(&self) -> f64 {
        if self.bytes == 0 {
            0.0
        } else {
            self.cpu_seconds * f64::from(1 << 30) / self.bytes as f64
        }
    }
}

/// A server of raw TCP.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    congestion: Option<String>,
}

/// Listens on `address`; connections use `congestion`, or the system's default.
///
/// # Errors
///
/// If it can't listen there.
pub fn listen(address: SocketAddr, congestion: Option<&str>) -> io::Result<Listener> {
    let listener = TcpListener::bind(address)?;
    Ok(Listener { listener, congestion: congestion.map(str::to_owned) })
}

impl Listener {
    /// Returns where it listens.
    ///
    /// # Errors
    ///
    /// If the system doesn't say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Carries one connection out on this thread, if one comes within `time`: its request, and what
    /// the server saw of it.
    ///
    /// # Errors
    ///
    /// If none comes, it breaks, or asks for nothing that there is.
    pub fn serve_one(&self, time: Duration) -> io::Result<(Request, Transfer)> {
        let timeout = Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
        if poll(&mut polled, Some(&timeout))? == 0 {
            let sentence = format!("no client connected within {} s", time.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, sentence));
        }
        let (stream, _) = self.listener.accept()?;
        serve(stream, self.congestion.as_deref())
    }

    /// Serves for ever, each connection on a thread of its own; `finished` hears of each.
    ///
    /// # Errors
    ///
    /// Once it can't accept any more.
    pub fn serve(
        self,
        finished: impl Fn(io::Result<(Request, Transfer)>) + Send + Sync,
    ) -> io::Error {
        let (here, finished) = (Arc::new(()), &finished);
        thread::scope(|scope| {
            loop {
                let stream = match self.listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(error) => return error,
                };
                if Arc::strong_count(&here) > RAW_CONNECTIONS_COUNT {
                    continue;
                }
                let (held, congestion) = (Arc::clone(&here), self.congestion.as_deref());
                scope.spawn(move || {
                    finished(serve(stream, congestion));
                    drop(held);
                });
            }
        })
    }
}

/// Answers one connection.
fn serve(mut stream: TcpStream, congestion: Option<&str>) -> io::Result<(Request, Transfer)> {
    prepare(&stream, congestion)?;
    let request = match request::read(&mut stream, RAW_REQUEST_TIMEOUT) {
        Ok(request) => request,
        Err(error) => {
            // A client that asked for nonsense may be gone already.
            let _ = stream.write_all(format!("error: {error}\n").as_bytes());
            return Err(error);
        }
    };
    let watch = Watch::start();
    let transfer = match request.verb {
        Verb::Get => {
            let bytes = match send(&mut stream, request.bytes, None) {
                (bytes, Ok(())) => {
                    let transfer = watch.stop(bytes, &stream);
                    stream.shutdown(Shutdown::Write)?;
                    // Until the client has taken all of it.
                    let _ = stream.read(&mut [0]);
                    return Ok((request, transfer));
                }
                // A client that has enough just closes.
                (bytes, Err(_)) if request.bytes == ENDLESS => bytes,
                (_, Err(error)) => return Err(error),
            };
            watch.stop(bytes, &stream)
        }
        Verb::Put => {
            let (bytes, first) = receive(&mut stream, request.bytes, None)?;
            let transfer = watch.from(first).stop(bytes, &stream);
            stream.write_all(format!("{bytes}\n").as_bytes())?;
            transfer
        }
    };
    Ok((request, transfer))
}

/// Takes `bytes` from a raw TCP server over a fresh connection, for at most `time`.
///
/// # Errors
///
/// If the connection breaks, or ends early.
pub fn get(
    mut stream: TcpStream,
    bytes: u64,
    time: Option<Duration>,
    congestion: Option<&str>,
) -> io::Result<Transfer> {
    prepare(&stream, congestion)?;
    let watch = Watch::start();
    stream.write_all(Request { verb: Verb::Get, bytes }.line().as_bytes())?;
    let (taken, first) = receive(&mut stream, bytes, time)?;
    if taken < bytes && time.is_none() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("the raw server closed after {taken} of {bytes} bytes"),
        ));
    }
    Ok(watch.from(first).stop(taken, &stream))
}

/// Sends `bytes` to a raw TCP server over a fresh connection, for at most `time`; the time of the
/// transfer ends with the server's response.
///
/// # Errors
///
/// If the connection breaks, or the server has got fewer.
pub fn put(
    mut stream: TcpStream,
    bytes: u64,
    time: Option<Duration>,
    congestion: Option<&str>,
) -> io::Result<Transfer> {
    prepare(&stream, congestion)?;
    let watch = Watch::start();
    stream.write_all(Request { verb: Verb::Put, bytes }.line().as_bytes())?;
    let (sent, result) = send(&mut stream, bytes, time);
    result?;
    stream.shutdown(Shutdown::Write)?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if response.trim().parse() != Ok(sent) {
        return Err(io::Error::other(format!(
            "the raw server replied `{}` to {sent} bytes",
            response.trim()
        )));
    }
    Ok(watch.stop(sent, &stream))
}

fn prepare(stream: &TcpStream, congestion: Option<&str>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(RAW_SILENCE_TIMEOUT))?;
    stream.set_write_timeout(Some(RAW_SILENCE_TIMEOUT))?;
    match congestion {
        Some(name) => set_congestion(stream, name),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn set_congestion(stream: &TcpStream, name: &str) -> io::Result<()> {
    SockRef::from(stream).set_tcp_congestion(name.as_bytes()).map_err(|error| {
        io::Error::new(error.kind(), format!("congestion control `{name}` was refused: {error}"))
    })
}

#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &TcpStream, name: &str) -> io::Result<()> {
    Err(io::Error::other(format!("this system can't use congestion control `{name}`")))
}

/// The congestion control of a connection.
#[cfg(target_os = "linux")]
fn congestion_of(stream: &TcpStream) -> Option<String> {
    let name = SockRef::from(stream).tcp_congestion().ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

#[cfg(not(target_os = "linux"))]
fn congestion_of(stream: &TcpStream) -> Option<String> {
    let _ = SockRef::from(stream);
    None
}

/// Writes zeros until there are `bytes` of them, or `time` is over: how many, and how it ended.
fn send(stream: &mut TcpStream, bytes: u64, time: Option<Duration>) -> (u64, io::Result<()>) {
    let block = vec![0; BLOCK_BYTES];
    let until = time.map(|time| Instant::now() + time);
    let mut left = bytes;
    while left > 0 && until.is_none_or(|until| Instant::now() < until) {
        let piece = usize::try_from(left).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        match stream.write(&block[..piece]) {
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (bytes - left, Err(error)),
        }
    }
    (bytes - left, Ok(()))
}

/// Reads until there are `bytes`, the stream ends, or `time` is over: how many, and when the first
/// came.
fn receive(
    stream: &mut TcpStream,
    bytes: u64,
    time: Option<Duration>,
) -> io::Result<(u64, Instant)> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut first = None;
    let mut left = bytes;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        match stream.read(&mut block[..piece]) {
            Ok(0) => break,
            Ok(read) => left -= read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let first = *first.get_or_insert_with(Instant::now);
        if time.is_some_and(|time| first.elapsed() >= time) {
            break;
        }
    }
    Ok((bytes - left, first.unwrap_or_else(Instant::now)))
}

/// Time, CPU time and retransmits since a moment.
struct Watch {
    began: Instant,
    cpu: Duration,
    retransmits: Option<u64>,
}

impl Watch {
    fn start() -> Self {
        Self { began: Instant::now(), cpu: thread_cpu(), retransmits: retransmits() }
    }

    /// Counts time only from `moment`.
    fn from(self, moment: Instant) -> Self {
        Self { began: moment, ..self }
    }

    fn stop(&self, bytes: u64, stream: &TcpStream) -> Transfer {
        Transfer {
            bytes,
            seconds: self.began.elapsed().as_secs_f64(),
            cpu_seconds: thread_cpu().saturating_sub(self.cpu).as_secs_f64(),
            congestion: congestion_of(stream),
            retransmits: retransmits()
                .zip(self.retransmits)
                .map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// `RetransSegs` of the network namespace that this thread is in.
fn retransmits() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split(' ').position(|name| name == "RetransSegs")?;
    values.split(' ').nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests;
