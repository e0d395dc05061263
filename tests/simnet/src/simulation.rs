//! The driver: one worker, its service, and the clients.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bolide_eventloop::{Destination, Limits, Mailbox, Service, Stats, Worker};

use crate::client::{Client, ClientId};
use crate::faults::Faults;
use crate::kernel::{Around, SimKernel};
use crate::network::Network;
use crate::random::Random;

/// Turns of the loop without any time passing, in number, after which it is said to spin.
const SPIN_TURNS_COUNT: u32 = 100_000;

/// The variable that names one seed to run instead of all.
const SEED_VARIABLE: &str = "SIMNET_SEED";

/// A worker in a network of which everything follows from a seed.
pub struct Simulation<S: Service> {
    worker: Worker<SimKernel, S>,
    network: Rc<RefCell<Network>>,
    at_rest: Rc<Cell<bool>>,
    start: Instant,
    ended: bool,
    /// Turns since time last moved.
    turns: u32,
}

impl<S: Service> Simulation<S> {
    /// A [rough](Faults::rough) network of `seed`, and one listener.
    pub fn new(seed: u64, make: impl FnOnce(Mailbox<S::Message>) -> S) -> Self {
        let faults = Faults::rough(&mut Random::new(seed));
        Self::with(seed, faults, Limits::default(), make)
    }

    /// A network with these faults, and a worker with these limits.
    pub fn with(
        seed: u64,
        faults: Faults,
        limits: Limits,
        make: impl FnOnce(Mailbox<S::Message>) -> S,
    ) -> Self {
        let network = Rc::new(RefCell::new(Network::new(seed, faults)));
        let at_rest = Rc::new(Cell::new(false));
        let mut kernel = SimKernel::new(Rc::clone(&network), Rc::clone(&at_rest));
        let start = bolide_eventloop::Kernel::now(&mut kernel);
        let mut worker = Worker::new(kernel, limits, make);
        let listener = worker.kernel().listener();
        worker.listen(listener, 0).expect("the simulated poller never fails");
        Self { worker, network, at_rest, start, ended: false, turns: 0 }
    }

    /// Calls `around` for all that the network does in place of a kernel and far ends, so that it can be told from the worker.
    pub fn around_network(&mut self, around: Around) {
        self.worker.kernel().around.set(around);
    }

    /// One more listener; returns its number (the first has number 0).
    pub fn listen(&mut self) -> usize {
        let listener = self.worker.kernel().listener();
        let index = self.network.borrow().backlogs.len() - 1;
        self.worker.listen(listener, index).expect("the simulated poller never fails");
        index
    }

    /// A client that connects now, to the first listener.
    pub fn connect(&mut self, client: impl Client + 'static) -> ClientId {
        self.connect_after(Duration::ZERO, 0, client)
    }

    /// A client that connects to `listener` after `delay`.
    pub fn connect_after(
        &mut self,
        delay: Duration,
        listener: usize,
        client: impl Client + 'static,
    ) -> ClientId {
        self.network.borrow_mut().connect(delay, listener, Box::new(client))
    }

    /// Answers the connections that the worker makes to `to`, each by a far end that `make` makes.
    /// Where there is no far end, connections are refused.
    pub fn answer<C: Client + 'static>(
        &mut self,
        to: Destination,
        mut make: impl FnMut() -> C + 'static,
    ) {
        let far_end = Box::new(move || Box::new(make()) as Box<dyn Client>);
        self.network.borrow_mut().far_ends.insert(to, far_end);
    }

    /// One turn of the worker. `false`: its shutdown is complete, or nothing will ever happen again.
    pub fn step(&mut self, at_most: Option<Duration>) -> bool {
        if self.ended {
            return false;
        }
        let before = self.now();
        let goes_on = self.worker.step(at_most).expect("the simulated poller never fails");
        self.turns = if self.now() > before { 0 } else { self.turns + 1 };
        assert!(self.turns < SPIN_TURNS_COUNT, "the worker spins at {:?}", self.now());
        self.ended = !goes_on;
        goes_on && !self.at_rest.get()
    }

    /// Runs until `done`, or for `at_most`, or until nothing will ever happen again. Whether it is
    /// done.
    pub fn run_until(&mut self, at_most: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = self.now() + at_most;
        while !done(self) {
            let now = self.now();
            if now >= until || !self.step(Some(until - now)) {
                return done(self);
            }
        }
        true
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Ends the worker with this patience, and runs until it has ended.
    pub fn shut_down(&mut self, patience: Duration) {
        self.worker.mailbox().shut_down(self.start + self.now() + patience);
        let limit = patience + Duration::from_secs(60);
        self.run_until(limit, |simulation| simulation.ended);
        assert!(self.ended, "the worker does not end");
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> Duration {
        self.network.borrow().now
    }

    /// Everything that a client has read.
    pub fn received(&self, client: ClientId) -> Vec<u8> {
        self.network.borrow().lines[client.0].client.received.clone()
    }

    /// Returns whether a client has seen the end of the server's side.
    pub fn saw_eof(&self, client: ClientId) -> bool {
        self.network.borrow().lines[client.0].client.eof
    }

    /// Returns whether a client's connection was reset.
    pub fn was_reset(&self, client: ClientId) -> bool {
        self.network.borrow().lines[client.0].client.reset
    }

    /// Returns whether the worker has closed a client's connection.
    pub fn was_closed(&self, client: ClientId) -> bool {
        self.network.borrow().lines[client.0].closed
    }

    /// Returns what the worker has counted.
    pub fn stats(&self) -> Stats {
        self.worker.stats()
    }

    /// The service.
    pub fn service(&self) -> &S {
        self.worker.service()
    }

    /// Sends to the worker's sessions.
    pub fn mailbox(&self) -> Mailbox<S::Message> {
        self.worker.mailbox()
    }

    /// How many calls the worker has made on sockets and listeners.
    pub fn calls(&self) -> u64 {
        self.network.borrow().calls
    }

    /// A number that two runs share if the same bytes moved in the same order.
    pub fn digest(&self) -> u64 {
        self.network.borrow().digest
    }

    /// Changes the faults from here on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.network.borrow_mut().faults = faults;
    }
}

/// Runs `check` for each seed, one on each core at a time, or only for the one that the environment variable `SIMNET_SEED`
/// names. The seed of a failure is printed.
pub fn for_each_seed(seeds: Range<u64>, check: impl Fn(u64) + Sync) {
    let only = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seeds = Mutex::new(only.map_or(seeds, |seed: u64| seed..seed + 1));
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(seed) = next() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(seed))) {
                eprintln!("failed with {SEED_VARIABLE}={seed}");
                // The others need not go on.
                seeds.lock().unwrap_or_else(PoisonError::into_inner).start = u64::MAX;
                resume_unwind(panic);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}
