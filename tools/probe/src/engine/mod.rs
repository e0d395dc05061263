//! The engine: threads with connections, which carry out one phase after the other.
//!
//! Each thread is a worker of the event loop with its own seats for connections, its own schedule of
//! intended times, and its own counts; nothing is shared while requests fly. The calling thread only
//! tells them when a phase begins, looks at what they say every 100 ms, and adds up at the end.

mod arrivals;
mod asked;
mod asker;
mod by_request;
mod calls;
mod checks;
mod cookies;
mod events;
mod histograms;
mod looked;
mod messages;
mod mistake;
mod outcome;
mod pacer;
mod recipe;
mod script;
mod seats;
mod servers;
mod service;
mod share;
mod steps;
mod tally;
mod task;
pub mod template;
#[cfg(test)]
mod testing;
mod thread;
mod thread_state;
mod users;
mod watch;
mod websocket;
mod websocket_tally;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_connection::Http1Limits;
use bolide_eventloop::raise_file_limit;

pub use self::messages::Look;
use self::messages::{Command, Facts, News, ThreadNews};
pub use self::mistake::Mistake;
use self::outcome::Cost;
pub use self::outcome::Counted;
use self::pacer::Part;
use self::recipe::Recipe;
pub use self::share::Share;
use self::tally::Tally;
use self::thread_state::Task;
pub use self::watch::{Series, Watch};
use crate::cost::{Accounting, CostSample};
use crate::plan::{Load, Phase, Plan, RequestKind, ServerAddress, Version};
use crate::progress::{Control, Progress, RecordSink, Runner};
use crate::report::{PhaseReport, TlsReport};

/// File descriptors that a run needs in addition to its connections.
const OTHER_FILES_COUNT: u64 = 64;

/// Between the order to begin and the beginning: every thread has heard of it by then.
const HEAD_START: Duration = Duration::from_millis(20);

/// How long no request may get through before the server counts as gone.
const DOWN_TIME: Duration = Duration::from_secs(1);

/// How often there is a look at the news when none comes.
const NEWS_WAIT: Duration = Duration::from_millis(100);

/// A thread of the load, as seen from outside.
struct Thread {
    commands: Sender<Command>,
    seats: usize,
    handle: Option<JoinHandle<()>>,
}

/// State of a phase that runs.
struct Watched {
    watch: Watch,
    /// Costs up to the last complete interval.
    cost: CostSample,
}

/// Carries out the phases of a plan, on connections that stay open between them.
///
/// While a phase with standing connections begins, those that are missing are made; what that took
/// counts for the phase's connect and handshake times. Requests of the phase before that are still in
/// flight are waited for, for a second at most, and count nowhere.
pub struct Engine {
    threads: Vec<Thread>,
    news: Receiver<ThreadNews>,
    task: Arc<Task>,
    accounting: Box<dyn Accounting>,
    connect_timeout: Duration,
    generator_cores: usize,
    share: Share,
    facts: Option<Facts>,
    /// When the first phase began, in nanoseconds since the engine did.
    began_ns: Option<u64>,
    died_ns: Option<u64>,
    records: Option<RecordSink>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the threads and makes the first connection. `accounting` says what both sides cost.
    ///
    /// # Errors
    ///
    /// [`Mistake`] when the plan can't be carried out, or the first connection can't be made; no request
    /// has been sent then.
    pub fn prepare(plan: &Plan, accounting: Box<dyn Accounting>) -> Result<Self, Mistake> {
        Self::prepare_share(plan, Share::WHOLE, accounting)
    }

    /// The same for an engine that carries out a share of the plan, with its own number of threads.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Self::prepare); and when there is no connection for this engine.
    pub fn prepare_share(
        plan: &Plan,
        share: Share,
        accounting: Box<dyn Accounting>,
    ) -> Result<Self, Mistake> {
        let connections = share.of(plan.connections as u64) as usize;
        let servers = plan.servers_count();
        if connections < servers {
            let (all, parts) = (plan.connections, share.count());
            let needed = format!("{parts} parts need at least as many connections");
            let each =
                if servers > 1 { format!(" to each of {servers} servers") } else { String::new() };
            return Err(Mistake::new(format!("-c {all}: {needed}{each}")));
        }
        let limits = task::limits(plan);
        let task = Arc::new(task::task(plan, &limits, Instant::now())?);
        check_files(connections)?;
        let (sender, news) = channel();
        let count = plan.threads.min(connections / servers);
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let (commands, receiver) = channel();
            let seats = Share::new(number, count).of(connections as u64) as usize;
            let recipe = Recipe {
                number,
                threads: count,
                share,
                task: Arc::clone(&task),
                seats,
                limits: limits.clone(),
                seed: share.seed(plan.seed),
                core: plan.cores.get(number % plan.cores.len().max(1)).copied(),
                news: sender.clone(),
                commands: receiver,
            };
            let handle = recipe.start().map_err(|error| {
                Mistake::new(format!("thread {number} can't be started: {error}"))
            })?;
            threads.push(Thread { commands, seats, handle: Some(handle) });
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = if plan.cores.is_empty() { cores } else { plan.cores.len() };
        let mut engine = Self {
            threads,
            news,
            task,
            accounting,
            connect_timeout: plan.timeouts.connect_timeout,
            generator_cores: cores.min(count),
            share,
            facts: None,
            began_ns: None,
            died_ns: None,
            records: None,
        };
        engine.try_servers(plan)?;
        Ok(engine)
    }

    /// Makes the first connection to each server.
    fn try_servers(&mut self, plan: &Plan) -> Result<(), Mistake> {
        let over = if plan.version == Version::Http3 { "HTTP/3 " } else { "" };
        let failed = |server: usize, what: &str| {
            let others = plan.scenario.iter().flat_map(|scenario| &scenario.others);
            let origin = std::iter::once(&plan.origin).chain(others).nth(server);
            let to = match origin.and_then(|origin| origin.addresses.first()) {
                Some(ServerAddress::Inet(address)) => address.to_string(),
                Some(ServerAddress::Unix(path)) => path.display().to_string(),
                None => "a server without an address".to_owned(),
            };
            let hint = hint(what, plan.version);
            Err(Mistake::Connection(format!("no {over}connection to {to}: {what}{hint}")))
        };
        self.tell(0, Command::Connect { at_most: plan.servers_count() });
        let latest = Instant::now() + self.connect_timeout + DOWN_TIME;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok((_, News::Connected(facts))) => {
                    self.facts = facts;
                    return self.check_depth(plan);
                }
                Ok((_, News::Trouble(server, what))) => return failed(server, &what),
                Ok((_, News::Broken(what))) => return failed(0, &what),
                Ok((_, News::Look(_) | News::Ended(_))) => {}
                Err(_) => return failed(0, "it took too long"),
            }
        }
    }

    /// Checks whether the version that is spoken can have so many requests in flight.
    fn check_depth(&self, plan: &Plan) -> Result<(), Mistake> {
        let (depth, are_messages) = (plan.depth, matches!(plan.kind, RequestKind::WebSocket(_)));
        let depth_max = usize::from(Http1Limits::default().pipelined_count);
        let is_http1 = self.facts.as_ref().is_some_and(|facts| facts.protocol == "http/1.1");
        if is_http1 && !are_messages && depth > depth_max {
            return Err(Mistake::new(format!(
                "over HTTP/1.1 a connection has at most {depth_max} requests in flight, not {depth}: more connections carry more"
            )));
        }
        Ok(())
    }

    fn tell(&self, thread: usize, command: Command) {
        // A thread that is gone has said so in its last letter.
        let _ = self.threads[thread].commands.send(command);
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        for thread in 0..self.threads.len() {
            self.tell(thread, command());
        }
    }

    /// Carries out a phase. `observer` is called every 100 ms on this thread, and may end it early; the last call has
    /// what the phase came to.
    ///
    /// A phase that can't be carried out (no rate, no end) is over at once, with nothing done.
    pub fn run(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> PhaseReport {
        let idle = Progress::default();
        let can_run = task::check_phase(phase).is_ok();
        let wanted = can_run && self.connect(phase, &mut || observer(&idle)) == Control::Continue;
        let mut series = Series::default();
        let start = wanted.then(|| Instant::now() + HEAD_START);
        let counted = self.count(phase, start, &mut |look| match look {
            Some(look) => series.add(&look).map_or(Control::Continue, &mut *observer),
            None => observer(series.progress()),
        });
        // What came after the last sample.
        observer(series.progress());
        self.report(phase, counted, series)
    }

    /// Carries out its share of a phase from `start` on; `None`: nothing is done. `observer` is given what every
    /// 100 ms came to, or nothing from time to time, and may end the phase.
    pub fn count(
        &mut self,
        phase: &Phase,
        start: Option<Instant>,
        observer: &mut dyn FnMut(Option<Look>) -> Control,
    ) -> Counted {
        let mut before = self.accounting.sample();
        let mut looked = Instant::now();
        let wanted = start.is_some() && task::check_phase(phase).is_ok();
        let start = start.unwrap_or(looked);
        let start_ns = self.task.nanoseconds(start);
        self.began_ns.get_or_insert(start_ns);
        let measure = start + phase.warm_up;
        let mut watched = Watched { watch: Watch::new(self.threads.len()), cost: before };
        let mut tally = Tally::new(self.task.script.requests.len());
        if wanted {
            self.begin(phase, start_ns);
        }
        let mut is_measuring = phase.warm_up.is_zero();
        while wanted && !watched.watch.is_over() {
            let now = Instant::now();
            if !is_measuring && now >= measure {
                is_measuring = true;
                before = self.accounting.sample();
                looked = Instant::now();
            }
            let until_measure = measure.saturating_duration_since(now);
            let wait = if is_measuring { NEWS_WAIT } else { NEWS_WAIT.min(until_measure) };
            let had_news = self.read_news(&phase.name, wait, &mut watched.watch, &mut tally);
            if !had_news {
                self.note_lost_threads(&mut watched.watch);
            }
            if self.watch(&mut watched, observer, had_news || !is_measuring) == Control::Stop {
                self.tell_all(|| Command::Stop);
            }
        }
        let after = self.accounting.sample();
        let cost = Cost {
            before,
            after,
            between: looked.elapsed(),
            generator_cores: self.generator_cores,
            server_cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        Counted::new(tally, self.task.nanoseconds(measure), &cost)
    }

    /// The report of a phase, of what one or several engines counted.
    pub fn report(&self, phase: &Phase, counted: Counted, series: Series) -> PhaseReport {
        outcome::report(phase, counted, series.into_samples(), &self.task)
    }

    /// Its threads.
    pub fn threads_count(&self) -> usize {
        self.threads.len()
    }

    /// Its connections.
    pub fn connections_count(&self) -> usize {
        self.threads.iter().map(|thread| thread.seats).sum()
    }

    /// Makes the connections that the phase needs. `observer` is called every 100 ms, and may end it.
    pub fn connect(&mut self, phase: &Phase, observer: &mut dyn FnMut() -> Control) -> Control {
        let at_most = if phase.load == Load::Connect { 0 } else { usize::MAX };
        self.tell_all(|| Command::Connect { at_most });
        let latest = Instant::now() + self.connect_timeout;
        let mut missing = self.threads.len();
        while missing > 0 && Instant::now() < latest {
            match self.news.recv_timeout(NEWS_WAIT) {
                Ok((_, News::Connected(facts))) => {
                    missing -= 1;
                    self.facts = self.facts.take().or(facts);
                }
                // The phase begins with those that are there, and counts what fails.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    if observer() == Control::Stop {
                        return Control::Stop;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Control::Continue
    }

    /// Deals the phase to the threads, by their shares of the connections.
    fn begin(&self, phase: &Phase, start_ns: u64) {
        let all = self.connections_count();
        let phase = self.own(phase);
        let users = self.task.scenario.as_ref().map_or(0, |scenario| scenario.users as u64);
        let users = self.share.of(users);
        let mut seats_before = 0;
        for (number, thread) in self.threads.iter().enumerate() {
            let seats_after = seats_before + thread.seats;
            let upto =
                |count: u64, seats: usize| (u128::from(count) * seats as u128 / all as u128) as u64;
            let requests = phase
                .until
                .requests
                .map(|requests| upto(requests, seats_after) - upto(requests, seats_before));
            let rate_share = thread.seats as f64 / all as f64;
            self.tell(
                number,
                Command::Begin(Box::new(Part {
                    phase: phase.clone(),
                    start_ns,
                    rate_share,
                    offset: number as f64 / self.threads.len() as f64
                        + self.share.offset() * rate_share,
                    requests,
                    users: upto(users, seats_after) as usize - upto(users, seats_before) as usize,
                })),
            );
            seats_before = seats_after;
        }
    }

    /// This engine's share of a phase.
    fn own(&self, phase: &Phase) -> Phase {
        let mut own = phase.clone();
        if let Load::Open { rate, .. } = &mut own.load {
            *rate = self.share.of_rate(*rate);
        }
        own.until.requests = own.until.requests.map(|requests| self.share.of(requests));
        own
    }

    /// Reads what the threads have to say. Whether there was anything.
    fn read_news(
        &mut self,
        phase: &str,
        wait: Duration,
        watch: &mut Watch,
        tally: &mut Tally,
    ) -> bool {
        let Ok(mut letter) = self.news.recv_timeout(wait) else { return false };
        loop {
            match letter {
                (thread, News::Look(look)) => {
                    watch.look(thread, &look);
                    if let Some(sink) = self.records.as_mut().filter(|_| !look.records.is_empty()) {
                        sink(phase, &look.records);
                    }
                }
                (thread, News::Ended(part)) => {
                    tally.add(&part);
                    watch.ended(thread);
                }
                (thread, News::Broken(_)) => watch.ended(thread),
                (_, News::Trouble(..) | News::Connected(_)) => {}
            }
            match self.news.try_recv() {
                Ok(next) => letter = next,
                Err(_) => return true,
            }
        }
    }

    /// A thread that broke off says nothing more; what the others counted is what there is.
    fn note_lost_threads(&self, watch: &mut Watch) {
        for (number, thread) in self.threads.iter().enumerate() {
            if thread.handle.as_ref().is_none_or(JoinHandle::is_finished) {
                watch.ended(number);
            }
        }
    }

    /// Passes on what is complete, and finds out whether to go on.
    fn watch(
        &mut self,
        Watched { watch, cost }: &mut Watched,
        observer: &mut dyn FnMut(Option<Look>) -> Control,
        had_news: bool,
    ) -> Control {
        let mut control = Control::Continue;
        if !had_news {
            control = observer(None);
        }
        while let Some(mut look) = watch.next_complete() {
            let before = std::mem::replace(cost, self.accounting.sample());
            let passed = |now: Duration, before: Duration| {
                u64::try_from(now.saturating_sub(before).as_nanos()).unwrap_or(u64::MAX)
            };
            look.generator_cpu_ns = passed(cost.generator_cpu, before.generator_cpu);
            let server = cost.server.zip(before.server);
            look.server_cpu_ns = server.map(|(now, before)| passed(now.0, before.0));
            if observer(Some(look)) == Control::Stop {
                control = Control::Stop;
            }
        }
        let now_ns = self.task.nanoseconds(Instant::now());
        let down_ns = DOWN_TIME.as_nanos() as u64;
        if let Some(since_ns) = watch.down_since_ns()
            && now_ns.saturating_sub(since_ns) >= down_ns
        {
            let began_ns = self.began_ns.unwrap_or(since_ns);
            self.died_ns.get_or_insert_with(|| since_ns.saturating_sub(began_ns));
            return Control::Stop;
        }
        control
    }

    /// Ends the threads and closes their connections.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.tell_all(|| Command::Finish);
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                // Its panic, if there was one, has been printed.
                let _ = handle.join();
            }
        }
    }
}

impl Runner for Engine {
    fn run(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> PhaseReport {
        Self::run(self, phase, observer)
    }

    fn record_to(&mut self, sink: RecordSink) {
        self.records = Some(sink);
    }

    fn protocol(&self) -> String {
        self.facts.as_ref().map(|facts| facts.protocol.to_owned()).unwrap_or_default()
    }

    fn tls(&self) -> Option<TlsReport> {
        self.facts.as_ref()?.tls.clone()
    }

    fn server_died_after_ns(&self) -> Option<u64> {
        self.died_ns
    }
}

/// Returns what may help when the first connection can't be made.
fn hint(what: &str, version: Version) -> &'static str {
    let is_http3 = version == Version::Http3;
    if what.contains("certificate") {
        " (--ca names the roots to trust; --insecure trusts any certificate)"
    } else if is_http3 && what == io::ErrorKind::ConnectionRefused.to_string() {
        " (nothing listens on that UDP port: the server has no HTTP/3 there)"
    } else if is_http3 && what == io::ErrorKind::TimedOut.to_string() {
        " (nothing replied over UDP: the server has no HTTP/3 there, or a firewall drops UDP)"
    } else {
        ""
    }
}

/// Checks whether the process may have as many connections.
fn check_files(connections: usize) -> Result<(), Mistake> {
    let needed = connections as u64 + OTHER_FILES_COUNT;
    let allowed = raise_file_limit().map_or(needed, |limit| limit.after);
    if allowed < needed {
        return Err(Mistake::new(format!(
            "{connections} connections need {needed} file descriptors, and {allowed} are allowed (ulimit -n)"
        )));
    }
    Ok(())
}
