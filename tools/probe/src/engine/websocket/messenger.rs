//! RFC 6455 §5, §7: messages on one connection: each is sent when the pacer says so, and its reply is the next message
//! that comes.

use std::sync::Arc;
use std::time::Instant;

use bolide_client::{Ending, Established, Orders, Owner};
use bolide_semantics::{
    ConnectionEvent, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Misuse, RequestHead, Role,
};
use bolide_websocket::{Close, CloseCode, Codec, Event, Kind, Payload, Settings, handshake};
use bytes::Bytes;
use http::Method;

use super::{Socket, WebSocketTask, limits};
use crate::engine::asked::Asked;
use crate::engine::asker::Asker;
use crate::engine::script::Extra;
use crate::engine::template::{Numbers, Values};
use crate::engine::thread_state::{Task, ThreadState, failure_of_abort};
use crate::engine::websocket_tally::WebSocketTally;
use crate::report::Failure;

/// A WebSocket connection at its turn.
pub(in crate::engine) struct Messenger<'a> {
    pub(in crate::engine) asker: Asker<'a>,
    pub(in crate::engine) socket: &'a mut Socket,
}

impl Owner for Messenger<'_> {
    fn connected(&mut self) {
        self.asker.connected();
    }

    fn ready(&mut self, established: &Established, orders: &mut Orders<'_>) {
        self.asker.established(established);
        self.socket.since_ns = self.asker.state.now_ns;
        // Over HTTP/2 and HTTP/3, the server's settings say first whether it takes such connections (RFC 8441 §3, RFC 9220 §3).
        if !established.multiplexes() {
            self.request(orders);
        }
    }

    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        match event {
            ExchangeEvent::Head(end) if self.socket.codec.is_none() => self.head(id, end, orders),
            ExchangeEvent::Data(data, end) => {
                let length = data.len();
                self.receive(data);
                orders.consumed(id, length);
                if end == End::Yes {
                    self.cut();
                }
            }
            ExchangeEvent::Sendable => self.socket.sendable = true,
            // With HTTP/1.1 the end of the connection follows, and it says more.
            ExchangeEvent::Aborted(reason) if self.asker.conn.multiplexes => {
                self.refuse(Failure::Upgrade, reason.what.to_owned());
                self.fail(failure_of_abort(&reason), reason.what);
                orders.shut_down();
            }
            ExchangeEvent::Trailers => self.cut(),
            ExchangeEvent::Head(_)
            | ExchangeEvent::Aborted(_)
            | ExchangeEvent::Informational
            | ExchangeEvent::Rejected(_) => {}
        }
    }

    fn connection(&mut self, event: ConnectionEvent, orders: &mut Orders<'_>) {
        match event {
            ConnectionEvent::Concurrency { .. } if self.socket.id.is_some() => {}
            ConnectionEvent::Concurrency { .. } => match orders.takes_protocols() {
                None => {}
                Some(true) => self.request(orders),
                Some(false) => {
                    let what = "the server takes no WebSocket connections by extended CONNECT";
                    self.refuse(Failure::Upgrade, what.to_owned());
                    orders.shut_down();
                }
            },
            ConnectionEvent::Draining { .. } => self.asker.retire(),
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        if self.asker.conn.multiplexes {
            self.asker.count_http2(orders);
        }
        self.time_out(orders);
        if self.asker.conn.open {
            self.asker.settle_promises();
            self.complete_sent(orders);
            self.ask();
            self.close_if_done();
        }
        self.flush(orders);
        self.socket.waits_for_flush = self.task().plan.one_way && !self.asker.conn.asked.is_empty();
        if let Some(seat) = self.asker.conn.seat.filter(|_| self.asker.conn.open) {
            self.asker.state.seats.has_room(seat, self.room() as u32);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline_ns().map(|at_ns| self.asker.state.task.instant(at_ns))
    }

    fn ended(&mut self, ending: &Ending) {
        match self.socket.refusal.take() {
            Some((failure, what)) if self.asker.was_never_open() => {
                self.asker.not_made(failure, what);
            }
            _ => self.asker.ended(ending),
        }
    }
}

impl Messenger<'_> {
    fn task(&self) -> &WebSocketTask {
        of(&self.asker.state.task)
    }

    /// Returns what is counted now, if anything is.
    fn tally(&mut self) -> &mut WebSocketTally {
        self.asker.state.tally.kinds.websocket.get_or_insert_default()
    }

    /// Asks the server for the connection.
    fn request(&mut self, orders: &mut Orders<'_>) {
        let Self { asker: Asker { conn, state, .. }, socket } = self;
        let words = [state.random.u64(..).to_le_bytes(), state.random.u64(..).to_le_bytes()];
        let mut bytes = [0; 16];
        bytes.copy_from_slice(words.as_flattened());
        socket.key = handshake::key(bytes);
        let task = Arc::clone(&state.task);
        let how = (conn.numbers, conn.multiplexes);
        match ask(of(&task), &socket.key, how, state, orders) {
            Ok(id) => socket.id = Some(id),
            // The connection has ended since it became ready.
            Err(_) => orders.shut_down(),
        }
    }

    /// There is no connection, for this reason.
    fn refuse(&mut self, failure: Failure, what: String) {
        self.socket.refusal.get_or_insert((failure, what));
    }

    /// The server has responded to the handshake.
    fn head(&mut self, id: ExchangeId, end: End, orders: &mut Orders<'_>) {
        let accepted = match self.task().check(&self.socket.key, orders) {
            Ok(_) if end == End::Yes => Err("the server ended the connection at once".to_owned()),
            accepted => accepted,
        };
        let deflate = match accepted {
            Ok(deflate) => deflate,
            Err(what) => {
                self.refuse(Failure::Upgrade, what);
                orders.abort(id);
                return orders.shut_down();
            }
        };
        let mask_seed = self.asker.state.random.u64(..);
        let settings = Settings { limits: limits(), deflate, mask_seed };
        self.socket.codec = Some(Codec::new(Role::Client, settings));
        self.socket.sendable = true;
        let took_ns = self.asker.state.now_ns - self.socket.since_ns;
        let tally = self.tally();
        tally.upgrade.saturating_record(took_ns);
        tally.compressed += u64::from(deflate.is_some());
        if let Some(begun_ns) = self.asker.opened() {
            let number = self.asker.state.pacer.number;
            self.send(begun_ns, number);
        }
    }

    /// How many messages can be sent now.
    fn room(&self) -> usize {
        let Asker { conn, state, .. } = &self.asker;
        if conn.retiring || conn.single.is_some() || !self.socket.sendable {
            return 0;
        }
        state.task.depth.saturating_sub(conn.asked.len())
    }

    /// Sends what there is to send.
    fn ask(&mut self) {
        for _ in 0..self.room() {
            let state = &mut *self.asker.state;
            let Some(begun_ns) = state.pacer.take(0, state.now_ns) else { return };
            state.began(begun_ns);
            let number = state.pacer.number;
            self.send(begun_ns, number);
        }
    }

    fn send(&mut self, begun_ns: u64, number: u32) {
        let Self { asker: Asker { conn, state, .. }, socket } = self;
        let task = &state.task;
        let index = task.script.choose(&mut state.turn, &mut state.random);
        let mut values = Values::of(conn.numbers, &mut state.random);
        let body = task.script.requests[index].content(&mut values);
        let asked = Asked {
            content_bytes: body.len() as u64,
            begun_ns,
            handed_ns: state.now_ns,
            request: index as u32,
            number,
            counted: state.pacer.counts(begun_ns),
            ..Asked::default()
        };
        let codec = socket.codec.as_mut();
        let sent = codec.is_some_and(|codec| codec.send(of(task).kinds[index], body).is_ok());
        if !sent {
            return state.failed(&asked, Failure::Reset);
        }
        conn.asked.push(ExchangeId(socket.next), asked);
        socket.next = socket.next.wrapping_add(1);
    }

    /// Bytes of frames.
    fn receive(&mut self, mut data: Bytes) {
        while let Some(event) =
            self.socket.codec.as_mut().and_then(|codec| codec.receive(&mut data))
        {
            match event {
                Event::Message { kind, payload, end } => self.piece(kind, payload, end),
                // Its pong is queued.
                Event::Ping(_) | Event::Pong(_) => {}
                Event::Closed(close) => self.closed(&close),
                Event::Failed(failure) => {
                    if self.asker.conn.asked.is_empty() {
                        self.asker.state.idle_failed(Failure::Protocol);
                    }
                    self.fail(Failure::Protocol, failure.what);
                }
            }
        }
    }

    /// A piece of a message: of the reply to the oldest message, or of one that nothing waited for.
    fn piece(&mut self, kind: Kind, payload: Payload, end: End) {
        let Self { asker: Asker { conn, state, .. }, socket } = self;
        let task = of(&state.task);
        let is_first = socket.receiving.is_none();
        let oldest = conn.asked.oldest().map(|(id, _)| id).filter(|_| !task.plan.one_way);
        let is_reply = *socket.receiving.get_or_insert_with(|| oldest.is_some());
        if end == End::Yes {
            socket.receiving = None;
        }
        let Some(id) = oldest.filter(|_| is_reply) else { return self.pushed(payload.len(), end) };
        let Some(asked) = conn.asked.get_mut(id) else { return };
        let request = &state.task.script.requests[asked.request as usize];
        if is_first {
            let is_other_kind = kind != task.kinds[asked.request as usize];
            asked.wrong_status = task.plan.echo && is_other_kind;
            let is_wrong = asked.wrong_status;
            state.task.judge.begin(&request.response, &mut asked.seen, is_wrong, &mut state.random);
        }
        asked.seen.data(&request.response, &payload.into_bytes());
        if end == End::No {
            return;
        }
        let Some(mut asked) = conn.asked.remove(id) else { return };
        let verdict = state.task.judge.finish(&request.response, &mut asked.seen);
        let kind = if asked.wrong_status { Err(Failure::Body) } else { Ok(()) };
        state.answered(conn.seat, &asked, verdict.and(kind));
        if conn.single.is_some() {
            self.asker.retire();
        }
    }

    fn pushed(&mut self, bytes: usize, end: End) {
        let state = &mut *self.asker.state;
        let counted = state.pacer.counts(state.now_ns);
        if state.pacer.counts_response(state.pacer.number, counted, state.now_ns) {
            state.tally.traffic.payload_received_bytes += bytes as u64;
            self.tally().pushed += u64::from(end == End::Yes);
        }
    }

    /// The server closes the connection; its close frame is replied to.
    fn closed(&mut self, close: &Close) {
        let is_reply = self.asker.conn.retiring && !self.asker.conn.open;
        if !is_reply {
            *self.tally().closes.entry(close.code.0).or_default() += 1;
        }
        self.fail(Failure::Closed, "the server closed the WebSocket connection");
    }

    /// The connection ended.
    fn cut(&mut self) {
        if self.socket.codec.as_ref().is_some_and(|codec| !codec.is_over()) {
            self.fail(Failure::Reset, "the connection ended without a close frame");
            self.socket.codec = None;
            self.socket.sendable = true;
        }
    }

    /// Nothing is sent or expected on the connection any more.
    fn fail(&mut self, failure: Failure, what: &'static str) {
        let Asker { conn, state, .. } = &mut self.asker;
        if !conn.asked.is_empty() {
            state.tally.first_loss.get_or_insert_with(|| what.into());
        }
        for asked in conn.asked.drain() {
            state.failed(&asked, failure);
        }
        self.asker.retire();
    }

    /// Closes a connection that is to go, once every reply has come.
    fn close_if_done(&mut self) {
        let Self { asker: Asker { conn, state, .. }, socket } = self;
        if !conn.retiring || !conn.asked.is_empty() {
            return;
        }
        conn.open = false;
        socket.since_ns = state.now_ns;
        if let Some(codec) = &mut socket.codec {
            // It is closed already where the server has closed it.
            let _ = codec.send_close(CloseCode::NORMAL, "");
        }
    }

    /// Hands frames to the connection, and ends it after the last one.
    fn flush(&mut self, orders: &mut Orders<'_>) {
        let Self { asker: Asker { conn, .. }, socket } = self;
        let Some(id) = socket.id else { return };
        while socket.sendable
            && let Some(bytes) = socket.codec.as_mut().and_then(Codec::pop_output)
        {
            socket.sendable = orders.send_data(id, bytes, End::No).unwrap_or(false);
        }
        let is_over =
            socket.codec.as_ref().is_none_or(|codec| codec.is_over() && codec.output_bytes() == 0);
        if conn.retiring && is_over && socket.sendable {
            socket.sendable = false;
            // The server may have ended it already.
            let _ = orders.send_data(id, Bytes::new(), End::Yes);
            orders.shut_down();
        }
    }

    /// One-way messages are complete when the socket has taken them.
    fn complete_sent(&mut self, orders: &mut Orders<'_>) {
        let Self { asker: Asker { conn, state, .. }, socket } = self;
        let Some(id) = socket.id.filter(|_| of(&state.task).plan.one_way) else { return };
        let frames_bytes = socket.codec.as_ref().map_or(0, Codec::output_bytes) as u64;
        if conn.asked.is_empty() || frames_bytes + orders.unwritten_bytes(id) > 0 {
            return;
        }
        for asked in conn.asked.drain() {
            state.answered(conn.seat, &asked, Ok(()));
        }
        if conn.single.is_some() {
            self.asker.retire();
        }
    }

    fn deadline_ns(&self) -> Option<u64> {
        let Asker { conn, state, .. } = &self.asker;
        if conn.open {
            return conn.asked.oldest().map(|(_, handed_ns)| handed_ns + state.task.timeout_ns);
        }
        Some(self.socket.since_ns + self.task().patience_ns)
    }

    /// Gives up what took too long: replies have no numbers, so nothing else on the connection can be told apart.
    fn time_out(&mut self, orders: &mut Orders<'_>) {
        if self.deadline_ns().is_none_or(|at_ns| at_ns > self.asker.state.now_ns) {
            return;
        }
        if self.asker.conn.open {
            let Asker { conn, state, .. } = &mut self.asker;
            if let Some(asked) = conn.asked.oldest().and_then(|(id, _)| conn.asked.remove(id)) {
                state.failed(&asked, Failure::Timeout);
            }
            self.fail(Failure::Reset, "a reply took too long");
            self.asker.conn.open = false;
        } else {
            self.refuse(Failure::Timeout, "the server did not respond to the handshake".to_owned());
        }
        if let Some(id) = self.socket.id {
            orders.abort(id);
        }
        self.socket.codec = None;
        self.socket.sendable = false;
        orders.shut_down();
    }
}

/// Asks for a connection with this key: by extended CONNECT where exchanges are `multiplexed`.
fn ask(
    task: &WebSocketTask,
    key: &str,
    (numbers, multiplexed): (Numbers, bool),
    state: &mut ThreadState,
    orders: &mut Orders<'_>,
) -> Result<ExchangeId, Misuse> {
    let mut values = Values::of(numbers, &mut state.random);
    task.handshake.render(&mut values, &mut state.rendered);
    let rendered = (&state.rendered, Extra::of(0));
    task.handshake.with_head(&state.task.servers[0], rendered, |head| {
        let mut fields = head.fields.to_vec();
        let (method, protocol) = if multiplexed {
            (&Method::CONNECT, Some(handshake::PROTOCOL))
        } else {
            let protocol = handshake::PROTOCOL.as_bytes();
            fields.push(FieldRef::known(FieldName::Upgrade, protocol));
            fields.push(FieldRef::known(FieldName::SecWebsocketKey, key.as_bytes()));
            (head.method, None)
        };
        let head = RequestHead { method, protocol, fields: &fields, ..*head };
        orders.send_request(&head, End::No)
    })
}

/// The part of a task that is about WebSocket, which it has where there is a socket.
fn of(task: &Task) -> &WebSocketTask {
    task.websocket.as_ref().expect("sockets are made by tasks of WebSocket")
}
