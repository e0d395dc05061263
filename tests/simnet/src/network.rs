//! Events under way, and when they arrive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bolide_eventloop::Destination;

use crate::client::{Client, ClientId, Wire};
use crate::faults::Faults;
use crate::line::Line;
use crate::random::Random;

/// Event at a point in time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A client connects to the listener.
    Connect { line: usize, listener: usize },
    /// A connection of the worker's is established.
    Establish { line: usize },
    /// It is refused.
    Refuse { line: usize },
    /// Bytes reach the worker's side.
    Arrive { line: usize, bytes: Vec<u8> },
    /// FIN does.
    FinArrives { line: usize },
    /// Bytes reach the client.
    Deliver { line: usize, bytes: Vec<u8> },
    /// FIN does.
    FinDelivered { line: usize },
    /// A reset reaches the client, ahead of what else is under way.
    ResetDelivered { line: usize },
    /// A reset reaches the worker's side.
    ResetArrives { line: usize },
    /// Room that the client has made by reading in the worker's buffer.
    Room { line: usize, bytes: usize },
    /// The poller reports the line once more, as it must after a call that came short for no reason.
    Edge { line: usize },
    /// The same for a listener.
    ListenerEdge { listener: usize },
    /// A client asked to be called.
    Wake { line: usize },
}

/// The backlog of a listener.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) key: Option<u64>,
    pub(crate) lines: VecDeque<usize>,
}

/// Maker of the far end of a connection that the worker asked for.
pub(crate) type FarEnd = Box<dyn FnMut() -> Box<dyn Client>>;

/// Everything that is not the worker.
pub(crate) struct Network {
    pub(crate) now: Duration,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) lines: Vec<Line>,
    pub(crate) backlogs: Vec<Backlog>,
    /// Far ends by address.
    pub(crate) far_ends: BTreeMap<Destination, FarEnd>,
    clients: Vec<Option<Box<dyn Client>>>,
    /// Events by their time, those of one time in the order in which they were scheduled: segments that none may overtake often
    /// arrive together.
    queue: BTreeMap<Duration, VecDeque<Event>>,
    /// Lines that the poller has to report, and listeners.
    pub(crate) lines_ready: BTreeSet<usize>,
    pub(crate) listeners_ready: BTreeSet<usize>,
    /// How many calls the worker has made.
    pub(crate) calls: u64,
    /// Changes with everything that happens: equal for equal runs.
    pub(crate) digest: u64,
}

impl Network {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            now: Duration::ZERO,
            random: Random::new(seed),
            faults,
            lines: Vec::new(),
            backlogs: Vec::new(),
            far_ends: BTreeMap::new(),
            clients: Vec::new(),
            queue: BTreeMap::new(),
            lines_ready: BTreeSet::new(),
            listeners_ready: BTreeSet::new(),
            calls: 0,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Mixes a fact into the digest.
    pub(crate) fn note(&mut self, fact: &[u8]) {
        for byte in fact {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn schedule(&mut self, at: Duration, event: Event) {
        self.queue.entry(at).or_default().push_back(event);
    }

    fn schedule_soon(&mut self, event: Event) {
        let delay = self.random.time_within(&self.faults.delay.clone());
        self.schedule(self.now + delay, event);
    }

    /// A client that connects after `delay`.
    pub(crate) fn connect(
        &mut self,
        delay: Duration,
        listener: usize,
        client: Box<dyn Client>,
    ) -> ClientId {
        let line = self.lines.len();
        self.lines.push(Line::default());
        self.clients.push(Some(client));
        self.schedule(self.now + delay, Event::Connect { line, listener });
        ClientId(line)
    }

    /// The worker connects to `to`.
    pub(crate) fn connect_out(&mut self, to: &Destination) -> usize {
        let line = self.lines.len();
        let far_end =
            self.far_ends.get_mut(to).filter(|_| !self.random.once_in(self.faults.refusal));
        let client = far_end.map(|make| make());
        let event = match client {
            Some(_) => Event::Establish { line },
            None => Event::Refuse { line },
        };
        self.lines.push(Line { connecting: true, ..Line::default() });
        self.clients.push(client);
        self.schedule_soon(event);
        line
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.queue.first_key_value().map(|(at, _)| *at)
    }

    /// Returns whether the worker has anything to be told.
    pub(crate) fn has_ready(&self) -> bool {
        !self.lines_ready.is_empty() || !self.listeners_ready.is_empty()
    }

    /// Lets the next thing happen.
    pub(crate) fn happen(&mut self) {
        let Some(mut first) = self.queue.first_entry() else { return };
        let (at, event) = (*first.key(), first.get_mut().pop_front());
        if first.get().is_empty() {
            first.remove();
        }
        let Some(event) = event else { return };
        self.now = self.now.max(at);
        match event {
            Event::Connect { line, listener } => {
                if let Some(backlog) = self.backlogs.get_mut(listener) {
                    backlog.lines.push_back(line);
                    self.listeners_ready.insert(listener);
                    self.advance(line, true);
                } else {
                    self.reset_client(line);
                }
            }
            Event::Establish { line } => {
                self.lines[line].connecting = false;
                self.lines_ready.insert(line);
                self.advance(line, true);
            }
            Event::Refuse { line } => {
                self.lines[line].refused = true;
                self.reset_worker(line);
            }
            Event::Arrive { line, bytes } => self.arrive(line, &bytes),
            Event::FinArrives { line } => {
                self.lines[line].toward.fin_arrived = true;
                self.lines_ready.insert(line);
            }
            Event::ResetArrives { line } => self.reset_worker(line),
            Event::Deliver { line, bytes } => self.deliver(line, &bytes),
            Event::FinDelivered { line } => {
                if !self.lines[line].client.reset {
                    self.lines[line].client.eof = true;
                    self.advance(line, false);
                }
            }
            Event::ResetDelivered { line } => self.reset_client(line),
            Event::Room { line, bytes } => {
                let state = &mut self.lines[line];
                state.going -= bytes;
                if state.owed_room && state.going <= self.faults.buffer_bytes / 2 {
                    state.owed_room = false;
                    self.lines_ready.insert(line);
                }
            }
            Event::Edge { line } => {
                self.lines_ready.insert(line);
            }
            Event::ListenerEdge { listener } => {
                self.listeners_ready.insert(listener);
            }
            Event::Wake { line } => self.advance(line, false),
        }
    }

    fn arrive(&mut self, line: usize, bytes: &[u8]) {
        let state = &mut self.lines[line];
        state.toward.coming -= bytes.len();
        if state.closed {
            // The worker has closed it: the response is a reset.
            self.reset_soon(line);
        } else if !state.toward.reset_arrived {
            state.toward.arrived.extend(bytes);
            self.lines_ready.insert(line);
        }
    }

    fn deliver(&mut self, line: usize, bytes: &[u8]) {
        if !self.lines[line].client.reset {
            self.lines[line].unread.extend(bytes);
            self.advance(line, false);
        }
    }

    fn reset_worker(&mut self, line: usize) {
        let state = &mut self.lines[line];
        state.toward.reset_arrived = true;
        state.toward.arrived.clear();
        self.lines_ready.insert(line);
    }

    fn reset_client(&mut self, line: usize) {
        if !std::mem::replace(&mut self.lines[line].client.reset, true) {
            self.lines[line].client.outbox.clear();
            self.advance(line, false);
        }
    }

    /// A reset towards the client, as quick as a segment may be.
    pub(crate) fn reset_soon(&mut self, line: usize) {
        let at = self.now + *self.faults.delay.start();
        self.schedule(at, Event::ResetDelivered { line });
    }

    /// The way between fails: both ends are reset.
    pub(crate) fn sever(&mut self, line: usize) {
        if std::mem::replace(&mut self.lines[line].severed, true) {
            return;
        }
        self.schedule_soon(Event::ResetArrives { line });
        self.schedule_soon(Event::ResetDelivered { line });
    }

    /// After a call that did less than it could: the poller reports the line again.
    pub(crate) fn edge_soon(&mut self, line: usize) {
        self.schedule_soon(Event::Edge { line });
    }

    pub(crate) fn listener_edge_soon(&mut self, listener: usize) {
        self.schedule_soon(Event::ListenerEdge { listener });
    }

    /// Lets the client of a line read, and act on what it sees.
    fn advance(&mut self, line: usize, first: bool) {
        self.read(line);
        let Some(mut client) = self.clients[line].take() else { return };
        let state = &mut self.lines[line];
        let (had, had_ended) = (state.client.outbox.len(), state.client.fin);
        let mut wire = Wire { line: state, now: self.now, first, wake_at: None, resets: false };
        client.advance(&mut wire);
        let Wire { wake_at, resets, .. } = wire;
        self.clients[line] = Some(client);
        if let Some(at) = wake_at {
            self.schedule(at, Event::Wake { line });
        }
        self.read(line);
        if resets {
            self.lines[line].client.reset = true;
            self.lines[line].client.outbox.clear();
            self.schedule_soon(Event::ResetArrives { line });
        } else if self.lines[line].client.outbox.len() > had
            || self.lines[line].client.fin != had_ended
        {
            self.pump(line);
        }
    }

    /// Moves what has been delivered into the client's hands.
    fn read(&mut self, line: usize) {
        let state = &mut self.lines[line];
        if state.client.stopped || state.unread.is_empty() {
            return;
        }
        let count = state.unread.len();
        let bytes: Vec<u8> = state.unread.drain(..).collect();
        state.client.received.extend_from_slice(&bytes);
        self.note(&bytes);
        self.schedule_soon(Event::Room { line, bytes: count });
    }

    /// Sends what a client has, as far as there is room on the worker's side.
    pub(crate) fn pump(&mut self, line: usize) {
        let mut emptied = false;
        while !self.lines[line].client.outbox.is_empty() && !self.lines[line].is_cut() {
            let state = &self.lines[line];
            let room = self
                .faults
                .buffer_bytes
                .saturating_sub(state.toward.coming + state.toward.arrived.len());
            if room == 0 {
                return;
            }
            let length = self.segment(state.client.outbox.len().min(room));
            let state = &mut self.lines[line];
            let bytes: Vec<u8> = state.client.outbox.drain(..length).collect();
            state.toward.coming += length;
            emptied = state.client.outbox.is_empty();
            let sent = self.lines[line].toward.arrives_at + self.faults.sending_time(length);
            let at = self.in_order(sent);
            self.lines[line].toward.arrives_at = at;
            self.schedule(at, Event::Arrive { line, bytes });
            if self.random.once_in(self.faults.reset) {
                return self.sever(line);
            }
        }
        let state = &mut self.lines[line];
        if state.client.fin
            && !state.is_cut()
            && !std::mem::replace(&mut state.toward.fin_sent, true)
        {
            let at = self.in_order(self.lines[line].toward.arrives_at);
            self.lines[line].toward.arrives_at = at;
            self.schedule(at, Event::FinArrives { line });
        } else if emptied {
            self.schedule(self.now, Event::Wake { line });
        }
    }

    /// Sends bytes of the worker, cut into segments.
    pub(crate) fn send_down(&mut self, line: usize, mut bytes: &[u8]) {
        self.lines[line].going += bytes.len();
        while !bytes.is_empty() && !self.lines[line].is_cut() {
            let (segment, rest) = bytes.split_at(self.segment(bytes.len()));
            bytes = rest;
            let at = self.in_order(self.lines[line].delivered_at);
            self.lines[line].delivered_at = at;
            self.schedule(at, Event::Deliver { line, bytes: segment.to_vec() });
            if self.random.once_in(self.faults.reset) {
                return self.sever(line);
            }
        }
    }

    /// Sends the worker's FIN behind its bytes.
    pub(crate) fn fin_down(&mut self, line: usize) {
        if !std::mem::replace(&mut self.lines[line].ended, true) && !self.lines[line].severed {
            let at = self.in_order(self.lines[line].delivered_at);
            self.lines[line].delivered_at = at;
            self.schedule(at, Event::FinDelivered { line });
        }
    }

    fn segment(&mut self, most: usize) -> usize {
        self.random.within(self.faults.segment_bytes.clone()).min(most)
    }

    /// When a segment arrives that follows one that arrives at `last`.
    fn in_order(&mut self, last: Duration) -> Duration {
        let mut delay = self.random.time_within(&self.faults.delay.clone());
        if self.random.once_in(self.faults.stall) {
            delay += self.random.time_within(&self.faults.stall_time.clone());
        }
        last.max(self.now + delay)
    }
}
