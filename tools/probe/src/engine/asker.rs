//! One connection of the load: sends requests when the pacer says so, and judges the responses.

use std::time::Instant;

use bolide_client::{Ending, Established, Orders, Owner, Step};
use bolide_connection::Http2Stats;
use bolide_semantics::{ConnectionEvent, End, ExchangeEvent, ExchangeId};
use bytes::Bytes;

use super::asked::{Asked, AskedQueue, Redirect};
use super::events::Stream;
use super::looked::Looked;
use super::messages::Facts;
use super::script::Extra;
use super::steps;
use super::template::{Numbers, Values};
use super::thread_state::{ThreadState, failure_of_abort, failure_of_ending, trouble};
use super::users::Sender;
use crate::report::Failure;
use crate::scenario::KEPT_BYTES;

/// State of one connection.
#[derive(Debug)]
pub(super) struct Conn {
    /// Its seat, until it leaves it to another.
    pub(super) seat: Option<u32>,
    /// The number of the server that it leads to.
    pub(super) server: usize,
    /// When it was asked for, and when the socket was connected; over QUIC they are the same.
    dialed_ns: u64,
    connected_ns: u64,
    /// The connection exists for the one request that began at this time.
    pub(super) single: Option<u64>,
    /// Its number and that of its next request, for placeholders.
    pub(super) numbers: Numbers,
    /// Its exchanges have ends of their own: HTTP/2, HTTP/3.
    pub(super) multiplexes: bool,
    /// The server's settings are known, or there are none: requests can be counted on.
    pub(super) open: bool,
    /// No request begins on it any more; it ends when those in flight are answered.
    pub(super) retiring: bool,
    pub(super) asked: AskedQueue,
    counted: Http2Stats,
    /// When the streams of events are to be looked at for one that has stopped, in nanoseconds since the engine began.
    check_ns: u64,
    pub(super) looked: Looked,
}

impl Conn {
    /// A connection of a seat to a server.
    pub(super) fn new(
        (seat, server): (u32, usize),
        dialed_ns: u64,
        single: Option<u64>,
        number: u64,
    ) -> Self {
        Self {
            seat: Some(seat),
            server,
            dialed_ns,
            connected_ns: dialed_ns,
            single,
            numbers: Numbers { connection: number, request: 0 },
            multiplexes: false,
            open: false,
            retiring: false,
            asked: AskedQueue::default(),
            counted: Http2Stats::default(),
            check_ns: 0,
            looked: Looked::default(),
        }
    }
}

/// A connection at its turn.
pub(super) struct Asker<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) state: &'a mut ThreadState,
    /// Facts about the first connection of the thread.
    pub(super) facts: &'a mut Option<Facts>,
}

impl Owner for Asker<'_> {
    fn connected(&mut self) {
        let Self { conn, state, .. } = self;
        conn.connected_ns = state.now_ns;
        state.tally.times.connect.saturating_record(state.now_ns - conn.dialed_ns);
    }

    fn ready(&mut self, established: &Established, orders: &mut Orders<'_>) {
        self.established(established);
        let waits_for_settings = established.version == http::Version::HTTP_2;
        if waits_for_settings {
            self.conn.asked.count_by_two();
        }
        // A request that waited for this connection goes out with the first bytes.
        if !waits_for_settings || self.conn.single.is_some() {
            self.open(orders);
        }
    }

    #[inline]
    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        match event {
            ExchangeEvent::Head(end) => self.head(id, end, orders),
            ExchangeEvent::Data(data, end) => self.data(id, &data, end, orders),
            ExchangeEvent::Trailers => {
                if let Some(asked) = self.conn.asked.get_mut(id) {
                    let judge = &self.state.task.judge;
                    asked.seen.has_trailers = judge.takes_trailers(orders.head());
                    if let Some(stream) = &mut asked.stream {
                        stream.look_for_status(orders.head());
                    }
                }
                self.complete(id, orders);
            }
            ExchangeEvent::Aborted(reason) => {
                // With HTTP/1.1 the end of the connection follows, and it says more.
                if !self.conn.multiplexes {
                    return;
                }
                if let Some(asked) = self.conn.asked.remove(id) {
                    self.state.failed(&asked, failure_of_abort(&reason));
                }
            }
            ExchangeEvent::Informational | ExchangeEvent::Sendable | ExchangeEvent::Rejected(_) => {
            }
        }
    }

    fn connection(&mut self, event: ConnectionEvent, orders: &mut Orders<'_>) {
        match event {
            ConnectionEvent::Concurrency { .. } if !self.conn.open => self.open(orders),
            ConnectionEvent::Concurrency { .. } => {}
            // Another connection takes its place at once.
            ConnectionEvent::Draining { .. } => self.retire(),
        }
    }

    #[inline]
    fn settled(&mut self, orders: &mut Orders<'_>) {
        if self.conn.multiplexes {
            self.count_http2(orders);
        }
        self.time_out(orders);
        if !self.conn.open {
            return;
        }
        self.settle_promises();
        self.ask(orders);
        if self.conn.retiring && self.conn.asked.is_empty() {
            orders.shut_down();
            self.conn.open = false;
        } else if let Some(seat) = self.conn.seat {
            let room = self.room(orders);
            self.state.seats.has_room(seat, room as u32);
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        let (_, handed_ns) = self.conn.asked.oldest()?;
        let task = &self.state.task;
        let at_ns =
            if task.events.is_some() { self.conn.check_ns } else { handed_ns + task.timeout_ns };
        Some(task.instant(at_ns))
    }

    fn ended(&mut self, ending: &Ending) {
        let is_tls = self.state.task.servers[self.conn.server].is_https;
        let failure = failure_of_ending(ending, is_tls);
        if ending.step != Step::Ready || self.was_never_open() {
            return self.not_made(failure, trouble(ending, is_tls));
        }
        if self.conn.asked.is_empty() && failure == Failure::Protocol {
            self.state.idle_failed(failure);
        }
        if !self.conn.asked.is_empty() {
            self.state.tally.first_loss.get_or_insert_with(|| ending.reason.what.into());
        }
        for asked in self.conn.asked.drain() {
            self.state.failed(&asked, failure);
        }
        self.leave();
    }
}

impl Asker<'_> {
    /// TCP's and TLS's handshakes are complete, or QUIC's.
    pub(super) fn established(&mut self, established: &Established) {
        let Self { conn, state, .. } = self;
        conn.multiplexes = established.multiplexes();
        if let Some(tls) = &established.tls {
            state.tally.times.handshake.saturating_record(state.now_ns - conn.connected_ns);
            state.tally.resumed_count += u64::from(tls.resumed);
        } else if established.version == http::Version::HTTP_3 {
            state.tally.early_count += 1;
        }
        if self.facts.is_none() {
            *self.facts = Some(Facts::new(established));
        }
    }

    /// Requests can be sent from here on. Returns when the one began that waited for this connection, if one did.
    pub(super) fn opened(&mut self) -> Option<u64> {
        let seat = self.conn.seat?;
        self.conn.open = true;
        self.state.tally.counts.connections += 1;
        self.state.seats.became_ready(seat);
        self.conn.single
    }

    fn open(&mut self, orders: &mut Orders<'_>) {
        if let Some(begun_ns) = self.opened() {
            let number = self.state.pacer.number;
            self.send(begun_ns, number, orders);
        }
    }

    /// The connection is over before a request could be sent.
    pub(super) fn was_never_open(&self) -> bool {
        !self.conn.open && self.conn.seat.is_some()
    }

    /// The connection could not be made; `what`: why, in words.
    pub(super) fn not_made(&mut self, failure: Failure, what: String) {
        if let Some(seat) = self.conn.seat.take() {
            self.state.seats.failed(seat, self.state.now_ns);
        }
        let request = self.conn.single.take();
        self.state.connect_failed(failure, (self.conn.server, what), request);
    }

    /// The connection has its turn: what it was promised is kept now, or void.
    #[inline]
    pub(super) fn settle_promises(&mut self) {
        if let Some(seat) = self.conn.seat {
            let promised = self.state.seats.take_promised(seat);
            self.state.pacer.redeem(self.conn.server, u64::from(promised));
        }
        // A connection that was made to stay has no use where each request has its own.
        if self.state.pacer.is_connect() && self.conn.single.is_none() {
            self.retire();
        }
    }

    /// Gives the seat up: another connection is made for it.
    fn leave(&mut self) {
        if let Some(seat) = self.conn.seat.take() {
            let promised = self.state.seats.left(seat);
            self.state.pacer.redeem(self.conn.server, u64::from(promised));
        }
    }

    /// No request begins on the connection any more.
    pub(super) fn retire(&mut self) {
        self.conn.retiring = true;
        if self.conn.open {
            self.leave();
        }
    }

    /// How many requests can be sent now.
    #[inline]
    fn room(&self, orders: &Orders<'_>) -> usize {
        if self.conn.retiring || self.conn.single.is_some() {
            return 0;
        }
        let depth = self.state.task.depth.saturating_sub(self.conn.asked.len());
        if depth == 0 { 0 } else { depth.min(orders.available()) }
    }

    /// Sends what there is to send.
    #[inline]
    fn ask(&mut self, orders: &mut Orders<'_>) {
        for _ in 0..self.room(orders) {
            let taken = self.state.pacer.take(self.conn.server, self.state.now_ns);
            let Some(begun_ns) = taken else { return };
            self.state.began(begun_ns);
            let number = self.state.pacer.number;
            self.send(begun_ns, number, orders);
        }
    }

    #[inline]
    fn send(&mut self, begun_ns: u64, number: u32, orders: &mut Orders<'_>) {
        let Self { conn, state, .. } = self;
        let script = &state.task.script;
        let server = &state.task.servers[conn.server];
        let sender = state.pacer.sender();
        let index = match &sender {
            Some(sender) => sender.request(),
            None => script.choose(&mut state.turn, &mut state.random),
        };
        let request = &script.requests[index];
        let mut values = Values::of(conn.numbers, &mut state.random);
        conn.numbers.request += 1;
        if let Some(sender) = &sender {
            sender.fill(&mut values);
        }
        request.render(&mut values, &mut state.rendered);
        state.cookies.clear();
        if let Some(sender) = &sender {
            sender.write_cookies(server.for_cookies(), &state.rendered, &mut state.cookies);
        }
        let hop = sender.as_ref().and_then(Sender::hop);
        // A redirect may have made a GET of it.
        let drops_content = hop.is_some_and(|hop| hop.method.is_some());
        let content = if drops_content { Bytes::new() } else { request.content(&mut values) };
        let asked = Asked {
            content_bytes: content.len() as u64,
            step: sender.as_ref().map(Sender::step),
            begun_ns,
            handed_ns: state.now_ns,
            request: index as u32,
            number,
            counted: state.pacer.counts(begun_ns),
            stream: state.task.events.as_ref().map(|plan| Box::new(Stream::new(plan))),
            ..Asked::default()
        };
        if conn.asked.is_empty() {
            conn.check_ns = state.now_ns + state.task.timeout_ns;
        }
        let end = if content.is_empty() { End::Yes } else { End::No };
        let extra = Extra { cookies: &state.cookies, hop, ..Extra::of(asked.content_bytes) };
        let rendered = (&state.rendered, extra);
        let sent = request.with_head(server, rendered, |head| orders.send_request(head, end));
        if let Some((step, users)) = asked.step.as_ref().zip(state.pacer.users_mut()) {
            users.sent(step.user, &state.rendered);
        }
        let Ok(id) = sent else {
            // The connection has drawn to its end since its room was looked at.
            return state.failed(&asked, Failure::Reset);
        };
        conn.asked.push(id, asked);
        if end == End::No {
            // It is framed as the windows open. The exchange is open, so it can't be refused.
            let _ = orders.send_data(id, content, End::Yes);
        }
    }

    #[inline]
    fn head(&mut self, id: ExchangeId, end: End, orders: &mut Orders<'_>) {
        let Self { conn, state, .. } = self;
        let Some(asked) = conn.asked.get_mut(id) else { return };
        let head = orders.head();
        asked.status = head.status().as_u16();
        let pacer = &state.pacer;
        if pacer.counts_response(asked.number, asked.counted, state.now_ns) {
            let tally = &mut state.tally;
            tally.times.first_byte.saturating_record(state.now_ns - asked.begun_ns);
            tally.times.handed_to_first_byte_ns += state.now_ns - asked.handed_ns;
            tally.traffic.head_wire_bytes += head.wire_bytes() as u64;
            tally.traffic.head_decoded_bytes += head.decoded_bytes() as u64;
        }
        let request = &state.task.script.requests[asked.request as usize];
        let is_current = asked.number == state.pacer.number;
        if let (Some(step), Some(plan)) = (&mut asked.step, &request.step) {
            if is_current {
                let from = (&state.task.servers[..], conn.server);
                steps::read_head(step, (plan, &request.method), head, from, &mut state.pacer);
            }
            if plan.reads_body() {
                step.kept = Some(Vec::new());
            }
        }
        let is_hop = asked.step.as_ref().is_some_and(|step| step.redirect == Redirect::Followed);
        asked.wrong_status = !is_hop && !state.task.judge.takes(&request.response, head.status());
        asked.lacks_fields = !is_hop && !request.response.has_fields(head);
        asked.is_early = asked.content_bytes == 0 && !orders.is_written(id);
        state.task.judge.begin(
            &request.response,
            &mut asked.seen,
            asked.wrong_status || is_hop,
            &mut state.random,
        );
        if end == End::Yes {
            if let Some(stream) = &mut asked.stream {
                stream.look_for_status(orders.head());
            }
            self.complete(id, orders);
        }
    }

    #[inline]
    fn data(&mut self, id: ExchangeId, data: &[u8], end: End, orders: &mut Orders<'_>) {
        let Self { conn, state, .. } = self;
        if let Some(asked) = conn.asked.get_mut(id) {
            let response = &state.task.script.requests[asked.request as usize].response;
            asked.seen.data(response, data);
            if let Some(kept) = asked.step.as_mut().and_then(|step| step.kept.as_mut()) {
                let room = KEPT_BYTES - kept.len();
                kept.extend_from_slice(&data[..data.len().min(room)]);
            }
            if let (Some(stream), Some(plan)) = (&mut asked.stream, &state.task.events) {
                asked.handed_ns = state.now_ns;
                let counts = state.pacer.counts_response(asked.number, asked.counted, state.now_ns);
                let tally = counts.then_some(&mut state.tally.kinds.events);
                stream.data(data, (asked.begun_ns, state.now_ns), plan, tally);
            }
        }
        orders.consumed(id, data.len());
        if end == End::Yes {
            self.complete(id, orders);
        }
    }

    /// A response is complete; the next request leaves with the same write.
    #[inline]
    fn complete(&mut self, id: ExchangeId, orders: &mut Orders<'_>) {
        let Some(mut asked) = self.conn.asked.remove(id) else { return };
        let task = &self.state.task;
        let request = &task.script.requests[asked.request as usize];
        // A response may begin before its request's content has left, as that of an echo does; only a refusal may
        // be complete by then.
        let is_written = orders.is_written(id);
        asked.is_early |= asked.status < 400 && !is_written;
        if !is_written {
            asked.unsent_bytes = orders.unwritten_bytes(id).min(asked.content_bytes);
            if self.conn.multiplexes {
                // The rest would only use up windows.
                orders.abort(id);
            }
        }
        let streams = asked.stream.as_ref().zip(task.events.as_ref());
        let streamed = streams.map_or(Ok(()), |(stream, plan)| stream.verdict(plan));
        let verdict = if asked.wrong_status {
            Err(Failure::Status)
        } else if asked.is_early && streamed.is_ok() {
            Err(Failure::Protocol)
        } else if asked.lacks_fields {
            Err(Failure::Fields)
        } else if asked.step.as_ref().is_some_and(|step| step.redirect != Redirect::None) {
            steps::redirected(&asked)
        } else {
            task.judge.finish(&request.response, &mut asked.seen).and(streamed)
        };
        let is_current = asked.number == self.state.pacer.number;
        let verdict = match (&mut asked.step, &request.step) {
            (Some(step), Some(plan)) if is_current => {
                verdict.and_then(|()| steps::read_body(step, plan, &mut self.state.pacer))
            }
            _ => verdict,
        };
        self.state.answered(self.conn.seat, &asked, verdict);
        if self.conn.single.is_some() {
            self.retire();
        }
        self.ask(orders);
    }

    /// Gives up what took too long. The connection is replaced; what else waits on it may still be answered.
    #[inline]
    fn time_out(&mut self, orders: &mut Orders<'_>) {
        let timeout_ns = self.state.task.timeout_ns;
        let is_streaming = self.state.task.events.is_some();
        if is_streaming && self.state.now_ns < self.conn.check_ns {
            return;
        }
        let next =
            |asked: &AskedQueue| if is_streaming { asked.quietest() } else { asked.oldest() };
        while let Some((id, handed_ns)) = next(&self.conn.asked) {
            if handed_ns + timeout_ns > self.state.now_ns {
                self.conn.check_ns = handed_ns + timeout_ns;
                return;
            }
            if let Some(asked) = self.conn.asked.remove(id) {
                self.state.failed(&asked, Failure::Timeout);
            }
            orders.abort(id);
            self.retire();
        }
    }

    /// Adds what an HTTP/2 connection has counted since it was looked at last.
    pub(super) fn count_http2(&mut self, orders: &mut Orders<'_>) {
        let Some(stats) = orders.http2_stats() else { return };
        let before = std::mem::replace(&mut self.conn.counted, stats);
        let stalls = &mut self.state.tally.stalls;
        let ns = |now: u64, before: u64| (now - before) * 1_000_000;
        stalls.stream_window_ns +=
            ns(stats.stalls.stream_window_ms, before.stalls.stream_window_ms);
        stalls.connection_window_ns +=
            ns(stats.stalls.connection_window_ms, before.stalls.connection_window_ms);
        stalls.receive_window_used_up +=
            u64::from(stats.receive_windows_used_up - before.receive_windows_used_up);
    }
}
