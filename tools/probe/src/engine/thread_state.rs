//! State that the connections of one thread share: the plan, the clock, the seats and the counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_client::{Ending, Step};
use bolide_eventloop::Agenda;
use bolide_semantics::{AbortReason, Blame};
use fastrand::Rng;
use hdrhistogram::Histogram;

use super::asked::{Asked, Redirect};
use super::checks::Judge;
use super::histograms::empty;
use super::pacer::Pacer;
use super::script::Script;
use super::seats::Seats;
use super::servers::Server;
use super::tally::Tally;
use super::template::Rendered;
use super::users::Crowd;
use super::websocket::WebSocketTask;
use crate::plan::EventsPlan;
use crate::progress::Record;
use crate::report::Failure;
use crate::scenario::Scenario;

/// Task of all threads.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) script: Script,
    pub(super) judge: Judge,
    /// At least one: the plan's own.
    pub(super) servers: Vec<Server>,
    /// Scenario whose steps the requests are.
    pub(super) scenario: Option<Arc<Scenario>>,
    /// Requests in flight on a connection at most.
    pub(super) depth: usize,
    /// How long a response may take, or the next event of a stream, in nanoseconds.
    pub(super) timeout_ns: u64,
    /// Responses are streams of events.
    pub(super) events: Option<EventsPlan>,
    /// Of 2^32 requests, so many are recorded.
    pub(super) recorded: Option<u64>,
    /// Requests are messages on WebSocket connections.
    pub(super) websocket: Option<WebSocketTask>,
    /// When the engine began: times are counted from here.
    pub(super) epoch: Instant,
}

impl Task {
    /// A time in nanoseconds since the engine began.
    #[inline]
    pub(super) fn nanoseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.epoch);
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
    }

    /// The other way round.
    pub(super) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }
}

/// Counts since the last look, to show progress.
#[derive(Debug)]
pub(super) struct Interval {
    pub(super) completed: u64,
    pub(super) failures: BTreeMap<Failure, u64>,
    pub(super) latency: Histogram<u64>,
}

impl Interval {
    pub(super) fn new() -> Self {
        Self { completed: 0, failures: BTreeMap::new(), latency: empty() }
    }

    fn failed(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }
}

/// State that the connections of one thread share.
#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) task: Arc<Task>,
    /// The time of this call, in nanoseconds since the engine began.
    pub(super) now_ns: u64,
    pub(super) seats: Seats,
    pub(super) pacer: Pacer,
    pub(super) tally: Tally,
    pub(super) interval: Interval,
    pub(super) random: Rng,
    /// The next request of the script.
    pub(super) turn: usize,
    /// The texts of the request that is sent.
    pub(super) rendered: Rendered,
    /// The cookies that go with it.
    pub(super) cookies: String,
    /// The next connection, and its destination.
    dealing: Dealing,
    /// Requests in flight, those that don't count included.
    pub(super) in_flight: u64,
    /// Requests in flight that began after the warm-up of this phase.
    pub(super) counted_in_flight: u64,
    /// The last connect that failed, to which server and in words, until it is asked for.
    pub(super) trouble: Option<(usize, String)>,
    /// Since the look before.
    pub(super) records: Vec<Record>,
}

/// The next connection, and its destination.
#[derive(Debug)]
pub(super) struct Dealing {
    /// The number of the next connection, and how many threads number theirs.
    next_connection: u64,
    threads: u64,
    /// For each server.
    next_destinations: Vec<usize>,
}

impl ThreadState {
    /// `number`: the thread's, of so many in all engines. Threads begin at different requests of the script.
    pub(super) fn new(
        task: Arc<Task>,
        seats: usize,
        random: Rng,
        (number, threads): (usize, usize),
    ) -> Self {
        let requests = task.script.requests.len();
        let turn = number * requests / threads;
        let (number, threads) = (number as u64, threads as u64);
        let servers = task.servers.len();
        let crowd = task.scenario.clone();
        let crowd = crowd.map(|scenario| Crowd { scenario, next_number: number, threads });
        Self {
            task,
            now_ns: 0,
            seats: Seats::new(seats, servers),
            pacer: Pacer::idle(crowd),
            tally: Tally::new(requests),
            interval: Interval::new(),
            random,
            turn,
            rendered: Rendered::default(),
            cookies: String::new(),
            in_flight: 0,
            counted_in_flight: 0,
            trouble: None,
            records: Vec::new(),
            dealing: Dealing {
                next_connection: number,
                threads,
                next_destinations: vec![0; servers],
            },
        }
    }

    /// Calls connections for the requests that wait.
    pub(super) fn deal(&mut self, agenda: &mut Agenda) {
        for server in 0..self.task.servers.len() {
            while self.seats.has_free(server) && self.pacer.promise(server) {
                match self.seats.promise(server) {
                    Some(Some(token)) => agenda.call(token),
                    Some(None) => {}
                    None => {
                        self.pacer.redeem(server, 1);
                        break;
                    }
                }
            }
        }
    }

    /// Deals out what has become due in a connection's turn: it goes to others, if that one can't take it; and the loop wakes up for
    /// the next user.
    #[inline]
    pub(super) fn deal_users(&mut self, agenda: &mut Agenda) {
        if self.pacer.users().is_none() {
            return;
        }
        self.deal(agenda);
        if let Some(at_ns) = self.pacer.next_pause_ns() {
            agenda.alarm(self.task.instant(at_ns));
        }
    }

    /// Makes the connections that are wanted, as many at once as is reasonable.
    pub(super) fn dial(&mut self, agenda: &mut Agenda) {
        let now_ns = self.now_ns;
        let is_connect = self.pacer.is_connect();
        while let Some(seat) = self.seats.next_vacant(is_connect, now_ns) {
            let server = self.seats.server(seat);
            let request = if is_connect { self.pacer.take(server, now_ns) } else { None };
            if is_connect && request.is_none() {
                return self.seats.give_back(seat);
            }
            if let Some(begun_ns) = request {
                self.began(begun_ns);
            }
            self.seats.dial(seat, now_ns, request);
            let destinations = &self.task.servers[server].destinations;
            let next = &mut self.dealing.next_destinations[server];
            let to = destinations[*next].clone();
            *next = (*next + 1) % destinations.len();
            agenda.connect(to, u64::from(seat));
        }
        if let Some(at_ns) = self.seats.rested_at() {
            agenda.alarm(self.task.instant(at_ns));
        }
    }

    /// Returns what was counted; from here on it is counted anew.
    pub(super) fn take_tally(&mut self) -> Tally {
        let fresh = Tally::new(self.task.script.requests.len());
        std::mem::replace(&mut self.tally, fresh)
    }

    /// A number that no other connection of the run has.
    pub(super) fn connection_number(&mut self) -> u64 {
        let number = self.dealing.next_connection;
        self.dealing.next_connection += self.dealing.threads;
        number
    }

    /// A request has been handed to a connection, or to one that is still to be made.
    #[inline]
    pub(super) fn began(&mut self, begun_ns: u64) {
        self.in_flight += 1;
        if self.pacer.counts(begun_ns) {
            self.counted_in_flight += 1;
            self.tally.counts.started += 1;
            if self.pacer.is_open() {
                self.tally.times.lag.saturating_record(self.now_ns - begun_ns);
            }
        }
    }

    /// A request is no longer in flight.
    #[inline]
    fn gone(&mut self, asked: &Asked) {
        self.in_flight -= 1;
        if asked.counted && asked.number == self.pacer.number {
            self.counted_in_flight -= 1;
        }
    }

    /// The user whose step it was goes on.
    #[inline]
    fn go_on(&mut self, asked: &Asked, has_failed: bool) {
        let Some(step) = &asked.step else { return };
        if asked.number != self.pacer.number {
            return;
        }
        let plan = &self.task.script.requests[asked.request as usize].step;
        let think_ns = plan.as_ref().map_or(0, |plan| plan.think.draw(&mut self.random));
        let finished = self.pacer.went_on(step.user, self.now_ns, (has_failed, think_ns));
        if let Some(finished) = finished
            && self.pacer.counts_response(asked.number, finished.counted, self.now_ns)
        {
            let tally = self.tally.kinds.users.get_or_insert_default();
            tally.finished(self.now_ns - finished.begun_ns, finished.has_failed);
        }
    }

    /// A response is complete, right or wrong, on the connection of a seat.
    #[inline]
    pub(super) fn answered(
        &mut self,
        seat: Option<u32>,
        asked: &Asked,
        verdict: Result<(), Failure>,
    ) {
        self.gone(asked);
        self.count(seat, asked, verdict);
        self.go_on(asked, verdict.is_err());
    }

    #[inline]
    fn count(&mut self, seat: Option<u32>, asked: &Asked, verdict: Result<(), Failure>) {
        if asked.number != self.pacer.number || !self.pacer.is_running() {
            return;
        }
        let latency_ns = self.now_ns - asked.begun_ns;
        self.interval.completed += 1;
        self.interval.latency.saturating_record(latency_ns);
        if let Err(failure) = verdict {
            self.interval.failed(failure);
        }
        if !self.pacer.counts_response(asked.number, asked.counted, self.now_ns) {
            return;
        }
        if self.task.recorded.is_some() {
            self.record(asked, verdict.err());
        }
        let tally = &mut self.tally;
        tally.times.latency.saturating_record(latency_ns);
        match &asked.step {
            // The step goes on.
            Some(step) if step.redirect == Redirect::Followed => {}
            Some(step) => {
                let latency_ns = self.now_ns - step.began_ns;
                tally.by_request.answered(asked.request, latency_ns, verdict.is_ok());
            }
            None => tally.by_request.answered(asked.request, latency_ns, verdict.is_ok()),
        }
        tally.counts.completed += 1;
        tally.completed_on(seat);
        tally.counts.compared += u64::from(asked.seen.sampled);
        tally.status(asked.status);
        tally.traffic.payload_received_bytes += asked.seen.bytes;
        tally.traffic.payload_sent_bytes += asked.content_bytes - asked.unsent_bytes;
        if let Some(stream) = &asked.stream {
            tally.kinds.events.ended(stream, verdict.is_ok());
        }
        match verdict {
            Ok(()) => tally.counts.succeeded += 1,
            Err(failure) => tally.failure(failure),
        }
    }

    /// Keeps what a request came to until the next look, if it is among those that are recorded.
    #[inline(never)]
    fn record(&mut self, asked: &Asked, failure: Option<Failure>) {
        let Some(recorded) = self.task.recorded else { return };
        if self.random.u64(..) >> 32 >= recorded {
            return;
        }
        self.records.push(Record {
            at_ns: self.now_ns.saturating_sub(self.pacer.start_ns),
            latency_ns: self.now_ns.saturating_sub(asked.begun_ns),
            request: asked.request,
            status: asked.status,
            bytes: asked.seen.bytes,
            failure,
        });
    }

    /// A request was never answered.
    #[cold]
    pub(super) fn failed(&mut self, asked: &Asked, failure: Failure) {
        self.gone(asked);
        if asked.number == self.pacer.number && self.pacer.is_running() {
            self.interval.failed(failure);
        }
        if self.pacer.counts_response(asked.number, asked.counted, self.now_ns) {
            self.record(asked, Some(failure));
            self.tally.failure(failure);
            self.tally.by_request.failed(asked.request);
        }
        self.go_on(asked, true);
    }

    /// A connection could not be made: to which server, and why in words. `request`: the one that waited for it.
    #[cold]
    pub(super) fn connect_failed(
        &mut self,
        failure: Failure,
        trouble: (usize, String),
        request: Option<u64>,
    ) {
        self.trouble = Some(trouble);
        let Some(begun_ns) = request else { return self.idle_failed(failure) };
        let number = self.pacer.number;
        let counted = self.pacer.counts(begun_ns);
        self.failed(&Asked { begun_ns, number, counted, ..Asked::default() }, failure);
    }

    /// A connection failed that had no request.
    #[cold]
    pub(super) fn idle_failed(&mut self, failure: Failure) {
        let counted = self.pacer.counts(self.now_ns);
        if self.pacer.counts_response(self.pacer.number, counted, self.now_ns) {
            self.interval.failed(failure);
            self.tally.failure(failure);
        }
    }
}

/// The ends of streams that servers reset.
const RESETS: [&str; 4] =
    [AbortReason::REFUSED, "server-reset", "not-needed", AbortReason::CANCELLED];

/// The kind of a stream's end that was not its response's.
pub(super) fn failure_of_abort(reason: &AbortReason) -> Failure {
    let was_reset = RESETS.contains(&reason.name);
    match reason.blame {
        _ if reason.untouched && !was_reset => Failure::Goaway,
        Blame::Circumstance => Failure::Timeout,
        Blame::Peer if !was_reset => Failure::Protocol,
        Blame::Peer | Blame::Caller => Failure::Reset,
    }
}

/// The kind of failure that the end of a connection is, for requests that waited on it or for it.
pub(super) fn failure_of_ending(ending: &Ending, is_tls: bool) -> Failure {
    match ending.step {
        // Over QUIC, there is one handshake.
        Step::Connecting if ending.tls.is_some() => return Failure::Tls,
        Step::Connecting => return Failure::Connect,
        Step::Handshaking if is_tls => return Failure::Tls,
        Step::Handshaking | Step::Ready => {}
    }
    match (ending.reason.name, ending.reason.blame) {
        ("tls-record", _) => Failure::Tls,
        ("socket" | "eof" | "truncated", _) => Failure::Reset,
        (name, _) if name.ends_with("timeout") || name.ends_with("stall") => Failure::Timeout,
        (_, Some(Blame::Peer)) => Failure::Protocol,
        (_, Some(Blame::Circumstance | Blame::Caller) | None) => Failure::Reset,
    }
}

/// Returns what went wrong with a connection that was never ready, in words.
pub(super) fn trouble(ending: &Ending, is_tls: bool) -> String {
    if let Some(what) = &ending.tls {
        return format!("the TLS handshake failed: {what}");
    }
    match (ending.step, ending.socket) {
        (Step::Handshaking, Some(kind)) if is_tls => {
            format!("the TLS handshake failed: {kind}")
        }
        (_, Some(kind)) => kind.to_string(),
        (_, None) => ending.reason.what.to_owned(),
    }
}
