//! One connection of the client's thread, and the exchanges that it carries.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::detach;
use bolide_semantics::{
    ConnectionEvent, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Head, Misuse, RequestHead,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::client_state::{ClientState, Dialling};
use super::error::{ClientError, ErrorKind};
use super::pending_request::{PendingRequest, Phase, ResponseHead, Up};
use crate::{Ending, Established, Orders, Owner, Session};

/// One connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) session: Session,
    pub(crate) exchanges: ConnectionExchanges,
}

/// The exchanges of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionExchanges {
    client_state: Rc<RefCell<ClientState>>,
    dialling: Dialling,
    is_ready: bool,
    is_multiplexed: bool,
    /// It takes no more requests.
    is_ending: bool,
    /// By rising number.
    open: Vec<(ExchangeId, Arc<PendingRequest>)>,
}

impl ConnectionExchanges {
    pub(crate) fn new(client_state: Rc<RefCell<ClientState>>, dialling: Dialling) -> Self {
        Self {
            client_state,
            dialling,
            is_ready: false,
            is_multiplexed: false,
            is_ending: false,
            open: Vec::new(),
        }
    }

    pub(crate) fn host(&self) -> usize {
        self.dialling.host
    }

    pub(crate) fn is_idle(&self) -> bool {
        let client_state = self.client_state.borrow();
        self.open.is_empty()
            && client_state
                .tasks
                .get(self.dialling.tasks)
                .is_none_or(|tasks| tasks.inbox.is_empty())
    }

    pub(crate) fn draws_to_its_end(&mut self) {
        self.is_ending = true;
    }

    fn find(&self, id: ExchangeId) -> Option<usize> {
        self.open.binary_search_by_key(&id, |(open, _)| *open).ok()
    }

    /// A request is no longer on this connection.
    fn done(&self) {
        let client_state = &mut *self.client_state.borrow_mut();
        client_state.hosts[self.dialling.host].pool.done(self.dialling.key);
    }

    fn remove(&mut self, at: usize) -> Arc<PendingRequest> {
        let (_, pending) = self.open.remove(at);
        self.done();
        pending
    }

    fn take_inbox(&self) -> Vec<Arc<PendingRequest>> {
        let client_state = &mut *self.client_state.borrow_mut();
        client_state
            .tasks
            .get_mut(self.dialling.tasks)
            .map(|tasks| mem::take(&mut tasks.inbox))
            .unwrap_or_default()
    }

    /// A caller has left something, or wants to be sent.
    fn look_at(&mut self, pending: Arc<PendingRequest>, orders: &mut Orders<'_>) {
        let (exchange, abandoned, read) = {
            let mut state = pending.lock();
            state.listed = false;
            if state.connection != Some(self.dialling.tasks) {
                return;
            }
            (state.exchange, state.abandoned, mem::take(&mut state.read_bytes))
        };
        match (exchange, abandoned) {
            (None, true) => {
                pending.lock().connection = None;
                self.done();
            }
            (None, false) => self.begin(pending, orders),
            (Some(id), true) => {
                orders.abort(id);
                if let Some(at) = self.find(id) {
                    self.remove(at);
                }
                let mut state = pending.lock();
                state.connection = None;
                state.exchange = None;
            }
            (Some(id), false) => {
                if read > 0 {
                    orders.consumed(id, read);
                }
                self.send_body(id, &pending, orders);
            }
        }
    }

    /// Sends a request.
    fn begin(&mut self, pending: Arc<PendingRequest>, orders: &mut Orders<'_>) {
        let end = {
            let mut state = pending.lock();
            state.connection = Some(self.dialling.tasks);
            state.phase = Phase::Sent(Instant::now());
            if state.upload.finished { End::Yes } else { End::No }
        };
        let head = &pending.head;
        let fields: Vec<FieldRef<'_>> = head.fields.iter().map(FieldRef::from).collect();
        let outgoing = RequestHead {
            method: &head.method,
            scheme: head.scheme,
            authority: &head.authority,
            path: &head.path,
            protocol: None,
            fields: &fields,
        };
        match orders.send_request(&outgoing, end) {
            Ok(id) => {
                pending.lock().exchange = Some(id);
                self.open.push((id, Arc::clone(&pending)));
                self.send_body(id, &pending, orders);
            }
            Err(Misuse::Refused) => {
                // The connection has come to its end since it was chosen: another takes the request.
                {
                    let mut state = pending.lock();
                    state.connection = None;
                    state.phase = Phase::Waiting(Instant::now());
                }
                let client_state = &mut *self.client_state.borrow_mut();
                let host = self.dialling.host;
                let pool = &mut client_state.hosts[host].pool;
                pool.set_room(self.dialling.key, 0);
                pool.done(self.dialling.key);
                let key = pool.wait_first(Arc::clone(&pending), Instant::now());
                pending.lock().waits = Some((host, key));
            }
            Err(_) => {
                let what = "a field of the request, or its length, can't be sent";
                pending.fail(ClientError::new(ErrorKind::Request, what));
                self.done();
            }
        }
    }

    /// Sends what there is of a request's body.
    fn send_body(&mut self, id: ExchangeId, pending: &PendingRequest, orders: &mut Orders<'_>) {
        let mut state = pending.lock();
        let mut has_moved = false;
        while !state.blocked
            && let Some(next) = state.next_up()
        {
            has_moved = true;
            state.upload.body_left = true;
            let sent = match next {
                Up::Piece(piece, end) => orders.send_data(id, piece, end),
                Up::Trailers(fields) => {
                    let lines: Vec<FieldRef<'_>> = fields.iter().map(FieldRef::from).collect();
                    orders.send_trailers(id, &lines).map(|()| true)
                }
            };
            match sent {
                Ok(more) => state.blocked = !more,
                Err(Misuse::WrongLength) => {
                    drop(state);
                    orders.abort(id);
                    if let Some(at) = self.find(id) {
                        self.remove(at);
                    }
                    let what = "the request's body is not as long as its content-length says";
                    return pending.fail(ClientError::new(ErrorKind::Body, what).touched());
                }
                // What the server needs no more is dropped; its own event says why.
                Err(_) => {}
            }
        }
        if has_moved {
            state.phase = Phase::Sent(Instant::now());
            drop(state);
            pending.notify();
        }
    }

    fn fail(&mut self, at: usize, mut error: ClientError) {
        let pending = self.remove(at);
        error.unanswered &= !pending.lock().answered;
        pending.fail(error);
    }

    /// The response is complete. Nothing waits for what is left of the request.
    fn complete(&mut self, at: usize, orders: &mut Orders<'_>) {
        let id = self.open[at].0;
        let pending = self.remove(at);
        let mut state = pending.lock();
        if !state.upload.finished {
            orders.abort(id);
        }
        state.connection = None;
        state.exchange = None;
        drop(state);
        pending.notify();
    }

    fn answered(&mut self, at: usize, end: End, orders: &mut Orders<'_>) {
        let pending = Arc::clone(&self.open[at].1);
        let response = ResponseHead {
            status: orders.head().status(),
            version: orders.head().version(),
            fields: field_map(orders.head()),
        };
        {
            let mut state = pending.lock();
            state.phase = Phase::Sent(Instant::now());
            state.response = Some(response);
            state.answered = true;
            state.down_ended = end == End::Yes;
        }
        pending.notify();
        if end == End::Yes {
            self.complete(at, orders);
        }
    }

    fn arrived(&mut self, at: usize, data: Bytes, end: End, orders: &mut Orders<'_>) {
        let pending = Arc::clone(&self.open[at].1);
        {
            let mut state = pending.lock();
            state.phase = Phase::Sent(Instant::now());
            if !data.is_empty() {
                // It may stay for long, and must not keep a block of the loop's.
                state.down.push_back(detach(data));
            }
            state.down_ended = end == End::Yes;
        }
        pending.notify();
        if end == End::Yes {
            self.complete(at, orders);
        }
    }

    fn trailers_arrived(&mut self, at: usize, orders: &mut Orders<'_>) {
        {
            let mut state = self.open[at].1.lock();
            state.down_trailers = Some(field_map(orders.head()));
            state.down_ended = true;
        }
        self.complete(at, orders);
    }

    /// Takes requests that wait, as long as there is room.
    fn take_waiting(&mut self, orders: &mut Orders<'_>) {
        loop {
            let room = match (self.is_ending, self.is_multiplexed, self.open.is_empty()) {
                (true, _, _) => 0,
                (_, true, _) => orders.available(),
                (_, false, true) => orders.available().min(1),
                (_, false, false) => 0,
            };
            let next = {
                let client_state = &mut *self.client_state.borrow_mut();
                let pool = &mut client_state.hosts[self.dialling.host].pool;
                pool.set_room(self.dialling.key, u32::try_from(room).unwrap_or(u32::MAX));
                pool.next_waiting(self.dialling.key)
            };
            let Some(pending) = next else { return };
            let abandoned = {
                let mut state = pending.lock();
                state.waits = None;
                state.abandoned
            };
            if abandoned {
                self.done();
                continue;
            }
            self.begin(pending, orders);
        }
    }
}

/// The fields of a head, for callers.
fn field_map(head: &Head) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(head.field_count());
    for field in head.fields() {
        let name = field.known.map_or_else(
            || HeaderName::from_bytes(field.name.as_bytes()),
            |known| HeaderName::from_bytes(FieldName::as_str(known).as_bytes()),
        );
        // The parser has let nothing through that these refuse.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            map.append(name, value);
        }
    }
    map
}

impl Owner for ConnectionExchanges {
    fn ready(&mut self, established: &Established, _: &mut Orders<'_>) {
        self.is_ready = true;
        self.is_multiplexed = established.multiplexes();
        let client_state = &mut *self.client_state.borrow_mut();
        let host = &mut client_state.hosts[self.dialling.host];
        host.failures = 0;
        host.pool.ready(self.dialling.key, self.is_multiplexed);
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let Some(at) = self.find(id) else {
            // It was given up; what still comes for it is not held back.
            if let ExchangeEvent::Data(data, _) = event {
                orders.consumed(id, data.len());
            }
            return;
        };
        match event {
            ExchangeEvent::Head(end) => self.answered(at, end, orders),
            ExchangeEvent::Data(data, end) => self.arrived(at, data, end, orders),
            ExchangeEvent::Trailers => self.trailers_arrived(at, orders),
            ExchangeEvent::Sendable => {
                let pending = Arc::clone(&self.open[at].1);
                pending.lock().blocked = false;
                self.send_body(id, &pending, orders);
            }
            ExchangeEvent::Aborted(reason) => {
                let error = ClientError::aborted(&reason);
                self.fail(at, error);
            }
            // Callers don't wait for interim responses, and only servers reject.
            ExchangeEvent::Informational | ExchangeEvent::Rejected(_) => {}
        }
    }

    fn connection(&mut self, event: ConnectionEvent, _: &mut Orders<'_>) {
        if let ConnectionEvent::Draining { .. } = event {
            self.is_ending = true;
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        for pending in self.take_inbox() {
            self.look_at(pending, orders);
        }
        self.take_waiting(orders);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn ended(&mut self, ending: &Ending) {
        while !self.open.is_empty() {
            self.fail(self.open.len() - 1, ClientError::ended(ending, true));
        }
        for pending in self.take_inbox() {
            let is_here = {
                let mut state = pending.lock();
                state.listed = false;
                state.connection.take().is_some() && !state.abandoned
            };
            if is_here {
                pending.fail(ClientError::ended(ending, false));
            }
        }
        let client_state = &mut *self.client_state.borrow_mut();
        if self.is_ready {
            client_state.hosts[self.dialling.host].pool.closed(self.dialling.key);
            client_state.tasks.remove(self.dialling.tasks);
        } else {
            client_state.dial_failed(self.dialling, &ClientError::ended(ending, false));
        }
    }
}
