//! A transfer as a service of the event loop.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use bolide_buffers::{Datagram, DatagramSink, Flush, SendQueue};
use bolide_client::{Session, Workbench};
use bolide_eventloop::{
    Accepted, After, Agenda, Arriving, CloseCause, DatagramFlush, Outbound, Routed, Service, Stats,
    Token, Turn,
};

use super::connection::{At, CarrierConnection};
use super::transfer_state::{Stage, TransferState};
use super::{Command, Look, News, Outcome, Task, Tcp};
use crate::clock::nanoseconds;
use crate::latency::Pulse;
use crate::plan::Direction;

/// How long the response to an upload may take that was ended because its time was over: what is buffered
/// on a slow path must still leave.
const LAST_RESPONSE: Duration = Duration::from_secs(10);

/// Probes that wait for a connection that takes them at most.
const DUE_MAX: usize = 100;

/// Side of the loop around the service.
#[derive(Debug, Default)]
pub(super) struct LoopHandle {
    /// The worker's counters up to its last turn.
    pub(super) stats: Cell<Stats>,
    /// The service wants to end.
    pub(super) finished: Cell<bool>,
}

/// A connection with its session.
#[derive(Debug)]
pub(super) struct LineSession {
    session: Session,
    line: CarrierConnection,
    token: Token,
    /// The last look at it has been taken.
    is_counted: bool,
}

/// The service.
#[derive(Debug)]
pub(super) struct CarrierService {
    state: TransferState,
    bench: Workbench,
    commands: Receiver<Command>,
    news: Sender<News>,
    handle: Rc<LoopHandle>,
    tokens: Vec<Token>,
    /// Connections that there are to be, and those that were asked for.
    wanted: usize,
    dialed: usize,
    /// Takes probes next, of the connections.
    next_probed: usize,
    next_look_ns: u64,
    is_stopped: bool,
    /// When something moved last, and what had been transferred then.
    moved: (u64, u64),
    stats_before: Stats,
}

impl CarrierService {
    pub(super) fn new(
        task: Arc<Task>,
        commands: Receiver<Command>,
        news: Sender<News>,
        handle: Rc<LoopHandle>,
    ) -> Self {
        let bench = Workbench::new(task.route.limits.clone());
        let wanted = task.transfer.connections;
        Self {
            state: TransferState::new(task),
            bench,
            commands,
            news,
            handle,
            tokens: Vec::new(),
            wanted,
            dialed: 0,
            next_probed: 0,
            next_look_ns: u64::MAX,
            is_stopped: false,
            moved: (0, 0),
            stats_before: Stats::default(),
        }
    }

    fn tell(&self, news: News) {
        // Who asked may have gone; then the thread is told to end, too.
        let _ = self.news.send(news);
    }

    fn obey(&mut self, agenda: &mut Agenda) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Begin if self.state.stage == Stage::Waiting => {
                    let now_ns = self.state.now_ns;
                    self.state.stage = Stage::Running;
                    self.state.progress.began_ns = now_ns;
                    self.moved = (now_ns, 0);
                    self.next_look_ns = now_ns + nanoseconds(self.state.task.look);
                    self.stats_before = self.handle.stats.get();
                    self.call_all(agenda);
                }
                Command::Begin => {}
                Command::Add => self.wanted += 1,
                Command::Probe(rate) => self.state.pulse = Pulse::new(rate, self.state.now_ns),
                Command::Stop => self.is_stopped = true,
                Command::Finish => self.handle.finished.set(true),
            }
        }
    }

    fn call_all(&self, agenda: &mut Agenda) {
        for token in &self.tokens {
            agenda.call(*token);
        }
    }

    fn dial(&mut self, agenda: &mut Agenda) {
        while self.dialed < self.wanted {
            agenda.connect(self.state.task.route.destination.clone(), self.state.now_ns);
            self.dialed += 1;
        }
    }

    /// Follows the clock and what has come through the transfer.
    fn follow(&mut self, agenda: &mut Agenda) {
        let is_given_up = self.state.error.is_some() || self.is_stopped;
        if is_given_up && !matches!(self.state.stage, Stage::Counting | Stage::Over) {
            return self.count(agenda);
        }
        match self.state.stage {
            Stage::Connecting if self.state.progress.open == self.wanted => {
                self.state.stage = Stage::Waiting;
                if let Some(facts) = self.state.facts.clone() {
                    self.tell(News::Ready(facts));
                }
            }
            Stage::Connecting | Stage::Waiting | Stage::Over => {}
            Stage::Running | Stage::Ending => self.run(agenda),
            Stage::Counting => self.finish(),
        }
    }

    /// Requests at a time, over all connections.
    fn requests(&self) -> usize {
        self.state.task.transfer.streams * self.wanted
    }

    fn run(&mut self, agenda: &mut Agenda) {
        let now_ns = self.state.now_ns;
        let end_ns = self.state.time_is_over_ns();
        if self.state.progress.done >= self.requests() {
            return self.count(agenda);
        }
        if let Some(end_ns) = end_ns {
            let is_upload = self.state.task.transfer.direction == Direction::Upload;
            if now_ns >= end_ns && !is_upload {
                let requests = self.requests();
                self.state.judge_time(requests);
                return self.count(agenda);
            }
            if now_ns >= end_ns && self.state.stage == Stage::Running {
                self.state.stage = Stage::Ending;
                self.call_all(agenda);
            }
            if now_ns >= end_ns + nanoseconds(LAST_RESPONSE) {
                let seconds = LAST_RESPONSE.as_secs();
                self.state.fail(&format!("no response within {seconds} s after the upload"));
                return self.count(agenda);
            }
        }
        self.watch(now_ns);
        self.probe(agenda);
        self.look_if_due();
        let mut alarm_ns = self.next_look_ns.min(self.state.pulse.next_ns());
        if let Some(end_ns) = end_ns.filter(|end_ns| *end_ns > now_ns) {
            alarm_ns = alarm_ns.min(end_ns);
        }
        agenda.alarm(self.state.task.clock.instant(alarm_ns));
    }

    /// Gives a transfer up in which nothing moves.
    fn watch(&mut self, now_ns: u64) {
        let (since_ns, bytes) = self.moved;
        if self.state.progress.bytes != bytes {
            self.moved = (now_ns, self.state.progress.bytes);
            return;
        }
        let patience = self.state.task.patience;
        if now_ns >= since_ns + nanoseconds(patience) && self.state.stage == Stage::Running {
            let seconds = patience.as_secs_f64();
            self.state.fail(&format!("nothing moved for {seconds:.0} s, after {bytes} bytes"));
        }
    }

    /// Gives probes that are due to the connections in turn.
    fn probe(&mut self, agenda: &mut Agenda) {
        while let Some(due_ns) = self.state.pulse.due(self.state.now_ns) {
            if self.state.due.len() < DUE_MAX {
                self.state.due.push(due_ns);
            } else {
                self.state.lost += 1;
            }
        }
        if !self.state.due.is_empty() && !self.tokens.is_empty() {
            let token = self.tokens[self.next_probed % self.tokens.len()];
            self.next_probed += 1;
            agenda.call(token);
        }
    }

    fn look_if_due(&mut self) {
        if self.state.now_ns >= self.next_look_ns {
            self.next_look_ns += nanoseconds(self.state.task.look);
            self.look();
        }
    }

    fn look(&mut self) {
        let samples = std::mem::take(&mut self.state.samples);
        let at_ns = self.state.now_ns.saturating_sub(self.state.progress.began_ns);
        self.tell(News::Look(Look { at_ns, bytes: self.state.progress.bytes, samples }));
    }

    /// The transfer is over: every connection has a last turn in which it is looked at.
    fn count(&mut self, agenda: &mut Agenda) {
        if self.state.progress.done < self.requests() {
            self.state.progress.ended_ns = self.state.now_ns;
        }
        self.state.stage = Stage::Counting;
        self.call_all(agenda);
        agenda.alarm(self.state.task.clock.instant(self.state.now_ns));
    }

    fn finish(&mut self) {
        self.state.stage = Stage::Over;
        let began_ns = self.state.progress.began_ns;
        if began_ns > 0 {
            let (samples, bytes) =
                (std::mem::take(&mut self.state.samples), self.state.progress.bytes);
            let at_ns = self.state.progress.ended_ns - began_ns;
            self.tell(News::Look(Look { at_ns, bytes, samples }));
        }
        let (now, before) = (self.handle.stats.get(), self.stats_before);
        let error = self.state.error.take();
        let kept = std::mem::take(&mut self.state.kept);
        let tcp = std::mem::take(&mut self.state.tcp);
        let is_upload = self.state.task.transfer.direction == Direction::Upload;
        let wire_bytes = if is_upload {
            now.bytes_sent - before.bytes_sent
        } else {
            now.bytes_received - before.bytes_received
        };
        self.tell(News::Done(Box::new(Outcome {
            bytes: self.state.progress.bytes,
            elapsed_ns: if began_ns > 0 { self.state.progress.ended_ns - began_ns } else { 0 },
            wire_bytes,
            tcp,
            stalls: self.state.stalls,
            told: self.state.told,
            error,
            lost: self.state.lost + self.state.probes,
            kept,
        })));
    }

    /// Gives a connection its turn.
    #[inline]
    fn with(
        &mut self,
        session: &mut LineSession,
        turn: &mut Turn<'_, ()>,
        act: impl FnOnce(&mut Session, &mut Turn<'_, ()>, &mut Workbench, &mut At<'_>) -> After,
    ) -> After {
        self.state.now_ns = self.state.task.clock.now_ns();
        let LineSession { session, line, is_counted, .. } = session;
        if self.state.stage == Stage::Counting && !std::mem::replace(is_counted, true) {
            let direction = self.state.task.transfer.direction;
            if let Some(quic) = session.quic_stats() {
                self.state.tcp.add(Tcp::of_quic(&quic, direction));
                return session.end();
            }
            self.state.tcp.add(Tcp::of(turn.path, direction));
        }
        let (open, done) = (self.state.progress.open, self.state.progress.done);
        let failed = self.state.error.is_some();
        let mut at = At { line, state: &mut self.state };
        let after = act(session, turn, &mut self.bench, &mut at);
        let state = &self.state;
        if (open, done, failed) != (state.progress.open, state.progress.done, state.error.is_some())
        {
            turn.agenda.alarm(state.task.clock.instant(state.now_ns));
        }
        after
    }
}

impl Service for CarrierService {
    type Session = LineSession;
    type Message = ();

    fn turn_started(&mut self, now: Instant, agenda: &mut Agenda) {
        self.state.now_ns = self.state.task.clock.nanoseconds(now);
        self.obey(agenda);
        self.dial(agenda);
        self.follow(agenda);
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(LineSession, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(LineSession, After)> {
        // The server's name was checked before the thread began.
        let dial = &self.state.task.route.dial;
        let session = Session::begin(dial, outbound, &mut self.bench, now).ok()?;
        self.tokens.push(outbound.token);
        let after = session.first_wish();
        let (line, token) = (CarrierConnection::new(outbound.tag), outbound.token);
        Some((LineSession { session, line, token, is_counted: false }, after))
    }

    fn connect_failed(&mut self, _: u64, error: io::Error, agenda: &mut Agenda) {
        self.state.fail(&format!("can't connect: {}", error.kind()));
        agenda.alarm(self.state.task.clock.instant(self.state.now_ns));
    }

    #[inline]
    fn turn(&mut self, session: &mut LineSession, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, |session, turn, bench, at| session.turn(turn, bench, at))
    }

    fn shut_down(&mut self, session: &mut LineSession, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, |session, turn, bench, at| session.shut_down(turn, bench, at))
    }

    #[inline]
    fn flush(
        &mut self,
        session: &mut LineSession,
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
        session: &mut LineSession,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        self.bench.flush_datagrams(&mut session.session, sink)
    }

    fn close(&mut self, session: LineSession, cause: CloseCause, agenda: &mut Agenda) {
        let LineSession { mut session, mut line, token, .. } = session;
        self.bench.forget(&mut session, self.state.task.clock.instant(self.state.now_ns));
        self.tokens.retain(|one| *one != token);
        let mut at = At { line: &mut line, state: &mut self.state };
        session.close(cause, &mut at);
        agenda.alarm(self.state.task.clock.instant(self.state.now_ns));
    }
}
