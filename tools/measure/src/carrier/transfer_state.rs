//! State that the connections of a transfer share: the task, the clock, the counts.

use std::sync::Arc;
use std::time::Duration;

use bolide_client::{Ending, Step};
use bolide_connection::Http2Stats;

use super::{Facts, Task, Tcp};
use crate::clock::nanoseconds;
use crate::latency::{Kind, Pulse, Sample};
use crate::plan::Amount;
use crate::report::Told;
use crate::verdict::Stalls;

/// How long a server lets a subtest of ndt7 take.
const SUBTEST_TIME: Duration = Duration::from_secs(10);

/// How far the transfer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connections are being made.
    Connecting,
    /// They are there, and were not told to begin.
    Waiting,
    Running,
    /// The time is over, and uploads are brought to their end.
    Ending,
    /// The last look at every connection is under way.
    Counting,
    Over,
}

/// State that the connections share.
#[derive(Debug)]
pub(super) struct TransferState {
    pub(super) task: Arc<Task>,
    pub(super) now_ns: u64,
    pub(super) stage: Stage,
    pub(super) facts: Option<Facts>,
    /// Progress of the transfer.
    pub(super) progress: Progress,
    pub(super) error: Option<String>,
    pub(super) pulse: Pulse,
    /// Probes that are due and that no connection has taken: when they were due.
    pub(super) due: Vec<u64>,
    /// Answered probes since the last look.
    pub(super) samples: Vec<Sample>,
    /// Probes that are under way.
    pub(super) probes: u64,
    pub(super) lost: u64,
    /// Bytes that are kept of the responses.
    pub(super) kept: Vec<u8>,
    pub(super) stalls: Stalls,
    /// The kernel's figures of the connections.
    pub(super) tcp: Tcp,
    /// The server's figures of its side.
    pub(super) told: Option<Told>,
}

/// Progress of the transfer.
#[derive(Debug)]
pub(super) struct Progress {
    /// Connections that can be used.
    pub(super) open: usize,
    /// Requests that are complete and have no successor.
    pub(super) done: usize,
    /// Streams on which payload has moved.
    pub(super) moving: usize,
    /// Payload.
    pub(super) bytes: u64,
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
}

impl TransferState {
    pub(super) fn new(task: Arc<Task>) -> Self {
        Self {
            task,
            now_ns: 0,
            stage: Stage::Connecting,
            facts: None,
            error: None,
            pulse: Pulse::silent(),
            due: Vec::new(),
            samples: Vec::new(),
            probes: 0,
            lost: 0,
            kept: Vec::new(),
            stalls: Stalls::default(),
            tcp: Tcp::default(),
            told: None,
            progress: Progress { open: 0, done: 0, moving: 0, bytes: 0, began_ns: 0, ended_ns: 0 },
        }
    }

    /// `GET http://host/path`, as mistakes begin.
    pub(super) fn subject(&self) -> String {
        let Task { route, transfer, .. } = &*self.task;
        let (method, path) = (&transfer.method, &transfer.path);
        format!("{method} {}://{}{path}", route.scheme, route.authority)
    }

    /// The first thing that goes wrong ends the transfer.
    pub(super) fn fail(&mut self, what: &str) {
        if self.error.is_none() && !matches!(self.stage, Stage::Counting | Stage::Over) {
            self.error = Some(format!("{}: {what}", self.subject()));
        }
    }

    /// The server has ended a subtest of ndt7: one that took less than half of its time says nothing of the path.
    pub(super) fn judge_end(&mut self) {
        let Amount::Time(time) = self.task.transfer.amount else { return };
        let took = Duration::from_nanos(self.now_ns.saturating_sub(self.progress.began_ns));
        let due = time.min(SUBTEST_TIME);
        if took < due / 2 {
            let (took, due) = (took.as_secs_f64(), due.as_secs_f64());
            self.fail(&format!("the server ended the subtest after {took:.3} s of {due} s"));
        }
    }

    /// The time of a download is over: payload has to have come on each of its streams.
    pub(super) fn judge_time(&mut self, streams: usize) {
        if self.progress.moving < streams && self.error.is_none() {
            let took = Duration::from_nanos(self.now_ns.saturating_sub(self.progress.began_ns));
            let (silent, took) = (streams - self.progress.moving, took.as_secs_f64());
            let what = if streams == 1 {
                format!("no payload came within {took:.1} s")
            } else {
                format!("no payload came on {silent} of {streams} streams within {took:.1} s")
            };
            self.fail(&what);
        }
    }

    /// Keeps as much of a response as is to be kept.
    #[inline]
    pub(super) fn keep(&mut self, data: &[u8]) {
        let room = self.task.kept_bytes - self.kept.len();
        if room > 0 {
            self.kept.extend_from_slice(&data[..room.min(data.len())]);
        }
    }

    /// Returns whether payload counts.
    pub(super) fn counts(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Ending) && self.error.is_none()
    }

    /// When the time of the transfer is over, if it has one.
    pub(super) fn time_is_over_ns(&self) -> Option<u64> {
        match self.task.transfer.amount {
            Amount::Time(time) => Some(self.progress.began_ns + nanoseconds(time)),
            Amount::Bytes(_) | Amount::Whole => None,
        }
    }

    /// Returns whether a request that is complete is followed by another one.
    pub(super) fn goes_on(&self) -> bool {
        self.stage == Stage::Running && self.time_is_over_ns().is_some_and(|end| self.now_ns < end)
    }

    /// A probe was answered.
    pub(super) fn answered(&mut self, due_ns: u64) {
        self.probes -= 1;
        let took_ns = self.now_ns.saturating_sub(due_ns);
        self.samples.push(Sample {
            due_ns,
            kind: Kind::SameConnection,
            took_ns,
            ..Sample::default()
        });
    }

    /// Adds what an HTTP/2 connection has counted since `before`.
    pub(super) fn add_stalls(&mut self, now: &Http2Stats, before: &Http2Stats) {
        let ns = |now: u64, before: u64, unit: u64| now.saturating_sub(before) * unit;
        let stalls = &mut self.stalls;
        stalls.peer_stream_ns +=
            ns(now.stalls.stream_window_ms, before.stalls.stream_window_ms, 1_000_000);
        stalls.peer_connection_ns +=
            ns(now.stalls.connection_window_ms, before.stalls.connection_window_ms, 1_000_000);
        stalls.own_stream_ns += ns(now.own.stream_window_us, before.own.stream_window_us, 1000);
        stalls.own_connection_ns +=
            ns(now.own.connection_window_us, before.own.connection_window_us, 1000);
    }
}

/// Why a connection is over, in words.
pub(crate) fn ending_in_words(ending: &Ending, is_tls: bool) -> String {
    if let Some(what) = &ending.tls {
        return format!(
            "the TLS handshake failed: {what}{}",
            if what.contains("ertificate") {
                " (--cacert names the roots to trust; --insecure trusts any certificate)"
            } else {
                ""
            }
        );
    }
    match (ending.step, ending.socket) {
        (Step::Handshaking, Some(kind)) if is_tls => format!("the TLS handshake failed: {kind}"),
        (Step::Connecting, Some(kind)) => format!("can't connect: {kind}"),
        (_, Some(kind)) => kind.to_string(),
        (_, None) => ending.reason.what.to_owned(),
    }
}
