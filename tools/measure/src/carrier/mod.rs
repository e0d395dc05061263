//! The thread that carries a transfer: connections with requests on them, and probes next to these.

mod connection;
mod feed;
mod ndt7;
mod service;
mod tcp;
mod transfer_state;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_eventloop::{Limits as LoopLimits, MioKernel, Worker, limits as loop_limits};
use bolide_probe::stop::Stop;

use crate::clock::Clock;
use crate::clock::GLANCE;
use crate::dialing::Route;
use crate::latency::Sample;
use crate::plan::Transfer;
use crate::report::{TlsReport, Told};
use crate::verdict::Stalls;
use service::{CarrierService, LoopHandle};

pub(crate) use tcp::Tcp;
pub(crate) use transfer_state::ending_in_words;

/// How long a thread without work waits before it looks for commands.
const COMMAND_WAIT: Duration = Duration::from_millis(5);

/// Bytes of one connection in one pass: there are no others to be fair to but probes, and
/// these wait for a millisecond at most.
const PASS_BYTES: usize = 4 * 1024 * 1024;

/// Reads in one pass.
const PASS_READS_COUNT: u32 = 16;

/// Task of a carrier.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) route: Route,
    pub(crate) transfer: Transfer,
    /// Path that is probed on the transfer's own connections.
    pub(crate) probe_path: Option<String>,
    /// How often there is a look at what has been transferred.
    pub(crate) look: Duration,
    /// How long nothing may move before the transfer is given up.
    pub(crate) patience: Duration,
    /// How much of the responses is kept, in bytes.
    pub(crate) kept_bytes: usize,
    pub(crate) clock: Clock,
}

/// Order to a carrier.
#[derive(Debug)]
pub(crate) enum Command {
    /// The transfer begins.
    Begin,
    /// One more connection with the same requests.
    Add,
    /// So many probes per second from here on; 0: none.
    Probe(f64),
    /// The transfer ends here, whatever is still under way.
    Stop,
    /// The thread ends.
    Finish,
}

/// Facts about the connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) version: http::Version,
    pub(crate) tls: Option<TlsReport>,
    /// Of the first connection: TCP's and TLS's handshakes, in nanoseconds.
    pub(crate) connect_ns: u64,
    pub(crate) handshake_ns: Option<u64>,
}

/// Amount that has been transferred at some time.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Since the transfer began, in nanoseconds.
    pub(crate) at_ns: u64,
    /// Payload since the transfer began.
    pub(crate) bytes: u64,
    /// Probes that were answered since the look before.
    pub(crate) samples: Vec<Sample>,
}

/// Result of a transfer.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Payload, in bytes.
    pub(crate) bytes: u64,
    /// From the first request to the last byte, or to the last response of an upload.
    pub(crate) elapsed_ns: u64,
    /// Bytes of TCP's streams in the direction of the transfer: payload, framing, TLS.
    pub(crate) wire_bytes: u64,
    /// The kernel's figures of the connections.
    pub(crate) tcp: Tcp,
    pub(crate) stalls: Stalls,
    /// The server's figures of its side.
    pub(crate) told: Option<Told>,
    /// The first thing that went wrong.
    pub(crate) error: Option<String>,
    /// Probes of which nothing came.
    pub(crate) lost: u64,
    /// The beginning of the responses, as much as was to be kept.
    pub(crate) kept: Vec<u8>,
}

/// News of a carrier.
#[derive(Debug)]
pub(crate) enum News {
    /// Every connection can be used.
    Ready(Facts),
    /// As often as the task says, while the transfer goes on.
    Look(Look),
    /// The transfer is over.
    Done(Box<Outcome>),
}

/// The user wanted the measurement to end.
#[derive(Debug)]
pub(crate) struct Stopped;

/// A carrier, seen from outside. Ends its thread when it is dropped.
#[derive(Debug)]
pub(crate) struct Carrier {
    commands: Sender<Command>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
}

impl Carrier {
    /// Starts the thread, which makes the connections at once.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(crate) fn start(task: Task) -> Result<Self, String> {
        Self::spawn(move |orders, news| {
            let last_words = news.clone();
            if let Err(error) = run(task, orders, news) {
                let error = Some(format!("the event loop failed: {error}"));
                let outcome = Outcome { error, ..Outcome::default() };
                // Its reader may have gone.
                let _ = last_words.send(News::Done(Box::new(outcome)));
            }
        })
    }

    /// A thread that obeys and tells as a carrier does.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(crate) fn spawn(
        carry: impl FnOnce(Receiver<Command>, Sender<News>) + Send + 'static,
    ) -> Result<Self, String> {
        let (commands, orders) = channel();
        let (sender, news) = channel();
        let thread = std::thread::Builder::new()
            .name("measure".into())
            .spawn(move || carry(orders, sender))
            .map_err(|error| format!("can't start a thread: {error}"))?;
        Ok(Self { commands, news, thread: Some(thread) })
    }

    /// Tells the thread something. One that has ended has said so.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Waits for the next news until `latest`. `None`: there was none.
    pub(crate) fn news(&self, latest: Instant) -> Option<News> {
        let wait = latest.saturating_duration_since(Instant::now());
        match self.news.recv_timeout(wait) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let error = Some("the thread that carried the transfer has ended".to_owned());
                Some(News::Done(Box::new(Outcome { error, ..Outcome::default() })))
            }
        }
    }

    /// The same, unless the user wants all to end before: then `Err`.
    pub(crate) fn news_or_stop(
        &self,
        latest: Instant,
        stop: &Stop,
    ) -> Result<Option<News>, Stopped> {
        loop {
            if stop.is_asked() {
                return Err(Stopped);
            }
            let now = Instant::now();
            let news = self.news(latest.min(now + GLANCE));
            if news.is_some() || now >= latest {
                return Ok(news);
            }
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.tell(Command::Finish);
        if let Some(thread) = self.thread.take() {
            // Its panic, if there was one, has been printed.
            let _ = thread.join();
        }
    }
}

fn run(task: Task, orders: Receiver<Command>, news: Sender<News>) -> std::io::Result<()> {
    let limits = LoopLimits {
        turns: loop_limits::Turns {
            pass_bytes: PASS_BYTES,
            pass_reads_count: PASS_READS_COUNT,
            ..loop_limits::Turns::DEFAULT
        },
        ..LoopLimits::default()
    };
    let handle = Rc::new(LoopHandle::default());
    let shared = Rc::clone(&handle);
    let service = CarrierService::new(Arc::new(task), orders, news, shared);
    let mut worker = Worker::new(MioKernel::new()?, limits, move |_| service);
    while !handle.finished.get() {
        worker.step(Some(COMMAND_WAIT))?;
        handle.stats.set(worker.stats());
    }
    Ok(())
}
