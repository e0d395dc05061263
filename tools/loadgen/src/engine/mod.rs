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
mod events;
mod histograms;
mod looked;
mod messages;
mod mistake;
mod outcome;
mod pacer;
mod random;
mod script;
mod seats;
mod service;
mod tally;
mod task;
pub(crate) mod template;
#[cfg(test)]
mod testing;
mod thread;
mod thread_state;
mod watch;
mod websocket;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_connection::Http1Limits;
use bolide_eventloop::raise_file_limit;

use self::messages::{Command, Facts, News, ThreadNews};
pub use self::mistake::Mistake;
use self::outcome::Cost;
use self::pacer::Part;
use self::tally::Tally;
use self::thread::Recipe;
use self::thread_state::Task;
use self::watch::Watch;
use crate::cost::{Accounting, CostSample};
use crate::plan::{Load, Phase, Plan, RequestKind, ServerAddress, Version};
use crate::progress::{Control, Progress, RecordSink, Runner};
use crate::report::{PhaseReport, TlsReport};

/// File descriptors that a run needs beside its connections.
const OTHER_FILES_COUNT: u64 = 64;

/// Between the order to begin and the beginning: every thread has heard of it by then.
const HEAD_START: Duration = Duration::from_millis(20);

/// How long nobody may get through before the server counts as gone.
const DOWN_TIME: Duration = Duration::from_secs(1);

/// How often there is a look at the news when none comes.
const NEWS_WAIT: Duration = Duration::from_millis(100);

/// A thread of the load, as seen from outside.
struct Thread {
    commands: Sender<Command>,
    seats: usize,
    handle: Option<JoinHandle<()>>,
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
        let limits = task::limits(plan);
        let task = Arc::new(task::task(plan, &limits, Instant::now())?);
        check_files(plan)?;
        let (sender, news) = channel();
        let count = plan.threads.min(plan.connections);
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let (commands, receiver) = channel();
            let seats = share(plan.connections as u64, number, count) as usize;
            let recipe = Recipe {
                number,
                threads: count,
                task: Arc::clone(&task),
                seats,
                limits: limits.clone(),
                seed: plan.seed,
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
            connect_timeout: plan.connect_timeout,
            generator_cores: cores.min(count),
            facts: None,
            began_ns: None,
            died_ns: None,
            records: None,
        };
        engine.try_server(plan)?;
        Ok(engine)
    }

    /// Makes the first connection.
    fn try_server(&mut self, plan: &Plan) -> Result<(), Mistake> {
        let to = match &plan.origin.addresses[0] {
            ServerAddress::Inet(address) => address.to_string(),
            ServerAddress::Unix(path) => path.display().to_string(),
        };
        let over = if plan.version == Version::Http3 { "HTTP/3 " } else { "" };
        let failed = |what: &str| {
            let hint = hint(what, plan.version);
            Err(Mistake::Connection(format!("no {over}connection to {to}: {what}{hint}")))
        };
        self.tell(0, Command::Connect { at_most: 1 });
        let latest = Instant::now() + self.connect_timeout + DOWN_TIME;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok((_, News::Connected(facts))) => {
                    self.facts = facts;
                    return self.check_depth(plan);
                }
                Ok((_, News::Trouble(what) | News::Broken(what))) => return failed(&what),
                Ok((_, News::Look(_) | News::Ended(_))) => {}
                Err(_) => return failed("it took too long"),
            }
        }
    }

    /// Whether the version that is spoken can have so many requests in flight.
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

    /// Carries out a phase. `observer` is called every 100 ms on this thread, and may end it early.
    ///
    /// A phase that can't be carried out (no rate, no end) is over at once, with nothing done.
    pub fn run(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> PhaseReport {
        let can_run = task::check_phase(phase).is_ok();
        let wanted = can_run && self.connect(phase, observer) == Control::Continue;
        let mut before = self.accounting.sample();
        let mut looked = Instant::now();
        let start = looked + if wanted { HEAD_START } else { Duration::ZERO };
        let start_ns = self.task.nanoseconds(start);
        self.began_ns.get_or_insert(start_ns);
        let measure = start + phase.warm_up;
        let mut watch = Watch::new(self.threads.len(), before);
        let mut tally = Tally::new(self.task.script.requests.len());
        if wanted {
            self.begin(phase, start_ns);
        }
        let mut is_measuring = phase.warm_up.is_zero();
        while wanted && !watch.is_over() {
            let now = Instant::now();
            if !is_measuring && now >= measure {
                is_measuring = true;
                before = self.accounting.sample();
                looked = Instant::now();
            }
            let until_measure = measure.saturating_duration_since(now);
            let wait = if is_measuring { NEWS_WAIT } else { NEWS_WAIT.min(until_measure) };
            let had_news = self.read_news(&phase.name, wait, &mut watch, &mut tally);
            if !had_news {
                self.note_lost_threads(&mut watch);
            }
            if self.watch(&mut watch, observer, had_news || !is_measuring) == Control::Stop {
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
        let measure_ns = self.task.nanoseconds(measure);
        outcome::report(phase, tally, measure_ns, watch.series, &cost, &self.task)
    }

    /// Makes the connections that the phase needs.
    fn connect(
        &mut self,
        phase: &Phase,
        observer: &mut dyn FnMut(&Progress) -> Control,
    ) -> Control {
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
                    if observer(&Progress::default()) == Control::Stop {
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
        let all: usize = self.threads.iter().map(|thread| thread.seats).sum();
        let mut seats_before = 0;
        for (number, thread) in self.threads.iter().enumerate() {
            let seats_after = seats_before + thread.seats;
            let upto = |requests: u64, seats: usize| {
                (u128::from(requests) * seats as u128 / all as u128) as u64
            };
            let requests = phase
                .until
                .requests
                .map(|requests| upto(requests, seats_after) - upto(requests, seats_before));
            self.tell(
                number,
                Command::Begin(Box::new(Part {
                    phase: phase.clone(),
                    start_ns,
                    rate_share: thread.seats as f64 / all as f64,
                    offset: number as f64 / self.threads.len() as f64,
                    requests,
                })),
            );
            seats_before = seats_after;
        }
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
                (_, News::Trouble(_) | News::Connected(_)) => {}
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

    /// Makes samples of what is complete, and finds out whether to go on.
    fn watch(
        &mut self,
        watch: &mut Watch,
        observer: &mut dyn FnMut(&Progress) -> Control,
        had_news: bool,
    ) -> Control {
        let mut control = Control::Continue;
        if !had_news {
            control = observer(watch.progress());
        }
        while watch.has_sample() {
            let cost: CostSample = self.accounting.sample();
            if let Some(progress) = watch.sample(cost)
                && observer(progress) == Control::Stop
            {
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

/// What may help when the first connection can't be made.
fn hint(what: &str, version: Version) -> &'static str {
    let is_http3 = version == Version::Http3;
    if what.contains("certificate") {
        " (--ca names the roots to trust; --insecure trusts anybody)"
    } else if is_http3 && what == io::ErrorKind::ConnectionRefused.to_string() {
        " (nothing listens on that UDP port: the server has no HTTP/3 there)"
    } else if is_http3 && what == io::ErrorKind::TimedOut.to_string() {
        " (nothing answered over UDP: the server has no HTTP/3 there, or a firewall drops UDP)"
    } else {
        ""
    }
}

/// The part of `whole` that number `number` of `count` gets: none is lost, and they differ by one at most.
fn share(whole: u64, number: usize, count: usize) -> u64 {
    let (count, number) = (count as u64, number as u64);
    whole / count + u64::from(number < whole % count)
}

/// Whether the process may have as many connections.
fn check_files(plan: &Plan) -> Result<(), Mistake> {
    let needed = plan.connections as u64 + OTHER_FILES_COUNT;
    let allowed = raise_file_limit().map_or(needed, |limit| limit.after);
    if allowed < needed {
        return Err(Mistake::new(format!(
            "{} connections need {needed} file descriptors, and {allowed} are allowed (ulimit -n)",
            plan.connections
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_is_lost_in_dealing() {
        for (whole, count) in [(10, 3), (1, 1), (7, 7), (1000, 16)] {
            let shares: Vec<u64> = (0..count).map(|number| share(whole, number, count)).collect();
            assert_eq!(shares.iter().sum::<u64>(), whole);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
