//! A thread's load as a service of the event loop.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use bolide_buffers::{Datagram, DatagramSink, Flush, SendQueue};
use bolide_client::{Owner, Session, Workbench};
use bolide_eventloop::{
    Accepted, After, Agenda, Arriving, CloseCause, DatagramFlush, Outbound, Path, Routed, Service,
    Stats, Turn,
};

use super::asker::{Asker, Conn};
use super::looked::Looked;
use super::messages::{Command, Facts, Look, News, ThreadNews};
use super::recipe::Recipe;
use super::share::stream;
use super::tally::Tally;
use super::thread_state::{Interval, ThreadState};
use super::websocket::{Messenger, Socket};
use super::websocket_tally::WebSocketTally;
use crate::report::Failure;

/// How often there is a look at what happens, in nanoseconds (100 ms).
pub(super) const LOOK_NS: u64 = 100_000_000;

/// How long a phase waits for requests of the one before, in nanoseconds (1 s).
const QUIET_NS: u64 = 1_000_000_000;

/// Side of the loop around the service.
#[derive(Debug, Default)]
pub(super) struct LoopHandle {
    /// The worker's counters up to its last turn.
    pub(super) stats: Cell<Stats>,
    /// The service wants to end.
    pub(super) finished: Cell<bool>,
}

/// A connection of the load.
#[derive(Debug)]
pub(super) struct LoadSession {
    session: Session,
    conn: Conn,
    /// Its requests are messages of WebSocket.
    socket: Option<Box<Socket>>,
}

/// Stage of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// The phase begins soon.
    Waiting,
    Running,
    /// The last look at every connection is under way.
    Counting,
}

/// One thread's load.
#[derive(Debug)]
pub(super) struct LoadService {
    number: usize,
    state: ThreadState,
    bench: Workbench,
    facts: Option<Facts>,
    commands: Receiver<Command>,
    news: Sender<ThreadNews>,
    handle: Rc<LoopHandle>,
    stage: Stage,
    /// Every connection has a last look at what TCP counted.
    counting: bool,
    /// A phase's measurement has not begun yet.
    awaits_measurement: bool,
    /// How many measurements have begun.
    measurement: u32,
    /// A thread waits for the connections to be there.
    connecting: bool,
    /// Until when they wait for what is in flight.
    quiet_ns: u64,
    /// The index of the next look.
    look: u64,
    /// The worker's counters when the measurement began.
    stats_before: Stats,
    /// When the presence of requests was summed up last.
    summed_ns: u64,
}

impl LoadService {
    pub(super) fn new(recipe: Recipe, handle: Rc<LoopHandle>) -> Self {
        let Recipe { number, threads, share, task, seats, limits, seed, news, commands, .. } =
            recipe;
        let among_all = (share.among_all(number), threads * share.count());
        let random = stream(seed, number as u64);
        Self {
            number,
            state: ThreadState::new(task, seats, random, among_all),
            bench: Workbench::new(limits),
            facts: None,
            commands,
            news,
            handle,
            stage: Stage::Idle,
            counting: false,
            awaits_measurement: false,
            measurement: 0,
            connecting: false,
            quiet_ns: 0,
            look: 1,
            stats_before: Stats::default(),
            summed_ns: 0,
        }
    }

    fn tell(&self, news: News) {
        // Who asked may have gone; then the thread is told to end, too.
        let _ = self.news.send((self.number, news));
    }

    fn obey(&mut self, agenda: &mut Agenda) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Connect { at_most } => {
                    let count = at_most.min(self.state.seats.count());
                    self.state.seats.want(count);
                    self.state.trouble = None;
                    self.connecting = true;
                    self.quiet_ns = self.state.now_ns + QUIET_NS;
                }
                Command::Begin(part) => {
                    let random = stream(self.state.random.u64(..), self.number as u64);
                    self.state.pacer.begin(&part, random);
                    self.state.counted_in_flight = 0;
                    self.state.interval = Interval::new();
                    self.stage = Stage::Waiting;
                    self.awaits_measurement = true;
                    self.look = 1;
                    // Everybody says what it has room for, or leaves its seat.
                    self.call_all(agenda);
                }
                Command::Stop if self.state.pacer.is_running() => {
                    let now_ns = self.state.now_ns;
                    self.state.pacer.end_ns = self.state.pacer.end_ns.min(now_ns);
                }
                Command::Stop => {}
                Command::Finish => {
                    self.handle.finished.set(true);
                    self.call_all(agenda);
                }
            }
        }
    }

    fn call_all(&self, agenda: &mut Agenda) {
        for token in self.state.seats.tokens() {
            agenda.call(token);
        }
    }

    /// Says when the connections are there, or why they are not.
    fn report_connections(&mut self) {
        if !self.connecting {
            return;
        }
        if let Some((server, what)) = self.state.trouble.take() {
            self.tell(News::Trouble(server, what));
        }
        // What is left of the phase before would still load the server.
        let is_quiet = self.state.in_flight == 0 || self.state.now_ns >= self.quiet_ns;
        if self.state.seats.is_complete() && is_quiet {
            self.connecting = false;
            self.tell(News::Connected(self.facts.clone()));
        }
    }

    /// Follows the clock through a phase.
    fn follow(&mut self, agenda: &mut Agenda) {
        let now_ns = self.state.now_ns;
        match self.stage {
            Stage::Idle => return,
            Stage::Counting => return self.finish_phase(),
            Stage::Waiting if now_ns < self.state.pacer.start_ns => {
                return agenda.alarm(self.state.task.instant(self.state.pacer.start_ns));
            }
            Stage::Waiting => {
                self.stage = Stage::Running;
                self.call_all(agenda);
            }
            Stage::Running => {}
        }
        self.reach_measurement();
        self.sum_presence(now_ns);
        let Tally { times, presence, .. } = &mut self.state.tally;
        let next = self.state.pacer.follow(now_ns, |late_ns| {
            times.pacing.saturating_record(late_ns);
            *presence += u128::from(late_ns);
        });
        self.state.deal(agenda);
        let begun_all = self.state.pacer.has_begun_all() && self.state.counted_in_flight == 0;
        if now_ns >= self.state.pacer.end_ns || begun_all {
            return self.end_phase(agenda);
        }
        self.look_if_due();
        let pacer = &self.state.pacer;
        let look_ns = pacer.start_ns + self.look * LOOK_NS;
        let mut alarm_ns = pacer.end_ns.min(look_ns).min(next.unwrap_or(u64::MAX));
        if pacer.measure_ns > now_ns {
            alarm_ns = alarm_ns.min(pacer.measure_ns);
        }
        agenda.alarm(self.state.task.instant(alarm_ns));
    }

    /// Segments that were sent again and count in this phase so far.
    #[cfg(test)]
    pub(super) fn retransmits(&self) -> u64 {
        self.state.tally.traffic.retransmits
    }

    /// Notes what time it is. A connection may see before the loop's next turn that a measurement's time has come, and what it
    /// sends from then on counts.
    #[inline]
    fn see(&mut self, now: Instant) {
        self.state.now_ns = self.state.task.nanoseconds(now);
        self.reach_measurement();
    }

    /// Begins the measurement when its time has come.
    #[inline]
    fn reach_measurement(&mut self) {
        if self.awaits_measurement && self.state.now_ns >= self.state.pacer.measure_ns {
            self.begin_measurement();
        }
    }

    pub(super) fn begin_measurement(&mut self) {
        self.awaits_measurement = false;
        // Connections are made before and during the warm-up: they are what the phase needs.
        let before = self.state.take_tally();
        let tally = &mut self.state.tally;
        tally.counts.connections = before.counts.connections;
        tally.resumed_count = before.resumed_count;
        tally.early_count = before.early_count;
        tally.times.connect = before.times.connect;
        tally.times.handshake = before.times.handshake;
        tally.kinds.websocket = before.kinds.websocket.map(WebSocketTally::made);
        self.measurement = self.measurement.wrapping_add(1);
        self.stats_before = self.handle.stats.get();
        self.summed_ns = self.state.now_ns;
    }

    /// Adds up presence: what was there at the end of the turn before was there until now.
    fn sum_presence(&mut self, now_ns: u64) {
        let now_ns = now_ns.min(self.state.pacer.end_ns);
        let present = self.state.in_flight + self.state.pacer.waiting();
        let passed_ns = now_ns.saturating_sub(self.summed_ns);
        self.state.tally.presence += u128::from(present) * u128::from(passed_ns);
        self.summed_ns = now_ns;
    }

    fn look_if_due(&mut self) {
        let now_ns = self.state.now_ns;
        let start_ns = self.state.pacer.start_ns;
        if now_ns < start_ns + self.look * LOOK_NS {
            return;
        }
        let index = (now_ns - start_ns) / LOOK_NS;
        self.look = index + 1;
        self.send_look(index);
    }

    fn send_look(&mut self, index: u64) {
        let interval = std::mem::replace(&mut self.state.interval, Interval::new());
        let records = std::mem::take(&mut self.state.records);
        self.tell(News::Look(Box::new(Look {
            index,
            at_ns: self.state.now_ns.saturating_sub(self.state.pacer.start_ns),
            completed: interval.completed,
            failures: interval.failures,
            latency: interval.latency,
            in_flight: self.state.in_flight,
            generator_cpu_ns: 0,
            server_cpu_ns: None,
            records,
            down_since_ns: self.state.seats.down_since_ns(),
        })));
    }

    /// Nothing begins any more. TCP's counters are read before the report is made.
    fn end_phase(&mut self, agenda: &mut Agenda) {
        let now_ns = self.state.now_ns;
        self.state.tally.ended_ns = now_ns.min(self.state.pacer.end_ns);
        self.state.tally.counts.due = self.state.pacer.due_count;
        self.state.pacer.end();
        self.stage = Stage::Counting;
        self.awaits_measurement = false;
        self.counting = true;
        self.call_all(agenda);
        agenda.alarm(self.state.task.instant(now_ns));
    }

    fn finish_phase(&mut self) {
        self.stage = Stage::Idle;
        let (now, before) = (self.handle.stats.get(), self.stats_before);
        let mut tally = self.state.take_tally();
        tally.traffic.wire_received_bytes = now.bytes_received - before.bytes_received;
        tally.traffic.wire_sent_bytes = now.bytes_sent - before.bytes_sent;
        tally.stalls.socket_full = now.work.write_blocked - before.work.write_blocked;
        self.send_look(self.look);
        self.tell(News::Ended(Box::new(tally)));
    }

    /// Gives a connection its turn, and does what follows from it for the others.
    #[inline]
    fn with(
        &mut self,
        session: &mut LoadSession,
        turn: &mut Turn<'_, ()>,
        shuts_down: bool,
    ) -> After {
        let LoadSession { session, conn, socket } = session;
        if self.handle.finished.get() {
            return session.end();
        }
        self.see(Instant::now());
        if self.counting || !conn.looked.is_of(self.measurement) {
            let when = (self.measurement, self.counting);
            conn.looked.look(turn.path, session.quic_stats(), when, &mut self.state.tally);
        }
        let mut asker = Asker { conn, state: &mut self.state, facts: &mut self.facts };
        let after = match socket {
            None => drive(session, turn, &mut self.bench, &mut asker, shuts_down),
            Some(socket) => {
                let mut messenger = Messenger { asker, socket };
                let after = drive(session, turn, &mut self.bench, &mut messenger, shuts_down);
                After { more: after.more || socket.waits_for_flush, ..after }
            }
        };
        self.state.deal_users(turn.agenda);
        self.state.dial(turn.agenda);
        after
    }
}

/// Gives a session its turn.
#[inline]
fn drive(
    session: &mut Session,
    turn: &mut Turn<'_, ()>,
    bench: &mut Workbench,
    owner: &mut impl Owner,
    shuts_down: bool,
) -> After {
    if shuts_down {
        session.shut_down(turn, bench, owner)
    } else {
        session.turn(turn, bench, owner)
    }
}

impl Service for LoadService {
    type Session = LoadSession;
    type Message = ();

    fn turn_started(&mut self, now: Instant, agenda: &mut Agenda) {
        self.see(now);
        self.counting = false;
        self.obey(agenda);
        self.report_connections();
        self.follow(agenda);
        self.state.dial(agenda);
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(LoadSession, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(LoadSession, After)> {
        let seat = outbound.tag as u32;
        let server = self.state.seats.server(seat);
        let dial = &self.state.task.servers[server].dial;
        let begun = Session::begin(dial, outbound, &mut self.bench, now);
        let session = match begun {
            Ok(session) => session,
            // The server's name was checked before the threads began: it is the address.
            Err(error) => {
                let request = self.state.seats.failed(seat, self.state.now_ns);
                let trouble = (server, error.to_string());
                self.state.connect_failed(Failure::Connect, trouble, request);
                return None;
            }
        };
        let (dialed_ns, request) = self.state.seats.begun(seat, outbound.token);
        let after = session.first_wish();
        let mut conn =
            Conn::new((seat, server), dialed_ns, request, self.state.connection_number());
        conn.looked = Looked::since(self.measurement);
        let socket = self.state.task.websocket.is_some().then(Box::default);
        Some((LoadSession { session, conn, socket }, after))
    }

    fn connect_failed(&mut self, tag: u64, error: io::Error, agenda: &mut Agenda) {
        let request = self.state.seats.failed(tag as u32, self.state.now_ns);
        let trouble = (self.state.seats.server(tag as u32), error.kind().to_string());
        self.state.connect_failed(Failure::Connect, trouble, request);
        self.state.dial(agenda);
    }

    #[inline]
    fn turn(&mut self, session: &mut LoadSession, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, false)
    }

    fn shut_down(&mut self, session: &mut LoadSession, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, true)
    }

    #[inline]
    fn flush(
        &mut self,
        session: &mut LoadSession,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        session.session.flush(output, sink)
    }

    fn datagram(
        &mut self,
        _: Option<usize>,
        datagram: Datagram,
        _: Arriving,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        self.bench.datagram(datagram, now, sink)
    }

    fn flush_datagrams(
        &mut self,
        session: &mut LoadSession,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        self.bench.flush_datagrams(&mut session.session, sink)
    }

    fn closing(&mut self, session: &mut LoadSession, path: &dyn Path) {
        // What ends before a measurement begins is forgotten with the tally of that time.
        session.conn.looked.look(path, None, (self.measurement, true), &mut self.state.tally);
    }

    fn close(&mut self, session: LoadSession, cause: CloseCause, agenda: &mut Agenda) {
        let LoadSession { mut session, mut conn, socket } = session;
        if let Some(stats) = session.quic_stats() {
            conn.looked.look(&(), Some(stats), (self.measurement, true), &mut self.state.tally);
            self.bench.forget(&mut session, self.state.task.instant(self.state.now_ns));
        }
        let mut asker = Asker { conn: &mut conn, state: &mut self.state, facts: &mut self.facts };
        match socket {
            None => session.close(cause, &mut asker),
            Some(mut socket) => {
                session.close(cause, &mut Messenger { asker, socket: &mut socket });
            }
        }
        self.state.deal_users(agenda);
        self.state.dial(agenda);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::pacer::Part;
    use crate::engine::testing::service;
    use crate::plan::{Load, Phase, Until};

    #[test]
    fn what_a_connection_sends_before_the_next_turn_of_the_loop_counts() {
        let (mut service, commands) = service();
        let mut agenda = Agenda::default();
        let now = Instant::now();
        let start = now + Duration::from_millis(1);
        let start_ns = service.state.task.nanoseconds(start);
        let phase = Phase {
            name: String::new(),
            load: Load::Closed,
            warm_up: Duration::ZERO,
            until: Until { requests: Some(2), time: None },
        };
        let requests = Some(2);
        let part = Part { phase, start_ns, rate_share: 1.0, offset: 0.0, requests, users: 0 };
        commands.send(Command::Begin(Box::new(part))).unwrap();
        service.turn_started(now, &mut agenda);
        for after_ns in [0, 5] {
            // A connection's turn, later in the same turn of the loop.
            service.see(start + Duration::from_nanos(after_ns));
            let begun_ns = service.state.pacer.take(0, service.state.now_ns).unwrap();
            service.state.began(begun_ns);
        }
        service.turn_started(now + Duration::from_millis(2), &mut agenda);
        assert_eq!(service.state.tally.counts.started, 2);
        assert_eq!(service.state.pacer.due_count, 2);
    }
}
