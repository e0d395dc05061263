//! Exchanges of one connection: those that it carries, as the upstream's side sees them.

use std::fmt;
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_client::{ConnectionKey, Ending, Established, Orders, Owner};
use bolide_semantics::{
    ConnectionEvent, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Head, HeadKind, Misuse,
    RequestHead,
};
use bolide_server::{Agenda, Bytes, Method};
use http::Version;
use smallvec::SmallVec;

use crate::failure::{Failure, Repeat};
use crate::limits::INTERIM_WAITING_COUNT;
use crate::shared_exchange::{ConnectionTasks, Flow, Next, Shared, SharedExchange};
use crate::tunnels::Wish;
use crate::worker::{Dial, Worker};

/// Above this much of a body, what was consumed is told before the other side asks, in bytes.
pub(crate) const TELL_BYTES: usize = 32 * 1024;

/// The exchanges of one connection.
#[derive(Debug)]
pub(crate) struct UpstreamExchanges {
    pub(crate) worker: Rc<Worker>,
    pub(crate) upstream: usize,
    pub(crate) tasks: Rc<ConnectionTasks>,
    key: ConnectionKey,
    is_ready: bool,
    /// It was told to end.
    is_ending: bool,
    /// The time of its last turn.
    pub(crate) now: Instant,
    /// By rising number.
    open: Vec<(ExchangeId, Shared)>,
    /// Requests for tunnels, until it is known whether the upstream takes any.
    held: Vec<Shared>,
    /// Nothing is overdue before this time.
    next_due: Option<Instant>,
    /// Exchanges whose client's side has something to look at.
    woken: Vec<Shared>,
}

impl UpstreamExchanges {
    pub(crate) fn new(
        worker: Rc<Worker>,
        upstream: usize,
        key: ConnectionKey,
        tasks: Rc<ConnectionTasks>,
        now: Instant,
    ) -> Self {
        Self {
            worker,
            upstream,
            tasks,
            key,
            is_ready: false,
            is_ending: false,
            now,
            open: Vec::new(),
            held: Vec::new(),
            next_due: None,
            woken: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.held.is_empty() && self.tasks.inbox.borrow().is_empty()
    }

    /// Wakes the client's sides that something has come for.
    pub(crate) fn wake_all(&mut self, agenda: &mut Agenda) {
        for state in self.woken.drain(..) {
            state.borrow_mut().wake(agenda);
        }
    }

    fn find(&self, id: ExchangeId) -> Option<usize> {
        self.open.binary_search_by_key(&id, |(open, _)| *open).ok()
    }

    fn arm(&mut self, due: Instant) {
        self.next_due = Some(self.next_due.map_or(due, |known| known.min(due)));
    }

    /// An exchange is no longer on this connection.
    fn remove(&mut self, at: usize) -> Shared {
        let (_, state) = self.open.remove(at);
        self.worker.backends.borrow_mut()[self.upstream].pool.done(self.key);
        state
    }

    fn fail(&mut self, at: usize, mut failure: Failure) {
        let state = self.remove(at);
        {
            let mut state = state.borrow_mut();
            if state.answered {
                failure.repeat = Repeat::Never;
            }
            state.fail(failure);
        }
        self.woken.push(state);
    }

    /// A client's side has left something, or wants to be sent.
    fn look_at(&mut self, state: Shared, orders: &mut Orders<'_>) {
        let (exchange, abandoned) = {
            let mut state = state.borrow_mut();
            state.carrier.listed = false;
            let here = state
                .carrier
                .connection
                .as_ref()
                .is_some_and(|connection| Rc::ptr_eq(connection, &self.tasks));
            if !here {
                return;
            }
            (state.carrier.exchange, state.client.abandoned)
        };
        match (exchange, abandoned) {
            (None, true) => {
                self.held.retain(|held| !Rc::ptr_eq(held, &state));
                self.worker.backends.borrow_mut()[self.upstream].pool.done(self.key);
            }
            (None, false) if self.held.iter().any(|held| Rc::ptr_eq(held, &state)) => {}
            (None, false) => self.begin(state, orders),
            (Some(id), true) => {
                orders.abort(id);
                if let Some(at) = self.find(id) {
                    self.remove(at);
                }
            }
            (Some(id), false) => {
                {
                    let state = &mut *state.borrow_mut();
                    let taken = state.down.taken();
                    if taken > 0 {
                        orders.consumed(id, taken);
                        state.moved = Some(orders.now());
                    }
                }
                self.send_body(id, &state, orders);
            }
        }
    }

    /// Sends a request.
    fn begin(&mut self, shared: Shared, orders: &mut Orders<'_>) {
        let worker = Rc::clone(&self.worker);
        let mut state = shared.borrow_mut();
        state.waits = None;
        state.carrier.connection = Some(Rc::clone(&self.tasks));
        let is_multiplexed = self.tasks.is_multiplexed.get();
        let goes_over = |wish: &Wish| !is_multiplexed || wish.over_http2().is_some();
        state.switch.wish_sent = state.switch.wish.as_deref().is_some_and(goes_over);
        if state.switch.wish_sent {
            match orders.takes_protocols() {
                None => {
                    drop(state);
                    return self.held.push(shared);
                }
                Some(false) => {
                    let backend = &mut worker.backends.borrow_mut()[self.upstream];
                    backend.refuses_tunnels = true;
                    state.fail(match backend.for_tunnels {
                        Some(_) => Failure::OVER_HTTP1,
                        None => Failure::NO_EXTENDED_CONNECT,
                    });
                    drop(state);
                    backend.pool.done(self.key);
                    return self.woken.push(shared);
                }
                Some(true) => {}
            }
        }
        match send(&worker, self.upstream, &state, is_multiplexed, orders) {
            Ok(id) => {
                worker.counters(self.upstream).requests.count();
                state.carrier.exchange = Some(id);
                state.moved = Some(orders.now());
                state.came_to(|times| &mut times.sent, orders.now());
                drop(state);
                self.open.push((id, Rc::clone(&shared)));
                self.arm(orders.now() + worker.limits().times.first_byte_timeout);
                self.send_body(id, &shared, orders);
            }
            Err(Misuse::Refused) if orders.available() == 0 => {
                // The connection has come to its end since it was chosen: another takes the request.
                state.carrier.connection = None;
                drop(state);
                let backend = &mut worker.backends.borrow_mut()[self.upstream];
                backend.pool.set_room(self.key, 0);
                backend.pool.done(self.key);
                let key = backend.pool.wait_first(Rc::clone(&shared), orders.now());
                shared.borrow_mut().waits = Some(key);
            }
            Err(misuse) => {
                let refused = misuse == Misuse::Refused;
                state.fail(if refused { Failure::NO_TUNNEL } else { Failure::UNSENDABLE });
                drop(state);
                worker.backends.borrow_mut()[self.upstream].pool.done(self.key);
                self.woken.push(shared);
            }
        }
    }

    /// Sends what there is of the request's body.
    fn send_body(&mut self, id: ExchangeId, shared: &Shared, orders: &mut Orders<'_>) {
        let state = &mut *shared.borrow_mut();
        if state.switch.wish_sent && !state.switch.tunnel {
            return;
        }
        let had = state.up.taken_bytes;
        while !state.up.blocked
            && let Some(next) = state.up.next()
        {
            state.body_left = true;
            state.moved = Some(orders.now());
            let sent = match next {
                Next::Piece(piece, end) => orders.send_data(id, piece, end),
                Next::Trailers(head) => orders.send_trailers(id, &refs(&head)).map(|()| true),
            };
            // What the upstream needs no more is dropped; its own event says why.
            state.up.blocked = !sent.unwrap_or(true);
        }
        let taken = state.up.taken_bytes;
        if taken > had {
            state.carrier.unwritten = orders.unwritten_bytes(id);
        }
        if taken > had && (!state.up.ended || taken >= TELL_BYTES) {
            self.woken.push(Rc::clone(shared));
        }
        if !state.up.is_empty() {
            state.up.settle();
        }
    }

    /// The final head of a response stands in the orders.
    fn answered(&mut self, at: usize, end: End, orders: &mut Orders<'_>) {
        let (id, shared) = (self.open[at].0, Rc::clone(&self.open[at].1));
        let sent = shared.borrow().times.and_then(|times| times.sent);
        let took = sent.map_or(Duration::ZERO, |sent| orders.now().saturating_duration_since(sent));
        self.worker.succeeded(self.upstream, took);
        let multiplexed = self.tasks.is_multiplexed.get();
        let misread = {
            let state = &mut *shared.borrow_mut();
            state.moved = Some(orders.now());
            state.answered = true;
            state.came_to(|times| &mut times.head, orders.now());
            let asked = state.switch.wish.as_ref().filter(|_| state.switch.wish_sent);
            let misread = asked.is_some_and(|wish| wish.is_misread(orders.head(), multiplexed));
            match asked.filter(|wish| wish.is_granted(orders.head(), multiplexed)) {
                Some(wish) => {
                    wish.answer(orders.head(), &mut state.response_head);
                    state.switch.tunnel = true;
                    if state.up.finished {
                        state.up = Flow::default();
                    }
                }
                None => state.response_head.forward(orders.head(), |_| true),
            }
            state.response = Some(end);
            if end == End::Yes {
                state.down = Flow::none();
            }
            misread
        };
        if misread {
            orders.abort(id);
            return self.fail(at, Failure::NO_TUNNEL);
        }
        self.woken.push(Rc::clone(&shared));
        if end == End::Yes {
            return self.complete(at, orders);
        }
        let limits = self.worker.limits();
        let is_tunnel = shared.borrow().switch.tunnel;
        let pause =
            if is_tunnel { limits.times.tunnel_timeout } else { limits.times.pause_timeout };
        self.arm(orders.now() + pause);
        if is_tunnel {
            if !multiplexed {
                self.worker.backends.borrow_mut()[self.upstream].pool.tunnel(self.key);
                self.ask_for_dials();
            }
            self.send_body(id, &shared, orders);
        }
    }

    fn arrived(&mut self, at: usize, data: Bytes, end: End, orders: &mut Orders<'_>) {
        {
            let state = &mut *self.open[at].1.borrow_mut();
            state.moved = Some(orders.now());
            state.down.push(data, end);
        }
        self.woken.push(Rc::clone(&self.open[at].1));
        if end == End::Yes {
            self.complete(at, orders);
        }
    }

    fn trailers_arrived(&mut self, at: usize, orders: &mut Orders<'_>) {
        {
            let state = &mut *self.open[at].1.borrow_mut();
            let mut trailers = Box::<Head>::default();
            trailers.clear(HeadKind::Trailers, Version::HTTP_11);
            trailers.forward(orders.head(), |_| true);
            state.down.trailers = Some(trailers);
            state.down.ended = true;
        }
        self.woken.push(Rc::clone(&self.open[at].1));
        self.complete(at, orders);
    }

    /// The response is complete. Nothing waits for what is left of the request.
    fn complete(&mut self, at: usize, orders: &mut Orders<'_>) {
        let id = self.open[at].0;
        let state = self.remove(at);
        let mut state = state.borrow_mut();
        if !state.up.finished {
            // RFC 9110 §9.3.6: with one side of a tunnel the other ends, in order if it can.
            let ended = state.switch.tunnel && orders.send_data(id, Bytes::new(), End::Yes).is_ok();
            // A connection of HTTP/1.1 ends if the request is not complete as it was framed.
            if !ended {
                orders.abort(id);
            }
        }
        state.came_to(|times| &mut times.end, orders.now());
        state.carrier.connection = None;
        state.carrier.exchange = None;
    }

    fn informed(&mut self, at: usize, orders: &Orders<'_>) {
        {
            let state = &mut *self.open[at].1.borrow_mut();
            if state.interim.len() < INTERIM_WAITING_COUNT {
                let mut head = Head::default();
                head.forward(orders.head(), |_| true);
                state.interim.push_back(head);
            }
            state.moved = Some(orders.now());
        }
        self.woken.push(Rc::clone(&self.open[at].1));
    }

    /// Ends the exchanges that the upstream has let wait for too long.
    #[cold]
    fn end_late(&mut self, orders: &mut Orders<'_>) {
        let now = orders.now();
        self.next_due = None;
        let mut at = 0;
        while at < self.open.len() {
            let (timeout, waits, moved, answered) = {
                let (id, state) = &self.open[at];
                let mut state = state.borrow_mut();
                // An upstream that takes what waits to be written moves, even if it was given all.
                let unwritten = orders.unwritten_bytes(*id);
                if unwritten < state.carrier.unwritten {
                    state.moved = Some(now);
                }
                state.carrier.unwritten = unwritten;
                let limits = self.worker.limits();
                let timeout = match (state.switch.tunnel, state.answered) {
                    (true, _) => limits.times.tunnel_timeout,
                    (_, true) => limits.times.pause_timeout,
                    (_, false) => limits.times.first_byte_timeout,
                };
                (timeout, waits_for_upstream(&state), state.moved.unwrap_or(now), state.answered)
            };
            if waits && moved + timeout <= now {
                orders.abort(self.open[at].0);
                self.fail(at, if answered { Failure::STALLED } else { Failure::SILENT });
                continue;
            }
            self.arm(if waits { moved + timeout } else { now + timeout });
            at += 1;
        }
    }

    /// Takes requests that wait, as long as there is room, and says how much is left.
    fn take_waiting(&mut self, orders: &mut Orders<'_>) {
        loop {
            let room = match (self.tasks.is_multiplexed.get(), self.open.is_empty()) {
                _ if self.tasks.is_leaving.get() => 0,
                (true, _) => orders.available(),
                (false, true) => orders.available().min(1),
                (false, false) => 0,
            };
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            let next = {
                let pool = &mut self.worker.backends.borrow_mut()[self.upstream].pool;
                pool.set_room(self.key, room);
                pool.next_waiting(self.key)
            };
            let Some(state) = next else { return };
            self.begin(state, orders);
        }
    }

    /// Connections can only be asked for from the clients' sides: one that waits for one does it.
    fn ask_for_dials(&mut self) {
        let backends = self.worker.backends.borrow();
        let pool = &backends[self.upstream].pool;
        if pool.dials_wanted() > 0
            && let Some(first) = pool.first_waiting()
        {
            self.woken.push(Rc::clone(first));
        }
    }
}

/// Returns whether it is the upstream's turn to move.
fn waits_for_upstream(state: &SharedExchange) -> bool {
    if state.switch.tunnel {
        true
    } else if state.answered {
        state.down.is_empty()
    } else {
        state.up.finished || state.up.blocked || state.switch.wish_sent
    }
}

/// Sends the head of a request.
fn send(
    worker: &Worker,
    upstream: usize,
    state: &SharedExchange,
    is_multiplexed: bool,
    orders: &mut Orders<'_>,
) -> Result<ExchangeId, Misuse> {
    let backends = worker.backends.borrow();
    let backend = &backends[upstream];
    let head = &state.request;
    let given = head.authority().filter(|host| !host.is_empty() && !worker.settings.rewrites_host);
    // Over HTTP/2, a wish is an extended CONNECT.
    let protocol = state.asked().filter(|_| is_multiplexed).and_then(Wish::over_http2);
    let is_connect = protocol.is_some();
    let ends = |field: &FieldRef<'_>| match field.known {
        Some(FieldName::Upgrade) => is_multiplexed,
        Some(FieldName::SecWebsocketKey) => is_connect,
        // What follows the head is no content: it is the tunnel, or nothing.
        Some(FieldName::ContentLength) => state.switch.wish_sent,
        _ => false,
    };
    let mut fields = refs(head);
    fields.retain(|field| !ends(field));
    let outgoing = RequestHead {
        method: if is_connect { &Method::CONNECT } else { head.method() },
        scheme: if backend.is_https { "https" } else { "http" },
        authority: given.unwrap_or(&backend.authority),
        path: head.path_and_query(),
        protocol,
        fields: &fields,
    };
    let end = if state.up.finished && !is_connect { End::Yes } else { End::No };
    orders.send_request(&outgoing, end)
}

/// The fields of most heads fit into so many places on the stack.
const FIELDS_COUNT: usize = 16;

/// The fields of a head, as they are sent on.
#[inline]
pub(crate) fn refs(head: &Head) -> SmallVec<[FieldRef<'_>; FIELDS_COUNT]> {
    head.fields().map(FieldRef::from).collect()
}

impl Owner for UpstreamExchanges {
    fn ready(&mut self, established: &Established, _: &mut Orders<'_>) {
        self.is_ready = true;
        let multiplexes = established.multiplexes();
        self.tasks.is_multiplexed.set(multiplexes);
        self.worker.counters(self.upstream).connections.count();
        let backend = &mut self.worker.backends.borrow_mut()[self.upstream];
        backend.refuses_tunnels = false;
        backend.dial_succeeded();
        backend.pool.ready(self.key, multiplexes);
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let Some(at) = self.find(id) else {
            // It was given up on this side; what still comes for it is not held back.
            if let ExchangeEvent::Data(data, _) = event {
                orders.consumed(id, data.len());
            }
            return;
        };
        match event {
            ExchangeEvent::Head(end) => self.answered(at, end, orders),
            ExchangeEvent::Data(data, end) => self.arrived(at, data, end, orders),
            ExchangeEvent::Trailers => self.trailers_arrived(at, orders),
            ExchangeEvent::Informational => self.informed(at, orders),
            ExchangeEvent::Sendable => {
                let state = Rc::clone(&self.open[at].1);
                state.borrow_mut().up.blocked = false;
                self.send_body(id, &state, orders);
            }
            ExchangeEvent::Aborted(reason) => {
                let failure = Failure::aborted(&reason);
                self.fail(at, failure);
            }
            // Only servers reject.
            ExchangeEvent::Rejected(_) => {}
        }
    }

    fn connection(&mut self, event: ConnectionEvent, _: &mut Orders<'_>) {
        if let ConnectionEvent::Draining { .. } = event {
            self.worker.backends.borrow_mut()[self.upstream].pool.set_room(self.key, 0);
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        let mut inbox = mem::take(&mut *self.tasks.inbox.borrow_mut());
        for state in inbox.drain(..) {
            self.look_at(state, orders);
        }
        // Nothing was left meanwhile: the list keeps its memory.
        *self.tasks.inbox.borrow_mut() = inbox;
        if orders.takes_protocols().is_some() {
            for state in mem::take(&mut self.held) {
                self.begin(state, orders);
            }
        }
        if self.next_due.is_some_and(|due| due <= orders.now()) {
            self.end_late(orders);
        }
        self.take_waiting(orders);
        self.ask_for_dials();
        let is_to_end = self.worker.draining.get() || self.tasks.is_leaving.get();
        if is_to_end && self.is_idle() && !self.is_ending {
            self.is_ending = true;
            orders.shut_down();
            self.worker.backends.borrow_mut()[self.upstream].pool.set_room(self.key, 0);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_due
    }

    fn ended(&mut self, ending: &Ending) {
        while !self.open.is_empty() {
            self.fail(self.open.len() - 1, Failure::ended(ending, true));
        }
        let left = mem::take(&mut *self.tasks.inbox.borrow_mut());
        for state in left.into_iter().chain(mem::take(&mut self.held)) {
            let is_here = {
                let mut state = state.borrow_mut();
                state.carrier.listed = false;
                let is_here = state.carrier.connection.take().is_some() && !state.client.abandoned;
                if is_here {
                    state.fail(Failure::ended(ending, false));
                }
                is_here
            };
            if is_here {
                self.woken.push(state);
            }
        }
        if self.is_ready {
            self.worker.backends.borrow_mut()[self.upstream].pool.closed(self.key);
            self.ask_for_dials();
        } else {
            let failure = &Failure::ended(ending, false);
            let detail: &dyn fmt::Display = match (&ending.tls, ending.socket) {
                (Some(tls), _) => tls,
                (None, Some(kind)) => &kind.to_string(),
                (None, None) => &ending.reason.what,
            };
            let (upstream, key, to) = (self.upstream, self.key, &self.tasks.to);
            let dial = Dial { upstream, key, to, failure, now: self.now };
            self.woken.extend(self.worker.dial_ended(&dial, detail));
        }
    }
}
