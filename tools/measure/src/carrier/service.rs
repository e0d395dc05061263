//! A transfer as a service of the event loop.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, SendQueue};
use bolide_client::{Session, Workbench};
use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Outbound, Service, Stats, Token, Turn,
};

use super::desk::{Desk, Stage};
use super::line::{At, Line};
use super::{Command, Look, News, Outcome, Task, Tcp};
use crate::clock::nanoseconds;
use crate::latency::Pulse;
use crate::plan::Direction;

/// How long the answer to an upload may take that was ended because its time was over: what is buffered
/// on a slow path must still leave.
const LAST_ANSWER: Duration = Duration::from_secs(10);

/// Probes that wait for a connection that takes them at most.
const DUE_MAX: usize = 100;

/// What the loop around the service sees and says.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The worker's counters up to its last turn.
    pub(super) stats: Cell<Stats>,
    /// The service wants to end.
    pub(super) finished: Cell<bool>,
}

/// A connection with its session.
#[derive(Debug)]
pub(super) struct LineSession {
    session: Session,
    line: Line,
    token: Token,
    /// The last look at it has been taken.
    is_counted: bool,
}

/// The service.
#[derive(Debug)]
pub(super) struct LineService {
    desk: Desk,
    bench: Workbench,
    commands: Receiver<Command>,
    news: Sender<News>,
    window: Rc<Window>,
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

impl LineService {
    pub(super) fn new(
        task: Arc<Task>,
        commands: Receiver<Command>,
        news: Sender<News>,
        window: Rc<Window>,
    ) -> Self {
        let bench = Workbench::new(task.route.limits.clone());
        let wanted = task.transfer.connections;
        Self {
            desk: Desk::new(task),
            bench,
            commands,
            news,
            window,
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
                Command::Begin if self.desk.stage == Stage::Waiting => {
                    let now_ns = self.desk.now_ns;
                    self.desk.stage = Stage::Running;
                    self.desk.began_ns = now_ns;
                    self.moved = (now_ns, 0);
                    self.next_look_ns = now_ns + nanoseconds(self.desk.task.look);
                    self.stats_before = self.window.stats.get();
                    self.call_all(agenda);
                }
                Command::Begin => {}
                Command::Add => self.wanted += 1,
                Command::Probe(rate) => self.desk.pulse = Pulse::new(rate, self.desk.now_ns),
                Command::Stop => self.is_stopped = true,
                Command::Finish => self.window.finished.set(true),
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
            agenda.connect(self.desk.task.route.destination.clone(), self.desk.now_ns);
            self.dialed += 1;
        }
    }

    /// Follows the clock and what has come through the transfer.
    fn follow(&mut self, agenda: &mut Agenda) {
        let is_given_up = self.desk.error.is_some() || self.is_stopped;
        if is_given_up && !matches!(self.desk.stage, Stage::Counting | Stage::Over) {
            return self.count(agenda);
        }
        match self.desk.stage {
            Stage::Connecting if self.desk.open == self.wanted => {
                self.desk.stage = Stage::Waiting;
                if let Some(facts) = self.desk.facts.clone() {
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
        self.desk.task.transfer.streams * self.wanted
    }

    fn run(&mut self, agenda: &mut Agenda) {
        let now_ns = self.desk.now_ns;
        let end_ns = self.desk.time_is_over_ns();
        if self.desk.done >= self.requests() {
            return self.count(agenda);
        }
        if let Some(end_ns) = end_ns {
            let is_upload = self.desk.task.transfer.direction == Direction::Upload;
            if now_ns >= end_ns && !is_upload {
                let requests = self.requests();
                self.desk.judge_time(requests);
                return self.count(agenda);
            }
            if now_ns >= end_ns && self.desk.stage == Stage::Running {
                self.desk.stage = Stage::Ending;
                self.call_all(agenda);
            }
            if now_ns >= end_ns + nanoseconds(LAST_ANSWER) {
                let seconds = LAST_ANSWER.as_secs();
                self.desk.fail(&format!("no response within {seconds} s after the upload"));
                return self.count(agenda);
            }
        }
        self.watch(now_ns);
        self.probe(agenda);
        self.look_if_due();
        let mut alarm_ns = self.next_look_ns.min(self.desk.pulse.next_ns());
        if let Some(end_ns) = end_ns.filter(|end_ns| *end_ns > now_ns) {
            alarm_ns = alarm_ns.min(end_ns);
        }
        agenda.alarm(self.desk.task.clock.instant(alarm_ns));
    }

    /// Gives a transfer up in which nothing moves.
    fn watch(&mut self, now_ns: u64) {
        let (since_ns, bytes) = self.moved;
        if self.desk.bytes != bytes {
            self.moved = (now_ns, self.desk.bytes);
            return;
        }
        let patience = self.desk.task.patience;
        if now_ns >= since_ns + nanoseconds(patience) && self.desk.stage == Stage::Running {
            let seconds = patience.as_secs_f64();
            self.desk.fail(&format!("nothing moved for {seconds:.0} s, after {bytes} bytes"));
        }
    }

    /// Gives probes that are due to the connections in turn.
    fn probe(&mut self, agenda: &mut Agenda) {
        while let Some(due_ns) = self.desk.pulse.due(self.desk.now_ns) {
            if self.desk.due.len() < DUE_MAX {
                self.desk.due.push(due_ns);
            } else {
                self.desk.lost += 1;
            }
        }
        if !self.desk.due.is_empty() && !self.tokens.is_empty() {
            let token = self.tokens[self.next_probed % self.tokens.len()];
            self.next_probed += 1;
            agenda.call(token);
        }
    }

    fn look_if_due(&mut self) {
        if self.desk.now_ns >= self.next_look_ns {
            self.next_look_ns += nanoseconds(self.desk.task.look);
            self.look();
        }
    }

    fn look(&mut self) {
        let samples = std::mem::take(&mut self.desk.samples);
        let at_ns = self.desk.now_ns.saturating_sub(self.desk.began_ns);
        self.tell(News::Look(Look { at_ns, bytes: self.desk.bytes, samples }));
    }

    /// The transfer is over: every connection has a last turn in which it is looked at.
    fn count(&mut self, agenda: &mut Agenda) {
        if self.desk.done < self.requests() {
            self.desk.ended_ns = self.desk.now_ns;
        }
        self.desk.stage = Stage::Counting;
        self.call_all(agenda);
        agenda.alarm(self.desk.task.clock.instant(self.desk.now_ns));
    }

    fn finish(&mut self) {
        self.desk.stage = Stage::Over;
        let began_ns = self.desk.began_ns;
        if began_ns > 0 {
            let (samples, bytes) = (std::mem::take(&mut self.desk.samples), self.desk.bytes);
            let at_ns = self.desk.ended_ns - began_ns;
            self.tell(News::Look(Look { at_ns, bytes, samples }));
        }
        let (now, before) = (self.window.stats.get(), self.stats_before);
        let error = self.desk.error.take();
        let kept = std::mem::take(&mut self.desk.kept);
        let tcp = std::mem::take(&mut self.desk.tcp);
        let is_upload = self.desk.task.transfer.direction == Direction::Upload;
        let wire_bytes = if is_upload {
            now.bytes_sent - before.bytes_sent
        } else {
            now.bytes_received - before.bytes_received
        };
        self.tell(News::Done(Box::new(Outcome {
            bytes: self.desk.bytes,
            elapsed_ns: if began_ns > 0 { self.desk.ended_ns - began_ns } else { 0 },
            wire_bytes,
            tcp,
            stalls: self.desk.stalls,
            told: self.desk.told,
            error,
            lost: self.desk.lost + self.desk.probes,
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
        self.desk.now_ns = self.desk.task.clock.now_ns();
        let LineSession { session, line, is_counted, .. } = session;
        if self.desk.stage == Stage::Counting && !std::mem::replace(is_counted, true) {
            self.desk.tcp.add(Tcp::of(turn.path, self.desk.task.transfer.direction));
        }
        let (open, done) = (self.desk.open, self.desk.done);
        let failed = self.desk.error.is_some();
        let mut at = At { line, desk: &mut self.desk };
        let after = act(session, turn, &mut self.bench, &mut at);
        let desk = &self.desk;
        if (open, done, failed) != (desk.open, desk.done, desk.error.is_some()) {
            turn.agenda.alarm(desk.task.clock.instant(desk.now_ns));
        }
        after
    }
}

impl Service for LineService {
    type Session = LineSession;
    type Message = ();

    fn turn_started(&mut self, now: Instant, agenda: &mut Agenda) {
        self.desk.now_ns = self.desk.task.clock.nanoseconds(now);
        self.obey(agenda);
        self.dial(agenda);
        self.follow(agenda);
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(LineSession, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(LineSession, After)> {
        // The server's name was checked before the thread began.
        let session = Session::new(&self.desk.task.route.dial, &self.bench, now).ok()?;
        self.tokens.push(outbound.token);
        let after = session.first_wish();
        let (line, token) = (Line::new(outbound.tag), outbound.token);
        Some((LineSession { session, line, token, is_counted: false }, after))
    }

    fn connect_failed(&mut self, _: u64, error: io::Error, agenda: &mut Agenda) {
        self.desk.fail(&format!("can't connect: {}", error.kind()));
        agenda.alarm(self.desk.task.clock.instant(self.desk.now_ns));
    }

    #[inline]
    fn turn(&mut self, session: &mut LineSession, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, |session, turn, bench, at| session.turn(turn, bench, at))
    }

    fn message(&mut self, session: &mut LineSession, (): (), turn: &mut Turn<'_, ()>) -> After {
        self.turn(session, turn)
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

    fn close(&mut self, session: LineSession, cause: CloseCause, agenda: &mut Agenda) {
        let LineSession { session, mut line, token, .. } = session;
        self.tokens.retain(|one| *one != token);
        let mut at = At { line: &mut line, desk: &mut self.desk };
        session.close(cause, &mut at);
        agenda.alarm(self.desk.task.clock.instant(self.desk.now_ns));
    }
}
