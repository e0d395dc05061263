//! One exchange through the proxy, as the client's side sees it.

use std::rc::Rc;

use bolide_semantics::{End, HeadKind};
use bolide_server::{
    Bytes, Exchange, FieldName, Head, Io, Method, ProxyHeader, Request, StatusCode, UpstreamTimes,
    Version,
};

use crate::affinity::Leaning;
use crate::client_pools::header_for;
use crate::exchanges::{TELL_BYTES, refs};
use crate::failure::{Failure, Repeat};
use crate::outgoing::passes_in_trailers;
use crate::shared_exchange::{Next, Shared};
use crate::worker::Worker;

/// One request on its way to an upstream, and its response on the way back.
#[derive(Debug)]
pub(crate) struct ForwardedRequest {
    worker: Rc<Worker>,
    state: Shared,
    /// Upstream at which it counts as open.
    upstream: Option<usize>,
    /// Which upstream it is to go to.
    leaning: Leaning,
    /// The client to whom its connection belongs.
    client: Option<Box<ProxyHeader>>,
    is_idempotent: bool,
    /// A call of gRPC over HTTP/2: its client knows what a cancelled stream means, and a 502 tells it something else.
    is_grpc: bool,
    repeats_left: u8,
    /// The response's head has gone to the client.
    started: bool,
}

impl ForwardedRequest {
    pub(crate) fn new(worker: Rc<Worker>, state: Shared, request: &Request<'_>) -> Self {
        let leaning = worker.settings.leaning(request);
        let client = worker.settings.proxy_protocol.map(|_| Box::new(header_for(request)));
        let is_idempotent = matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        );
        let kind = request.head().get(FieldName::ContentType);
        let is_grpc = request.version() >= Version::HTTP_2
            && kind.is_some_and(|kind| kind.starts_with(b"application/grpc"));
        let (upstream, started) = (None, false);
        let repeats_left = worker.limits().retries_count;
        Self {
            worker,
            state,
            upstream,
            leaning,
            client,
            is_idempotent,
            is_grpc,
            repeats_left,
            started,
        }
    }

    /// Finds an upstream and a connection to it, or waits for one.
    fn dispatch(&mut self, avoided: Option<usize>, io: &mut Io<'_>) {
        let now = io.now();
        let picked = self.worker.backends.borrow_mut().pick(self.leaning, avoided, now);
        let Some(upstream) = picked else {
            return io.respond(Failure::FULL.response());
        };
        io.note_upstream(self.worker.settings.upstreams[upstream].name());
        let beside = {
            let backends = self.worker.backends.borrow();
            let state = self.state.borrow();
            let refuses = backends[upstream].refuses_tunnels
                && state.switch.wish.as_ref().is_some_and(|wish| wish.over_http2().is_some());
            backends[upstream].for_tunnels.filter(|_| refuses)
        };
        self.enter(beside.unwrap_or(upstream), io);
    }

    /// Finds a connection to a backend, or waits for one.
    fn enter(&mut self, shared: usize, io: &mut Io<'_>) {
        let now = io.now();
        let (upstream, called) = {
            let mut backends = self.worker.backends.borrow_mut();
            let of_client = |header: &ProxyHeader| backends.of_client(shared, header);
            let upstream = self.client.as_deref().map_or(shared, of_client);
            self.upstream = Some(upstream);
            backends.refresh(upstream);
            backends.enter(upstream);
            let may_wait = self.client.is_none() || backends.make_room(upstream);
            let backend = &mut backends[upstream];
            let mut state = self.state.borrow_mut();
            state.times = Some(UpstreamTimes::chosen_at(now));
            if let Some(tasks) = backend.pool.take() {
                state.carrier.connection = Some(Rc::clone(tasks));
                state.carrier.listed = true;
                (upstream, tasks.leave(Rc::clone(&self.state)))
            } else if may_wait && let Ok(key) = backend.pool.wait(Rc::clone(&self.state), now) {
                state.waits = Some(key);
                // The first that waits needs a connection that watches the clock for it.
                let watches = backend.pool.counts().1 == 1;
                let watcher = backend.pool.connections().find_map(|tasks| tasks.token());
                (upstream, watcher.filter(|_| watches))
            } else {
                drop(state);
                drop(backends);
                self.worker.failed(upstream, &Failure::FULL, now);
                return io.respond(Failure::FULL.response());
            }
        };
        if let Some(token) = called {
            io.outward().call(token);
        }
        self.worker.dial(upstream, io.outward(), now);
        self.worker.show(upstream);
    }

    /// It is no longer open at its upstream.
    fn leave(&mut self) -> Option<usize> {
        let upstream = self.upstream.take()?;
        self.worker.backends.borrow_mut().leave(upstream);
        self.worker.show(upstream);
        Some(upstream)
    }

    /// Has the connection look at what was left for it.
    fn call_line(&self, io: &mut Io<'_>) {
        let mut state = self.state.borrow_mut();
        if state.carrier.listed {
            return;
        }
        let Some(tasks) = state.carrier.connection.clone() else { return };
        state.carrier.listed = true;
        if let Some(token) = tasks.leave(Rc::clone(&self.state)) {
            io.outward().call(token);
        }
    }

    /// The upstream did not answer, or not to the end: asks again, answers instead, or breaks off.
    fn failed(&mut self, failure: Failure, io: &mut Io<'_>) {
        let now = io.now();
        let upstream = self.leave();
        self.state.borrow_mut().came_to(|times| &mut times.failed, now);
        self.note_times(io);
        if failure.repeat == Repeat::OverHttp1 {
            let beside = upstream.and_then(|at| self.worker.backends.borrow()[at].for_tunnels);
            return match beside {
                Some(beside) => self.enter(beside, io),
                None => io.respond(failure.response()),
            };
        }
        if let Some(upstream) = upstream {
            self.worker.failed(upstream, &failure, now);
        }
        // What came before goes on, as far as the client takes it.
        self.pump(io);
        // RFC 8441 §5, RFC 9220 §3: a connection that was reset behind a tunnel is no failure of this server.
        let cancels = failure.cancelled || self.state.borrow().switch.tunnel;
        if cancels && (self.started || self.is_grpc) {
            return io.cancel();
        }
        if self.started {
            return io.abort();
        }
        if self.may_repeat(&failure) {
            self.repeats_left -= 1;
            let avoided = upstream.map(|at| self.worker.backends.borrow()[at].upstream);
            if let Some(avoided) = avoided {
                self.worker.counters[avoided].retries.count();
            }
            return self.dispatch(avoided, io);
        }
        io.respond(failure.response());
    }

    fn may_repeat(&self, failure: &Failure) -> bool {
        let is_safe = match failure.repeat {
            Repeat::Never | Repeat::OverHttp1 => false,
            Repeat::Idempotent => self.is_idempotent,
            Repeat::Always | Repeat::Unreached => true,
        };
        is_safe
            && self.repeats_left > 0
            && !self.state.borrow().body_left
            && (failure.repeat == Repeat::Unreached
                || self.worker.backends.borrow_mut().may_repeat())
    }

    /// Passes on what has come from the upstream, as far as the client takes it.
    fn pump(&self, io: &mut Io<'_>) {
        if !self.started {
            return;
        }
        let calls = {
            let state = &mut *self.state.borrow_mut();
            while io.is_sendable()
                && let Some(next) = state.down.next()
            {
                match next {
                    Next::Piece(piece, end) => {
                        // It is sendable.
                        let _ = io.send(piece.bytes, end);
                    }
                    Next::Trailers(head) => {
                        io.finish_with_fields(&refs(&head));
                    }
                }
            }
            if !state.down.is_empty() {
                state.down.settle();
            }
            let enough = match &state.carrier.connection {
                Some(tasks) if tasks.is_multiplexed.get() => 1,
                Some(_) => TELL_BYTES,
                None => usize::MAX,
            };
            state.down.taken_bytes >= enough
        };
        if calls {
            self.call_line(io);
        }
    }

    /// Tells the access log what the upstream took so far.
    fn note_times(&self, io: &mut Io<'_>) {
        if let Some(times) = &self.state.borrow().times {
            io.note_upstream_times(times);
        }
    }

    /// Passes the heads on that have come.
    fn heads(&mut self, io: &mut Io<'_>) {
        let state = &mut *self.state.borrow_mut();
        while let Some(head) = state.interim.pop_front() {
            match head.status() {
                StatusCode::CONTINUE => io.send_continue(),
                status => io.start_with(status, &refs(&head), End::No),
            }
        }
        if let Some(end) = state.response.take() {
            self.started = true;
            let head = &state.response_head;
            let mut fields = refs(head);
            if let (Some(sticky), Some(at)) = (&self.worker.settings.sticky, self.upstream) {
                let upstream = self.worker.backends.borrow()[at].upstream;
                fields.extend(sticky.field(self.leaning, upstream));
            }
            io.start_with(head.status(), &fields, end);
        }
    }
}

impl Exchange for ForwardedRequest {
    fn held_bytes(&self) -> usize {
        // After a panic, a cell may be in use.
        let state = self.state.try_borrow();
        state.map_or(0, |state| state.held_bytes())
    }

    /// The upstream says whether it wants the body.
    fn continues_at_once(&self) -> bool {
        false
    }

    fn watches_client(&self) -> bool {
        true
    }

    fn on_start(&mut self, io: &mut Io<'_>) {
        self.state.borrow_mut().client.waker = Some(io.local_waker());
        self.worker.backends.borrow_mut().requested();
        self.dispatch(None, io);
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        {
            let state = &mut *self.state.borrow_mut();
            state.up.push(data, end);
            if state.carrier.connection.is_none() {
                state.up.settle();
            }
        }
        self.call_line(io);
    }

    fn on_trailers(&mut self, trailers: &Head, io: &mut Io<'_>) {
        {
            let state = &mut *self.state.borrow_mut();
            let mut kept = Box::<Head>::default();
            kept.clear(HeadKind::Trailers, Version::HTTP_11);
            kept.forward(trailers, passes_in_trailers);
            state.up.trailers = Some(kept);
            state.up.ended = true;
        }
        self.call_line(io);
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        self.pump(io);
    }

    /// Work of the upstream for a client that is gone would be in vain.
    fn on_client_end(&mut self, io: &mut Io<'_>) {
        io.abort();
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        let (taken, failure, waits) = {
            let state = &mut *self.state.borrow_mut();
            state.client.woken = false;
            (state.up.taken(), state.failure.take(), state.waits)
        };
        if taken > 0 {
            io.consumed(taken);
        }
        if let Some(failure) = failure {
            return self.failed(failure, io);
        }
        if waits.is_some()
            && let Some(upstream) = self.upstream
        {
            let now = io.now();
            return self.worker.dial(upstream, io.outward(), now);
        }
        self.heads(io);
        self.pump(io);
        self.note_times(io);
    }
}

impl Drop for ForwardedRequest {
    fn drop(&mut self) {
        // After a panic, a cell may be in use.
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        state.client.abandoned = true;
        state.client.waker = None;
        let connection = state.carrier.connection.clone();
        let waits = std::mem::take(&mut state.waits);
        if let Some(tasks) = connection
            && !std::mem::replace(&mut state.carrier.listed, true)
        {
            tasks.leave(Rc::clone(&self.state));
            tasks.wake();
        }
        drop(state);
        let upstream = self.upstream;
        self.leave();
        if let (Some(key), Some(upstream)) = (waits, upstream) {
            self.worker.backends.borrow_mut()[upstream].pool.forget(key);
        }
    }
}
