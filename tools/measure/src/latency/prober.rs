//! A thread that probes, on connections of its own: what the transfer's thread does never delays it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, SendQueue};
use bolide_client::{Ending, Established, Orders, Owner, Session, Workbench};
use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Limits as LoopLimits, MioKernel, Outbound, Service, Token,
    Turn, Worker,
};
use bolide_semantics::{ConnectionEvent, End, ExchangeEvent, ExchangeId, RequestHead};
use http::Method;

use super::{Kind, Pulse, Sample};
use crate::carrier::ending_in_words;
use crate::clock::Clock;
use crate::dialing::Route;

/// How long a thread without work waits before it looks for commands.
const COMMAND_WAIT: Duration = Duration::from_millis(5);

/// Probes under way, or waiting for their connection, at most.
const PROBES_MAX: usize = 200;

/// The tag of the connection that stands: it is made for no probe.
const NOBODY: u64 = u64::MAX;

/// Use of connections by probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// One connection stands, and carries them all.
    No,
    /// Each makes one.
    Yes,
}

/// Task of a prober.
#[derive(Debug, Clone)]
pub(crate) struct ProberTask {
    pub(crate) route: Route,
    pub(crate) path: String,
    pub(crate) fresh: Fresh,
    pub(crate) clock: Clock,
}

/// News of a prober.
#[derive(Debug)]
enum News {
    Answered(Sample),
    /// A probe of which nothing came, and why.
    Lost(String),
}

/// A thread that probes, seen from outside. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Prober {
    rates: Sender<Option<f64>>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
    lost: u64,
    trouble: Option<String>,
}

impl Prober {
    /// Starts the thread. It probes nothing before it has a rate.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(crate) fn start(task: ProberTask) -> Result<Self, String> {
        let (rates, orders) = channel();
        let (sender, news) = channel();
        let thread = std::thread::Builder::new().name("probe".into()).spawn(move || {
            let last_words = sender.clone();
            if let Err(error) = run(task, orders, sender) {
                // Its reader may have gone.
                let _ = last_words.send(News::Lost(format!("the event loop failed: {error}")));
            }
        });
        let thread = thread.map_err(|error| format!("can't start a thread: {error}"))?;
        Ok(Self { rates, news, thread: Some(thread), lost: 0, trouble: None })
    }

    /// Probes so often per second from here on; 0: not at all.
    pub(crate) fn rate(&self, rate: f64) {
        // A thread that is gone has said why.
        let _ = self.rates.send(Some(rate));
    }

    /// Returns what was answered since the last call.
    pub(crate) fn samples(&mut self) -> Vec<Sample> {
        let mut samples = Vec::new();
        for news in self.news.try_iter() {
            match news {
                News::Answered(sample) => samples.push(sample),
                News::Lost(why) => {
                    self.lost += 1;
                    self.trouble.get_or_insert(why);
                }
            }
        }
        samples
    }

    /// Why the first of the probes was lost that were.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Probes of which nothing came, up to the last call of [`Self::samples`].
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        let _ = self.rates.send(None);
        if let Some(thread) = self.thread.take() {
            // Its panic, if there was one, has been printed.
            let _ = thread.join();
        }
    }
}

fn run(task: ProberTask, orders: Receiver<Option<f64>>, news: Sender<News>) -> io::Result<()> {
    let finished = Rc::new(Cell::new(false));
    let service = ProbeService {
        bench: Workbench::new(task.route.limits.clone()),
        state: TransferState {
            task,
            news,
            now_ns: 0,
            pulse: Pulse::silent(),
            waiting: VecDeque::new(),
            under_way: 0,
        },
        orders,
        finished: Rc::clone(&finished),
        standing: None,
        is_dialing: false,
    };
    let mut worker = Worker::new(MioKernel::new()?, LoopLimits::default(), move |_| service);
    while !finished.get() {
        worker.step(Some(COMMAND_WAIT))?;
    }
    Ok(())
}

/// State that the connections share.
#[derive(Debug)]
struct TransferState {
    task: ProberTask,
    news: Sender<News>,
    now_ns: u64,
    pulse: Pulse,
    /// Probes that are due and have no connection: when they were due.
    waiting: VecDeque<u64>,
    under_way: usize,
}

impl TransferState {
    fn lost(&self, why: String) {
        // Who asked may have gone.
        let _ = self.news.send(News::Lost(why));
    }
}

/// One connection.
#[derive(Debug)]
struct Probing {
    /// The probe that it was made for: when that was due.
    single: Option<u64>,
    dialed_ns: u64,
    connected_ns: u64,
    ready_ns: u64,
    is_open: bool,
    asked: Vec<(ExchangeId, u64)>,
}

/// The service.
#[derive(Debug)]
struct ProbeService {
    bench: Workbench,
    state: TransferState,
    orders: Receiver<Option<f64>>,
    finished: Rc<Cell<bool>>,
    /// The connection that stands, once there is one.
    standing: Option<Token>,
    is_dialing: bool,
}

impl ProbeService {
    fn obey(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Some(rate) => self.state.pulse = Pulse::new(rate, self.state.now_ns),
                None => self.finished.set(true),
            }
        }
    }

    fn follow(&mut self, agenda: &mut Agenda) {
        let is_fresh = self.state.task.fresh == Fresh::Yes;
        let destination = self.state.task.route.destination.clone();
        if !is_fresh && self.standing.is_none() && !std::mem::replace(&mut self.is_dialing, true) {
            agenda.connect(destination.clone(), NOBODY);
        }
        while let Some(due_ns) = self.state.pulse.due(self.state.now_ns) {
            if self.state.waiting.len() + self.state.under_way >= PROBES_MAX {
                self.state.lost(format!("{PROBES_MAX} probes were already in flight"));
            } else if is_fresh {
                self.state.under_way += 1;
                agenda.connect(destination.clone(), due_ns);
            } else {
                self.state.waiting.push_back(due_ns);
            }
        }
        if let Some(token) = self.standing
            && !self.state.waiting.is_empty()
        {
            agenda.call(token);
        }
        if self.state.pulse.next_ns() != u64::MAX {
            agenda.alarm(self.state.task.clock.instant(self.state.pulse.next_ns()));
        }
    }

    fn with(
        &mut self,
        (session, probing): &mut (Session, Probing),
        turn: &mut Turn<'_, ()>,
        act: impl FnOnce(&mut Session, &mut Turn<'_, ()>, &mut Workbench, &mut At<'_>) -> After,
    ) -> After {
        self.state.now_ns = self.state.task.clock.now_ns();
        let mut at = At { probing, state: &mut self.state };
        act(session, turn, &mut self.bench, &mut at)
    }
}

impl Service for ProbeService {
    type Session = (Session, Probing);
    type Message = ();

    fn turn_started(&mut self, now: Instant, agenda: &mut Agenda) {
        self.state.now_ns = self.state.task.clock.nanoseconds(now);
        self.obey();
        self.follow(agenda);
    }

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Self::Session, After)> {
        None
    }

    fn connecting(&mut self, outbound: &Outbound, now: Instant) -> Option<(Self::Session, After)> {
        let session = Session::new(&self.state.task.route.dial, &self.bench, now).ok()?;
        let after = session.first_wish();
        let single = (outbound.tag != NOBODY).then_some(outbound.tag);
        if single.is_none() {
            self.standing = Some(outbound.token);
            self.is_dialing = false;
        }
        let probing = Probing {
            single,
            dialed_ns: self.state.now_ns,
            connected_ns: 0,
            ready_ns: 0,
            is_open: false,
            asked: Vec::new(),
        };
        Some(((session, probing), after))
    }

    fn connect_failed(&mut self, tag: u64, error: io::Error, _: &mut Agenda) {
        if tag == NOBODY {
            // Probes that wait are lost; the next one that is due tries again.
            let waiting = std::mem::take(&mut self.state.waiting);
            waiting.iter().for_each(|_| self.state.lost(error.kind().to_string()));
            self.is_dialing = false;
        } else {
            self.state.under_way -= 1;
            self.state.lost(format!("can't connect: {}", error.kind()));
        }
    }

    fn turn(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, |session, turn, bench, at| session.turn(turn, bench, at))
    }

    fn shut_down(&mut self, session: &mut Self::Session, turn: &mut Turn<'_, ()>) -> After {
        self.with(session, turn, |session, turn, bench, at| session.shut_down(turn, bench, at))
    }

    fn flush(
        &mut self,
        session: &mut Self::Session,
        output: &mut SendQueue,
        sink: &mut impl Write,
    ) -> io::Result<Flush> {
        session.0.flush(output, sink)
    }

    fn close(&mut self, session: Self::Session, cause: CloseCause, _: &mut Agenda) {
        let (session, mut probing) = session;
        if probing.single.is_none() {
            self.standing = None;
        }
        let mut at = At { probing: &mut probing, state: &mut self.state };
        session.close(cause, &mut at);
    }
}

/// A connection at its turn.
struct At<'a> {
    probing: &'a mut Probing,
    state: &'a mut TransferState,
}

impl At<'_> {
    fn ask(&mut self, due_ns: u64, orders: &mut Orders<'_>) {
        let Self { probing, state } = self;
        let route = &state.task.route;
        let head = RequestHead {
            method: &Method::GET,
            scheme: route.scheme,
            authority: &route.authority,
            path: &state.task.path,
            protocol: None,
            fields: &[],
        };
        match orders.send_request(&head, End::Yes) {
            Ok(id) => probing.asked.push((id, due_ns)),
            Err(_) => {
                state.lost("the connection took no request".to_owned());
                state.under_way -= 1;
            }
        }
    }

    fn answered(&mut self, position: usize, orders: &mut Orders<'_>) {
        let Self { probing, state } = self;
        let (_, due_ns) = probing.asked.swap_remove(position);
        state.under_way -= 1;
        let is_single = probing.single.is_some();
        let since_ns = if is_single { probing.ready_ns } else { due_ns };
        let sample = Sample {
            due_ns,
            kind: if is_single { Kind::Fresh } else { Kind::Standing },
            took_ns: state.now_ns.saturating_sub(since_ns),
            tcp_ns: probing.connected_ns - probing.dialed_ns,
            tls_ns: probing.ready_ns - probing.connected_ns,
        };
        // Who asked may have gone.
        let _ = state.news.send(News::Answered(sample));
        if is_single {
            orders.shut_down();
        }
    }

    fn give_up(&mut self, position: usize, why: String) {
        self.probing.asked.swap_remove(position);
        self.state.under_way -= 1;
        self.state.lost(why);
    }
}

impl Owner for At<'_> {
    fn connected(&mut self) {
        self.probing.connected_ns = self.state.now_ns;
    }

    fn ready(&mut self, established: &Established, orders: &mut Orders<'_>) {
        // The cryptography of this very turn belongs to the handshake.
        self.state.now_ns = self.state.task.clock.now_ns();
        self.probing.ready_ns = self.state.now_ns;
        if let Some(due_ns) = self.probing.single {
            self.ask(due_ns, orders);
        } else if !established.multiplexes() {
            self.probing.is_open = true;
        }
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let Some(position) = self.probing.asked.iter().position(|(one, _)| *one == id) else {
            return;
        };
        match event {
            ExchangeEvent::Head(end) => {
                let status = orders.head().status();
                if !status.is_success() {
                    let path = self.state.task.path.clone();
                    self.give_up(position, format!("GET {path} got {status}"));
                } else if end == End::Yes {
                    self.answered(position, orders);
                }
            }
            ExchangeEvent::Data(data, end) => {
                orders.consumed(id, data.len());
                if end == End::Yes {
                    self.answered(position, orders);
                }
            }
            ExchangeEvent::Trailers => self.answered(position, orders),
            ExchangeEvent::Aborted(reason) => self.give_up(position, reason.what.to_owned()),
            _ => {}
        }
    }

    fn connection(&mut self, event: ConnectionEvent, _: &mut Orders<'_>) {
        if matches!(event, ConnectionEvent::Concurrency { .. }) {
            self.probing.is_open = true;
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        while self.probing.is_open
            && self.probing.single.is_none()
            && orders.available() > 0
            && let Some(due_ns) = self.state.waiting.pop_front()
        {
            self.state.under_way += 1;
            self.ask(due_ns, orders);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn ended(&mut self, ending: &Ending) {
        let why = ending_in_words(ending, self.state.task.route.is_tls());
        let never_asked = self.probing.ready_ns == 0;
        let mut lost = self.probing.asked.len();
        if self.probing.single.is_some() && never_asked {
            lost += 1;
        }
        self.state.under_way -= lost;
        if self.probing.single.is_none() && never_asked {
            lost += std::mem::take(&mut self.state.waiting).len().max(1);
        }
        self.probing.asked.clear();
        for _ in 0..lost {
            self.state.lost(why.clone());
        }
    }
}
