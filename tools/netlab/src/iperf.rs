//! `bolide net iperf`: raw TCP through a lab, as the measure of everything else.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::Mistake;
use crate::lab::Lab;
use crate::linux::namespace::inside;
use crate::raw::{self, Transfer};
use crate::spec::Node;

/// A side that uses so much of its core is full.
const FULL: f64 = 0.9;

/// How long the connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of the measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Server to client, instead of client to server.
    pub download: bool,
    /// For how long.
    pub time: Duration,
    /// The congestion control; `None`: the lab's.
    pub congestion: Option<String>,
}

/// Result of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `download: server → client` or `upload: client → server`.
    pub direction: String,
    /// Congestion control of TCP.
    pub congestion_control: String,
    /// Payload bits per second, as the receiver saw them.
    pub bits_per_second: f64,
    /// Payload bytes that the receiver has got.
    pub bytes: u64,
    /// From its first byte to its last.
    pub seconds: f64,
    /// Segments that the sender sent again.
    pub retransmits: Option<u64>,
    /// CPU seconds per GiB of who sends.
    pub sender_cpu_seconds_per_gib: f64,
    /// CPU seconds per GiB of who receives.
    pub receiver_cpu_seconds_per_gib: f64,
    /// The part of the time that the sender's thread was running, 1 for a full core.
    pub sender_busy: f64,
    /// The same of the receiver's thread.
    pub receiver_busy: f64,
    /// `sender`, `receiver`, both, or neither.
    pub full: String,
    /// The cores of the server and the client, if they were apart.
    pub cores: Option<[usize; 2]>,
}

/// Measures: the server on the first core that this process may use, the client on the second.
///
/// # Errors
///
/// One sentence.
pub fn run(lab: &Lab, options: &Options) -> Result<Outcome, Mistake> {
    let spec = lab.spec();
    let congestion = options.congestion.as_deref();
    let cores = two_cores();
    let began = Instant::now();
    let (client, server) = thread::scope(|scope| {
        let address = (spec.right.host(), 0).into();
        let server_at = spec.namespace(Node::Server);
        let listener = inside(&server_at, || raw::listen(address, congestion))?
            .map_err(Mistake::io("no socket of the server"))?;
        let address = listener.address().map_err(Mistake::io("no address of the server"))?;
        let serving = scope.spawn(move || {
            inside(&server_at, || {
                pin(cores.map(|cores| cores[0]));
                listener.serve_one(CONNECT_TIMEOUT).map(|(_, transfer)| transfer)
            })
        });
        let client = inside(&spec.namespace(Node::Client), || {
            pin(cores.map(|cores| cores[1]));
            let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
            if options.download {
                raw::get(stream, raw::ENDLESS, Some(options.time), congestion)
            } else {
                raw::put(stream, raw::ENDLESS, Some(options.time), congestion)
            }
        })?
        .map_err(Mistake::io("the client's side of the transfer"))?;
        let server =
            serving.join().map_err(|_| Mistake::Failed("the server panicked".to_owned()))?;
        let server = server?.map_err(Mistake::io("the server's side of the transfer"))?;
        Ok::<_, Mistake>((client, server))
    })?;
    let (sender, receiver) = if options.download { (server, client) } else { (client, server) };
    Ok(outcome(options.download, &sender, &receiver, began.elapsed(), cores))
}

fn outcome(
    download: bool,
    sender: &Transfer,
    receiver: &Transfer,
    passed: Duration,
    cores: Option<[usize; 2]>,
) -> Outcome {
    let busy = |transfer: &Transfer| transfer.cpu_seconds / passed.as_secs_f64().max(1e-9);
    let (sends, receives) = (busy(sender), busy(receiver));
    let full = match (sends >= FULL, receives >= FULL) {
        (true, true) => "both",
        (true, false) => "sender",
        (false, true) => "receiver",
        (false, false) => "neither",
    };
    let direction =
        if download { "download: server → client" } else { "upload: client → server" };
    Outcome {
        direction: direction.to_owned(),
        congestion_control: sender.congestion.clone().unwrap_or_else(|| "unknown".to_owned()),
        bits_per_second: receiver.bits_per_second(),
        bytes: receiver.bytes,
        seconds: receiver.seconds,
        retransmits: sender.retransmits,
        sender_cpu_seconds_per_gib: sender.cpu_seconds_per_gib(),
        receiver_cpu_seconds_per_gib: receiver.cpu_seconds_per_gib(),
        sender_busy: sends,
        receiver_busy: receives,
        full: full.to_owned(),
        cores,
    }
}

/// The first two cores that this process may use.
fn two_cores() -> Option<[usize; 2]> {
    let set = sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    Some([cores.next()?, cores.next()?])
}

/// Keeps this thread on a core.
fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        // Without it the figures are noisier.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_full_is_told_from_the_threads_clocks() {
        let side = |cpu_seconds| Transfer {
            bytes: 1 << 30,
            seconds: 1.0,
            cpu_seconds,
            congestion: Some("cubic".to_owned()),
            retransmits: Some(3),
        };
        let second = Duration::from_secs(1);
        let found = outcome(true, &side(0.95), &side(0.5), second, None);
        assert_eq!((found.full.as_str(), found.retransmits), ("sender", Some(3)));
        assert_eq!(found.direction, "download: server → client");
        assert!((found.sender_cpu_seconds_per_gib - 0.95).abs() < 1e-9);
        assert_eq!(outcome(false, &side(0.1), &side(0.2), second, None).full, "neither");
        assert_eq!(outcome(false, &side(0.1), &side(0.92), second, None).full, "receiver");
    }
}
