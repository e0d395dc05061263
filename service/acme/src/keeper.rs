//! RFC 8555 §7.4: keeps a certificate for each name, by a thread that sleeps until something is due.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bolide_connection::{Identity, Issued, RenewalFacts};

use crate::event::Event;
use crate::failure::Failure;
use crate::limits::SLEEP_MAX;
use crate::order::OrderInputs;
use crate::responses::Responses;
use crate::schedule::{Due, Kept, time};
use crate::settings::Settings;
use crate::storage::Storage;

/// The state of a name, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameState {
    /// The name.
    pub name: String,
    /// The end of the validity of its certificate; `None`: it has none.
    pub expiry: Option<SystemTime>,
    /// When an order failed last.
    pub last_failure: Option<SystemTime>,
    /// When a certificate is ordered next.
    pub next_order: SystemTime,
    /// How many orders this process has had a certificate of.
    pub issued_count: u64,
    /// How many orders of this process failed.
    pub failed_count: u64,
}

/// Results of orders, for those who use them. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// The certificates, and those of challenges.
    pub issued: Issued,
    /// The responses to challenges by HTTP.
    pub responses: Responses,
    states: Arc<Mutex<Vec<NameState>>>,
}

impl Results {
    /// The state of all names.
    #[must_use]
    pub fn states(&self) -> Vec<NameState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No name is shown any more.
    pub fn forget(&self) {
        self.show(Vec::new());
    }

    fn show(&self, states: Vec<NameState>) {
        *self.states.lock().unwrap_or_else(PoisonError::into_inner) = states;
    }
}

/// Function to which events are reported, on the thread of the orders.
type Report = Box<dyn FnMut(&Event) + Send>;

/// Orders for the thread.
enum Command {
    Settings(Box<(Settings, Storage)>),
}

/// Keeps certificates for names. The thread ends with it, after the order that it is at.
#[derive(Debug)]
pub struct Acme {
    sender: Sender<Command>,
    /// Taken by [`Self::begin`].
    keeper: Option<Box<Keeper>>,
    /// Another process orders from now on.
    is_over: Arc<AtomicBool>,
}

impl Acme {
    /// Opens the storage and puts what is stored there into `results`. `report` gets what happens.
    ///
    /// # Errors
    ///
    /// When the storage can't be written.
    pub fn open(
        settings: Settings,
        results: &Results,
        report: impl FnMut(&Event) + Send + 'static,
    ) -> Result<Self, String> {
        let storage = Storage::open(&settings.storage, &settings.directory)?;
        let (sender, receiver) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut keeper = Keeper {
            settings,
            storage,
            results: results.clone(),
            entries: Vec::new(),
            is_over: Arc::clone(&is_over),
            receiver,
            report: Box::new(report),
        };
        keeper.load(SystemTime::now());
        Ok(Self { sender, keeper: Some(Box::new(keeper)), is_over })
    }

    /// Starts to order what is missing or due. The listeners that CAs connect to must be open.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub fn begin(&mut self) -> std::io::Result<()> {
        let Some(mut keeper) = self.keeper.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("acme".to_owned());
        thread.spawn(move || keeper.run()).map(drop)
    }

    /// Other settings count from now on, once the order that is under way has ended; names keep what is stored of them.
    ///
    /// # Errors
    ///
    /// When the storage can't be written: the old settings stay.
    pub fn change(&self, settings: Settings) -> Result<(), String> {
        let storage = Storage::open(&settings.storage, &settings.directory)?;
        // It fails once the thread has ended: then the process ends, too.
        drop(self.sender.send(Command::Settings(Box::new((settings, storage)))));
        Ok(())
    }

    /// Another process with the same storage orders from now on. An order that is under way and fails, because that process gets the
    /// CA's connections already, is not counted as a failure.
    pub fn hand_over(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// A name and what there is of it.
#[derive(Debug, Default)]
struct Entry {
    name: String,
    /// Of the certificate in force.
    facts: Option<RenewalFacts>,
    kept: Kept,
    issued_count: u64,
    failed_count: u64,
}

impl Entry {
    fn certificate_file(&self) -> String {
        format!("{}.pem", self.name)
    }

    fn kept_file(&self) -> String {
        format!("{}.json", self.name)
    }

    /// Forgets the schedule: another CA, or another storage, counts alone.
    fn forget(&mut self) {
        (self.facts, self.kept) = (None, Kept::default());
    }

    /// How long the certificate in force is valid from now on.
    fn valid(&self, now: SystemTime) -> Option<Duration> {
        self.facts.as_ref()?.not_after.duration_since(now).ok()
    }
}

/// The thread's own.
struct Keeper {
    settings: Settings,
    storage: Storage,
    results: Results,
    entries: Vec<Entry>,
    is_over: Arc<AtomicBool>,
    receiver: Receiver<Command>,
    report: Report,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keeper").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Keeper {
    /// Reads what is stored of the names of the settings, and keeps what is known of those that had an entry.
    fn load(&mut self, now: SystemTime) {
        let mut before = std::mem::take(&mut self.entries);
        for name in &self.settings.names {
            let known = before.iter().position(|entry| entry.name == *name);
            let fresh = || Entry { name: name.clone(), ..Entry::default() };
            self.entries.push(known.map_or_else(fresh, |at| before.swap_remove(at)));
        }
        for at in 0..self.entries.len() {
            self.load_entry(at, now);
        }
        self.show();
    }

    /// Reads what is stored of a name. What can't be used is as if it were not there, and what is in memory stays where it is newer,
    /// for it may not have been written.
    fn load_entry(&mut self, at: usize, now: SystemTime) {
        let entry = &mut self.entries[at];
        let stored = self.storage.read(&entry.certificate_file()).ok().flatten();
        let stored = stored.and_then(|pem| Identity::from_pem(&pem, &pem).ok());
        let stored = stored.filter(|stored| stored.dns_names().contains(&entry.name));
        let facts = stored.as_ref().and_then(Identity::renewal_facts);
        let end = entry.facts.as_ref().map(|facts| facts.not_after);
        let is_newer = |facts: &RenewalFacts| facts.not_after > now && Some(facts.not_after) > end;
        let facts = facts.filter(is_newer);
        let is_adopted = facts.is_some();
        if let (Some(facts), Some(stored)) = (facts, stored) {
            self.results.issued.set(&entry.name, &stored);
            entry.facts = Some(facts);
        }
        let kept = self.storage.read(&entry.kept_file()).ok().flatten();
        let kept = kept.and_then(|text| serde_json::from_slice::<Kept>(&text).ok());
        let kept = kept.unwrap_or_default().after_restart(now);
        if is_adopted || kept.last_failure >= entry.kept.last_failure {
            entry.kept = kept;
        }
    }

    /// Does what is due until nothing waits for it.
    fn run(&mut self) {
        loop {
            let wait = if self.is_over.load(Ordering::Acquire) { SLEEP_MAX } else { self.work() };
            match self.receiver.recv_timeout(wait) {
                Ok(Command::Settings(new)) => {
                    if new.0.directory != self.settings.directory
                        || new.0.storage != self.settings.storage
                    {
                        self.entries.iter_mut().for_each(Entry::forget);
                    }
                    (self.settings, self.storage) = *new;
                    self.load(SystemTime::now());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what is most overdue, if something is. Returns how long there is nothing to do.
    fn work(&mut self) -> Duration {
        let due = |(at, entry): (usize, &Entry)| {
            let (time, due) = entry.kept.due(entry.facts.as_ref());
            (time, at, due)
        };
        let first =
            self.entries.iter().enumerate().map(due).min_by_key(|(time, at, _)| (*time, *at));
        let Some((time, at, due)) = first else { return SLEEP_MAX };
        if let Ok(wait) = time.duration_since(SystemTime::now())
            && !wait.is_zero()
        {
            return wait.min(SLEEP_MAX);
        }
        match due {
            Due::Look => self.look(at),
            Due::Order => self.order(at),
        }
        self.show();
        Duration::ZERO
    }

    fn inputs(&self) -> OrderInputs<'_> {
        let Self { settings, storage, results, .. } = self;
        let (issued, responses) = (&results.issued, &results.responses);
        OrderInputs { settings, storage, issued, responses }
    }

    /// Asks the CA when to renew.
    fn look(&mut self, at: usize) {
        // Asking may make an account and writes what is kept: no other process or thread does so meanwhile.
        let _lock = self.storage.lock();
        let Some(facts) = &self.entries[at].facts else { return };
        // Without it, two thirds of the lifetime count: that is not worth a line.
        let suggestion = self.inputs().suggestion(facts).ok();
        let entry = &mut self.entries[at];
        entry.kept.looked(SystemTime::now(), suggestion, chance());
        // What can't be written is asked for again by the next process.
        drop(self.keep(at));
    }

    /// Orders a certificate, unless another process has done so.
    fn order(&mut self, at: usize) {
        let lock = self.storage.lock();
        let now = SystemTime::now();
        let before = self.entries[at].facts.clone();
        if lock.is_ok() {
            self.load_entry(at, now);
        }
        let entry = &self.entries[at];
        let (due, what) = entry.kept.due(entry.facts.as_ref());
        if due > now || what != Due::Order {
            if entry.facts != before
                && let Some(valid) = entry.valid(now)
            {
                let event = Event::Adopted { name: entry.name.clone(), valid };
                self.tell(&event);
            }
            return;
        }
        let result = match &lock {
            Ok(_) => self.inputs().order(&entry.name, entry.facts.as_ref()),
            Err(error) => Err(Failure::new(format!("the storage can't be locked: {error}"))),
        };
        match result {
            Ok(whole) => self.succeeded(at, &whole),
            Err(failure) if !self.is_over.load(Ordering::Acquire) => self.failed(at, failure),
            Err(_) => {}
        }
    }

    /// Puts a certificate in force and stores it.
    fn succeeded(&mut self, at: usize, whole: &str) {
        // It was checked when it came.
        let Ok(identity) = Identity::from_pem(whole.as_bytes(), whole.as_bytes()) else { return };
        let entry = &mut self.entries[at];
        self.results.issued.set(&entry.name, &identity);
        entry.facts = identity.renewal_facts();
        entry.kept.issued();
        entry.issued_count += 1;
        let file = entry.certificate_file();
        let stored = self.storage.write(&file, whole.as_bytes()).and_then(|()| self.keep(at));
        let unstored =
            stored.err().map(|error| format!("{}: {error}", self.storage.path(&file).display()));
        let (entry, now) = (&self.entries[at], SystemTime::now());
        let renewal = entry.facts.as_ref().map(|facts| entry.kept.renewal(facts));
        let renewal = renewal.and_then(|time| time.duration_since(now).ok()).unwrap_or_default();
        let (name, valid) = (entry.name.clone(), entry.valid(now).unwrap_or_default());
        self.tell(&Event::Issued { name, valid, renewal, unstored });
    }

    fn failed(&mut self, at: usize, failure: Failure) {
        let now = SystemTime::now();
        let limits = self.settings.limits;
        let entry = &mut self.entries[at];
        entry.kept.failed(now, failure.what.clone(), &limits, failure.wait, chance());
        entry.failed_count += 1;
        // If it can't be written, only a restart orders sooner.
        drop(self.keep(at));
        let entry = &self.entries[at];
        let (next, _) = entry.kept.due(None);
        let event = Event::Failed {
            name: entry.name.clone(),
            what: failure.what,
            failures: entry.kept.failures,
            retry: next.duration_since(now).unwrap_or_default(),
            valid: entry.valid(now),
        };
        self.tell(&event);
    }

    /// Writes what is kept of a name.
    fn keep(&self, at: usize) -> std::io::Result<()> {
        let entry = &self.entries[at];
        self.storage.write(&entry.kept_file(), &serde_json::to_vec(&entry.kept)?)
    }

    /// Reports what has happened, once the states show it.
    fn tell(&mut self, event: &Event) {
        self.show();
        (self.report)(event);
    }

    /// Shows the states to those who watch.
    fn show(&self) {
        let state = |entry: &Entry| NameState {
            name: entry.name.clone(),
            expiry: entry.facts.as_ref().map(|facts| facts.not_after),
            last_failure: entry.kept.last_failure.as_ref().map(|(at, _)| time(*at)),
            next_order: entry.kept.order(entry.facts.as_ref()),
            issued_count: entry.issued_count,
            failed_count: entry.failed_count,
        };
        self.results.show(self.entries.iter().map(state).collect());
    }
}

/// A random number from 0 to 1; a half without randomness.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
