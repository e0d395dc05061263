//! Notes of a worker about its requests and connections, for metrics, access log and events.
//!
//! Everything that is not wanted costs one branch.

mod reasons;
mod reports;

use std::hash::RandomState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{Connection, Http2Stats};
use bolide_eventloop::{Agenda, CloseCause, Measured, Stats};
use bolide_semantics::{AbortReason, CloseReason, Head};
use http::Version;

use crate::ends::Ends;
use crate::exchange::{Record, State};
use crate::forwarded::Client;
use crate::ingress::{Ingress, REQUEST_ID};
use crate::router::{RouteId, Router};
use crate::watchdog::{Beat, Beats};
use bolide_observability::Profile;
use bolide_observability::{
    AccessLog, Asked, Ended, Entry, LinePrefix, LogBuffer, Outcome, RoutePiece, Sample, Stages, cut,
};
use bolide_observability::{Metrics, Place, RouteCounts, Shard};
use reasons::Class;
use reports::{Peer, Reports};

/// How long an open connection's counters may be unseen.
const HARVEST_INTERVAL: Duration = Duration::from_secs(1);

/// Facts that are to be noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed {
    pub(crate) metrics: Option<Metrics>,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) profile: Option<Profile>,
    pub(crate) server_timing: bool,
    /// A watchdog looks whether the workers are stuck.
    pub(crate) beats: Option<Beats>,
    /// From when on a turn is counted as a long one.
    pub(crate) long_turn: Duration,
}

/// One worker's notes.
#[derive(Debug)]
pub(crate) struct Observer {
    is_on: bool,
    beat: Option<Arc<Beat>>,
    counting: Option<Counting>,
    logging: Option<Logging>,
    reports: Reports,
    /// The number of the next route.
    next_route: u32,
    /// When the turn of the loop began.
    now: Instant,
    /// Passes of connections since the clock was looked at.
    passes: u32,
    accept_pauses: u64,
    /// Information that is taken from peers, if any.
    ingress: Option<Arc<Ingress>>,
}

/// The worker's side of the metrics.
#[derive(Debug)]
struct Counting {
    shard: Arc<Shard>,
    /// By the numbers of the routes, those of routers that were replaced among them.
    routes: Vec<Arc<RouteCounts>>,
    long_turn: Duration,
    /// The requests that were answered since the clock was looked at last.
    answered: Vec<Answered>,
}

/// Requests of a route that were answered in a row and began at the same time.
#[derive(Debug)]
struct Answered {
    route: RouteId,
    count: u32,
    began: Instant,
}

impl Counting {
    /// A request is over.
    #[inline]
    fn ended(&mut self, route: RouteId, status: u16, began: Instant) {
        let class = usize::from(status / 100).min(5);
        self.routes[route.index()].statuses[class].add(1);
        match self.answered.last_mut() {
            Some(last) if last.route == route && last.began == began => last.count += 1,
            _ => self.answered.push(Answered { route, count: 1, began }),
        }
    }

    /// Counts how long the requests that were answered took: until now.
    #[inline]
    fn settle(&mut self, now: Instant) {
        for Answered { route, count, began } in self.answered.drain(..) {
            let durations = &self.routes[route.index()].durations;
            durations.record(now.saturating_duration_since(began), count.into());
        }
    }
}

/// The worker's side of the access log.
#[derive(Debug)]
struct Logging {
    buffer: LogBuffer,
    sample: Sample,
    /// By what lines are chosen: a key, and how many there were.
    chance: (RandomState, u64),
    /// Part of a line about each route.
    routes: Vec<RoutePiece>,
    #[allow(clippy::vec_box, reason = "an entry moves to an exchange and back without a copy")]
    spare: Vec<Box<Entry>>,
}

impl Logging {
    /// Writes a line that was not there before.
    #[inline(never)]
    fn line(
        &mut self,
        subject: &mut Subject,
        connection: &Connection,
        ends: &Ends,
        (record, head, now): (&mut Record, Option<&Head>, Instant),
        (route, outcome): (RouteId, &Outcome),
        (ingress, user): (Option<&Ingress>, &str),
    ) {
        let entry = record.entry.take();
        let stages = entry.as_ref().map(|entry| {
            // A head that was given in the turn in which its request came has no time of its own.
            let answered = record.answered.unwrap_or(outcome.began);
            let answered = (outcome.status != 0).then_some(answered);
            Stages::new(outcome.began, answered, now, &entry.times)
        });
        let mut asked = match (&entry, head) {
            (Some(entry), _) => entry.asked(),
            (None, Some(head)) => asked(head, ends, ingress),
            (None, None) => Asked::unread(connection.version().unwrap_or(Version::HTTP_11)),
        };
        asked.user = cut(user.as_bytes());
        let prefix = subject.prefix.get_or_insert_with(|| {
            let facts = connection.tls_facts();
            LinePrefix::new(&self.buffer.format, &Peer(ends.peer()).to_string(), facts.as_ref())
        });
        let route = &self.routes[route.index()];
        let stages = stages.as_ref();
        self.buffer.line(prefix, &Ended { asked: &asked, route, outcome, stages });
        self.keep_entry(entry);
    }

    fn keep_entry(&mut self, entry: Option<Box<Entry>>) {
        if let Some(entry) = entry
            && self.spare.len() < SPARE_ENTRIES
        {
            self.spare.push(entry);
        }
    }
}

/// So many passes of connections, at most, are served by one look at the clock.
const PASSES_COUNT: u32 = 16;

/// How many entries are kept for use again.
const SPARE_ENTRIES: usize = 256;

/// Notes about one connection.
#[derive(Debug)]
pub(crate) struct Subject {
    place: Place,
    is_handshaking: bool,
    prefix: Option<LinePrefix>,
    seen: Http2Stats,
    /// When its counters have to be seen again.
    harvest_due: Instant,
}

impl Observer {
    pub(crate) fn new(observed: &Observed, router: &mut Router, now: Instant) -> Self {
        let counting = observed.metrics.as_ref().map(|metrics| Counting {
            shard: metrics.add_shard(),
            routes: Vec::new(),
            long_turn: observed.long_turn,
            answered: Vec::new(),
        });
        let logging = observed.access_log.as_ref().map(|log| Logging {
            buffer: log.buffer(),
            sample: log.sample(),
            chance: (RandomState::new(), 0),
            routes: Vec::new(),
            spare: Vec::new(),
        });
        let mut observer = Self {
            is_on: counting.is_some() || logging.is_some(),
            beat: observed.beats.as_ref().map(Beats::add),
            counting,
            logging,
            reports: Reports::new(now),
            next_route: 0,
            now,
            passes: 0,
            accept_pauses: 0,
            ingress: None,
        };
        observer.name_routes(RouteId::OTHERS.into_iter());
        observer.set_routes(router);
        observer
    }

    /// Requests find these routes from here on. Counters of names that stay go on; exchanges that are under
    /// way keep their numbers.
    pub(crate) fn set_routes(&mut self, router: &mut Router) {
        let names = router.names();
        router.number(self.next_route);
        self.name_routes(names.iter().map(String::as_str));
    }

    fn name_routes<'n>(&mut self, names: impl ExactSizeIterator<Item = &'n str> + Clone) {
        self.next_route += names.len() as u32;
        if let Some(counting) = &mut self.counting {
            counting.routes.extend(counting.shard.routes(names.clone()));
        }
        if let Some(logging) = &mut self.logging {
            logging.routes.extend(names.map(RoutePiece::new));
        }
    }

    /// Lines name the clients that peers name who are trusted.
    pub(crate) fn set_ingress(&mut self, ingress: Option<Arc<Ingress>>) {
        self.ingress = ingress;
    }

    #[inline]
    pub(crate) fn turn_started(&mut self, now: Instant) {
        self.now = now;
        if let Some(beat) = &self.beat {
            beat.begins();
        }
    }

    /// The time of day was looked at.
    pub(crate) fn set_time(&mut self, wall: SystemTime, now: Instant) {
        if let Some(logging) = &mut self.logging {
            let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            logging.buffer.set_time(since, now);
        }
    }

    /// The lines that wait go to the log now.
    pub(crate) fn hand_over_log(&mut self) {
        if let Some(logging) = &mut self.logging {
            logging.buffer.hand_over_rest();
        }
    }

    #[inline]
    pub(crate) fn turn_ended(&mut self, stats: &Stats, measured: bool, agenda: &mut Agenda) {
        if let Some(beat) = &self.beat {
            beat.ends();
        }
        if !self.is_on {
            return;
        }
        let now = self.settle();
        if let Some(due) =
            self.logging.as_mut().and_then(|logging| logging.buffer.turn_ended(self.now, measured))
        {
            agenda.alarm(due);
        }
        let Some(counting) = &self.counting else { return };
        let lasted = now.saturating_duration_since(self.now);
        counting.shard.turns.record(lasted, 1);
        counting.shard.turn_ends(stats);
        if lasted > counting.long_turn {
            counting.shard.long_turns.add(1);
        }
        if stats.work.accept_pauses > self.accept_pauses {
            let pauses = stats.work.accept_pauses - self.accept_pauses;
            self.accept_pauses = stats.work.accept_pauses;
            if let Some(suppressed) = self.reports.may(self.now) {
                tracing::warn!(
                    target: "bolide::accept",
                    pauses,
                    suppressed,
                    "accepting was paused: no file descriptors, or no room for connections"
                );
            }
        }
    }

    /// Notes what the turn took that has ended.
    pub(crate) fn turn_measured(&mut self, measured: &Measured) {
        if let Some(logging) = &mut self.logging {
            logging.buffer.split(measured, self.now);
        }
    }

    /// A connection begins.
    pub(crate) fn opened(&mut self, is_tls: bool) -> Option<Box<Subject>> {
        if !self.is_on {
            return None;
        }
        let place = Place::new(None, false, is_tls);
        if let Some(counting) = &self.counting {
            counting.shard.places[place.index()].add(1);
        }
        Some(Box::new(Subject {
            place,
            is_handshaking: is_tls,
            prefix: None,
            seen: Http2Stats::default(),
            harvest_due: self.now + HARVEST_INTERVAL,
        }))
    }

    /// Records of a connection were opened: its handshake may be complete.
    pub(crate) fn received(&mut self, subject: &mut Subject, connection: &Connection) {
        if !subject.is_handshaking {
            return;
        }
        let Some(facts) = connection.tls_facts() else { return };
        subject.is_handshaking = false;
        if let Some(Counting { shard, .. }) = &self.counting {
            let full = &shard.handshakes_full;
            let counter = if facts.resumed { &shard.handshakes_resumed } else { full };
            counter.add(1);
        }
    }

    /// A pass of a connection ends: what it has answered goes to the socket.
    #[inline]
    pub(crate) fn pass_ended(
        &mut self,
        subject: &mut Subject,
        connection: &mut Connection,
        is_idle: bool,
    ) {
        self.passes += 1;
        if self.passes == PASSES_COUNT {
            self.settle();
        }
        let Some(counting) = &mut self.counting else { return };
        let place = Place::new(connection.version(), is_idle, connection.is_secure());
        if place != subject.place {
            counting.shard.places[subject.place.index()].take_one();
            counting.shard.places[place.index()].add(1);
            subject.place = place;
        }
        if self.now >= subject.harvest_due {
            self.harvest(subject, connection);
        }
    }

    /// Ends what has ended since the last look at the clock: one look serves it all. Where none needs to
    /// know exactly, now is when the turn began.
    #[inline]
    fn settle(&mut self) -> Instant {
        self.passes = 0;
        let waiting = self.logging.as_mut().filter(|logging| logging.buffer.has_waiting());
        let is_timed = waiting.as_ref().is_some_and(|waiting| waiting.buffer.format.is_timed());
        let now = if is_timed || self.counting.is_some() { Instant::now() } else { self.now };
        if let Some(counting) = &mut self.counting {
            counting.settle(now);
        }
        if let Some(logging) = waiting {
            logging.buffer.settle(now);
        }
        now
    }

    /// Takes over what a connection has counted itself.
    fn harvest(&self, subject: &mut Subject, connection: &mut Connection) {
        subject.harvest_due = self.now + HARVEST_INTERVAL;
        if let Some(counting) = &self.counting
            && let Some(stats) = connection.http2_stats()
        {
            counting.shard.http2.add(&stats, &subject.seen);
            subject.seen = stats;
            if let Some(resets) = connection.take_resets() {
                counting.shard.http2.add_resets(&resets);
            }
        }
    }

    /// A connection has come to its end by the protocol.
    pub(crate) fn connection_ended(
        &mut self,
        subject: Option<&Subject>,
        connection: &Connection,
        peer: Option<SocketAddr>,
        reason: &CloseReason,
    ) {
        let class = Class::of(reason.name);
        if let Some(Counting { shard, .. }) = &self.counting {
            shard.closes.count(reason.name);
            match class {
                Class::Orderly => {}
                Class::Limit => shard.limits.count(reason.name),
                Class::Abuse => shard.abuse.count(reason.name),
            }
            if subject.is_some_and(|subject| subject.is_handshaking) {
                let kind = connection.tls_failure().map_or(reason.name, |failure| failure.kind);
                shard.handshakes_failed.count(kind);
            }
        }
        if let Some(failure) = connection.tls_failure() {
            self.reports.tls_failed(self.now, &Peer(peer), failure);
        } else if class != Class::Orderly
            && let Some(suppressed) = self.reports.may(self.now)
        {
            let (limit, what) = (reason.name, reason.what);
            tracing::warn!(
                target: "bolide::limits",
                peer = Peer(peer).to_string(), limit, what, suppressed, "a limit ended a connection"
            );
        }
    }

    /// A connection is gone. `cause` says why when the protocol has not ended it.
    pub(crate) fn closed(
        &mut self,
        mut subject: Box<Subject>,
        connection: &mut Connection,
        cause: Option<CloseCause>,
    ) {
        self.harvest(&mut subject, connection);
        // Exchanges that ended with the connection, or before in this turn.
        self.settle();
        let Some(counting) = &mut self.counting else { return };
        let shard = &counting.shard;
        shard.places[subject.place.index()].take_one();
        let Some(cause) = cause else { return };
        let reason = match cause {
            CloseCause::Finished => "finished",
            CloseCause::Failed(_) => "connection-failed",
            CloseCause::Shed => "shed",
            CloseCause::Drained => "drain-timeout",
            CloseCause::Panicked => "panic",
            CloseCause::Stalled => "stalled",
            CloseCause::Memory => "memory",
            CloseCause::Broken => "file-changed",
        };
        shard.closes.count(reason);
        if subject.is_handshaking {
            shard.handshakes_failed.count(reason);
        }
    }

    /// A request is not answered at once: keeps what its line needs, while its head stands.
    #[inline]
    pub(crate) fn keep(&mut self, head: &Head, ends: &Ends) -> Option<Box<Entry>> {
        let logging = self.logging.as_mut()?;
        let mut entry = logging.spare.pop().unwrap_or_else(|| Box::new(Entry::new()));
        entry.fill(&asked(head, ends, self.ingress.as_deref()));
        Some(entry)
    }

    /// A request that was not answered at once is under way.
    #[inline]
    pub(crate) fn under_way(&self) {
        if let Some(counting) = &self.counting {
            counting.shard.in_flight.add(1);
        }
    }

    /// It is no longer.
    #[inline]
    pub(crate) fn no_longer_under_way(&self) {
        if let Some(counting) = &self.counting {
            counting.shard.in_flight.take_one();
        }
    }

    /// An exchange is over. `head` is its request's, when that stands.
    #[inline]
    pub(crate) fn exchange_ended(
        &mut self,
        subject: &mut Option<Box<Subject>>,
        connection: &Connection,
        ends: &Ends,
        state: &mut State,
        head: Option<&Head>,
    ) {
        let record = &mut state.record;
        let Some(subject) = subject else { return };
        let Some(route) = record.route else { return };
        let began = record.began.unwrap_or(self.now);
        if let Some(counting) = &mut self.counting {
            counting.ended(route, record.status, began);
            if let Some(what) = record.aborted {
                counting.shard.aborts.count(what);
            }
        }
        let Some(logging) = &mut self.logging else { return };
        if !logging.sample.takes(record.status, &logging.chance.0, &mut logging.chance.1) {
            return logging.keep_entry(record.entry.take());
        }
        let outcome = Outcome {
            status: record.status,
            received_bytes: record.received_bytes,
            sent_bytes: record.sent_bytes,
            began,
            abort: record.aborted,
        };
        let policy = state.policy.get();
        let user = policy.as_ref().and_then(|policy| policy.user()).unwrap_or_default();
        let (request, said) = ((record, head, self.now), (self.ingress.as_deref(), user));
        logging.line(subject, connection, ends, request, (route, &outcome), said);
    }

    /// A connection is not taken.
    #[cold]
    pub(crate) fn turned_away(&mut self, peer: Option<SocketAddr>, reason: &'static str) {
        if let Some(counting) = &self.counting {
            counting.shard.closes.count(reason);
        }
        if let Some(suppressed) = self.reports.may(self.now) {
            tracing::warn!(
                target: "bolide::limits",
                peer = Peer(peer).to_string(), limit = reason, suppressed, "a connection was turned away"
            );
        }
    }

    /// A limit was hit by one request; `what` the client did, where the limit's name does not tell.
    #[cold]
    pub(crate) fn limit(
        &mut self,
        peer: Option<SocketAddr>,
        limit: &'static str,
        what: Option<&'static str>,
    ) {
        if let Some(counting) = &self.counting {
            counting.shard.limits.count(limit);
        }
        if let Some(suppressed) = self.reports.may(self.now) {
            tracing::warn!(
                target: "bolide::limits",
                peer = Peer(peer).to_string(), limit, what, suppressed, "a limit ended a request"
            );
        }
    }

    /// The connection has given a stream up, and goes on.
    #[cold]
    pub(crate) fn stream_ended(&mut self, peer: Option<SocketAddr>, reason: &AbortReason) {
        // What ends a connection ends its exchanges, and is reported once.
        if reason.name == "stream-timeout" {
            self.limit(peer, reason.name, Some(reason.what));
        }
    }

    /// A request was refused for what its head says.
    #[cold]
    pub(crate) fn refused(&mut self, peer: Option<SocketAddr>, status: u16) {
        match status {
            414 => self.limit(peer, "request-line-bytes", None),
            431 => self.limit(peer, "head-bytes", None),
            _ => {}
        }
    }

    /// A handler panicked.
    #[cold]
    pub(crate) fn panicked(&mut self, route: Option<RouteId>, router: Option<&Router>) {
        if let Some(counting) = &self.counting {
            counting.shard.handler_panics.add(1);
        }
        let route = route.and_then(|route| router?.name(route)).unwrap_or_default();
        if let Some(suppressed) = self.reports.may(self.now) {
            tracing::error!(
                target: "bolide::handler",
                route, suppressed, "a handler panicked: its client gets a 500"
            );
        }
    }
}

/// Returns what a line says of a request whose head stands.
#[inline]
fn asked<'a>(head: &'a Head, ends: &Ends, ingress: Option<&Ingress>) -> Asked<'a> {
    let mut asked = Asked::of_head(head);
    if ingress.is_some() {
        let client = Client::of(head, ends, ingress);
        asked.client = client.address.filter(|_| client.is_forwarded);
        asked.request_id = cut(head.get_uncommon(REQUEST_ID).unwrap_or_default());
    }
    asked
}
