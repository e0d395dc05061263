//! RFC 9113 §3.4, §5, §6.8, §9.1: one connection, in either role: its parts and its life.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_hpack::{Decoder, Encoder};
use bolide_semantics::{
    AbortReason, Blame, CloseReason, ConnectionEvent, Context, DeadlineReason, ExchangeEvent,
    ExchangeId, Misuse, Output, Role,
};

use crate::abuse::Budgets;
use crate::deadlines::{Deadlines, Earliest};
use crate::error::{ErrorCode, Fault};
use crate::frame::{self, PREFACE};
use crate::goaway::{Goaway, LAST_OF_ALL, Leaving};
use crate::incoming::Incoming;
use crate::limits::{DRAIN_NOTICE, Limits, SCAN_INTERVAL, TRIM_AFTER};
use crate::output_watch::OutputWatch;
use crate::pending::{Event, Pending};
use crate::ping::{Ping, Purpose};
use crate::receive_flow::ReceiveFlow;
use crate::resets::Resets;
use crate::scheduler::Scheduler;
use crate::settings::Settings;
use crate::stats::{Stalls, Stats, StatsBook};
use crate::stream::{Place, State};
use crate::streams::Streams;

/// Header compression, both directions.
#[derive(Debug)]
pub(crate) struct Compression {
    pub(crate) decoder: Decoder,
    pub(crate) encoder: Encoder,
}

/// One HTTP/2 connection, server or client.
///
/// After every read, and after every order from outside a turn, call [`poll`](Self::poll) until it
/// returns [`Output::Wait`] or [`Output::Closed`], then send what is queued. Orders may be given
/// between two polls.
///
/// An exchange is over, and its number means nothing any more, when
/// [`Aborted`](ExchangeEvent::Aborted) is reported for it, when the caller aborts it, or when both
/// directions have ended. A server's exchange is over as soon as its response has ended: what still
/// comes of the request is discarded and, when it is long, refused with RST_STREAM(NO_ERROR)
/// (RFC 9113 §8.1).
#[derive(Debug)]
pub struct Connection {
    pub(crate) role: Role,
    pub(crate) limits: Arc<Limits>,
    /// Why it is over, once it is. Boxed, for a connection is small as long as it is open.
    pub(crate) closed: Option<Box<CloseReason>>,
    pub(crate) settings: Settings,
    pub(crate) ping: Ping,
    pub(crate) goaway: Goaway,
    pub(crate) streams: Streams,
    pub(crate) scheduler: Scheduler,
    pub(crate) receive_flow: ReceiveFlow,
    pub(crate) budgets: Budgets,
    pub(crate) compression: Compression,
    pub(crate) incoming: Incoming,
    pub(crate) pending: Pending,
    pub(crate) output: OutputWatch,
    pub(crate) deadlines: Deadlines,
    pub(crate) stats: StatsBook,
}

// 768 bytes are a size class of allocators; the next is a sixth larger.
const _: () = assert!(size_of::<Connection>() <= 768);

impl Connection {
    /// A connection that begins at `now`. Its preface and settings are queued by the first poll or
    /// request. It owns no memory but itself until a stream is opened.
    #[must_use]
    pub fn new(role: Role, limits: &Arc<Limits>, now: Instant) -> Self {
        Self {
            role,
            limits: Arc::clone(limits),
            closed: None,
            settings: Settings::new(limits),
            ping: Ping::default(),
            goaway: Goaway::new(),
            streams: Streams::new(),
            scheduler: Scheduler::new(),
            receive_flow: ReceiveFlow::new(limits),
            budgets: Budgets::default(),
            compression: Compression {
                decoder: Decoder::new(crate::limits::Heads::DEFAULT.header_table_bytes as usize),
                encoder: Encoder::new(),
            },
            incoming: Incoming::new(role == Role::Server),
            pending: Pending::default(),
            output: OutputWatch::new(),
            deadlines: Deadlines::new(now),
            stats: StatsBook::default(),
        }
    }

    /// Reads on, sends what can be sent, and looks at the time, until there is one thing to report.
    /// Call it until it returns [`Output::Wait`] or [`Output::Closed`]; once closed, a connection
    /// stays closed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Output {
        if self.incoming.is_in_run()
            && let Some(output) = self.next_of_run(cx)
        {
            return output;
        }
        if let Some(closed) = self.begin(cx) {
            return Output::Closed(closed);
        }
        loop {
            while let Some(event) = self.pending.pop() {
                if let Some(output) = self.report(event) {
                    return output;
                }
            }
            match self.receive(cx) {
                Ok(Some((id, event))) => return Output::Exchange(id, event),
                Ok(None) => {}
                Err(fault) => return self.fail(cx, fault),
            }
            self.send_listed(cx);
            if self.pending.is_empty() {
                match self.end_turn(cx) {
                    Ok(Some(output)) => return output,
                    Ok(None) => {}
                    Err(fault) => return self.fail(cx, fault),
                }
            }
        }
    }

    /// The peer will send nothing more. Takes effect when the input has been read.
    pub fn receive_eof(&mut self) {
        self.incoming.eof = true;
    }

    /// Begins an orderly end: requests that are on their way are still served (RFC 9113 §6.8), and
    /// the connection closes after the last exchange.
    pub fn shut_down(&mut self, cx: &mut Context<'_>) {
        if self.begin(cx).is_some() || self.goaway.leaving != Leaving::No {
            return;
        }
        if self.role == Role::Client {
            self.leave_finally(cx);
            return;
        }
        self.goaway.leaving = Leaving::Announced;
        frame::goaway::write(cx.output.tail(), LAST_OF_ALL, ErrorCode::NoError, "");
        let payload = self.ping.send(Purpose::Drain, self.deadlines.clock.ms);
        frame::ping::write(cx.output.tail(), payload, false);
    }

    /// The second GOAWAY: nothing above the streams that came is served.
    pub(crate) fn leave_finally(&mut self, cx: &mut Context<'_>) {
        let last = self.streams.highest_peer;
        self.goaway.leaving = Leaving::Final { last };
        // Requests that have been answered don't hold the connection up.
        let answered = self.streams.open_slots().map(|slot| self.streams.get(slot));
        let answered = answered.filter(|stream| stream.state == State::Discarding);
        let answered = answered.map(|stream| stream.id);
        answered.for_each(|stream| self.pending.refused_rests.push(stream));
        frame::goaway::write(cx.output.tail(), last, ErrorCode::NoError, "");
    }

    /// Returns whether reading makes sense. If not, poll again when the output has drained.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.incoming.held && self.closed.is_none()
    }

    /// Returns whether the peer takes an extended CONNECT (RFC 8441 §3). `None` before its SETTINGS have come.
    #[must_use]
    pub fn takes_protocols(&self) -> Option<bool> {
        self.settings.received.then_some(self.settings.peer_connect_protocol)
    }

    /// Returns whether no exchange is open and nothing is half received: the connection may be shed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.open() == 0
            && self.incoming.is_between_frames()
            && self.deadlines.partial_since().is_none()
    }

    /// The round trip that windows are tuned to: the socket's own measure. Without it, that of the
    /// first SETTINGS is used.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.receive_flow.set_rtt(rtt);
    }

    /// Sets the size that the connection's receive window may grow to, and so the bytes of bodies that the peer
    /// can make the caller hold, in bytes: at most
    /// [`connection_window_bytes_max`](crate::limits::Windows::connection_window_bytes_max). A window never shrinks.
    pub fn set_receive_budget(&mut self, bytes: u32) {
        self.receive_flow
            .set_window_max(bytes.min(self.limits.windows.connection_window_bytes_max));
    }

    /// Returns whether the connection's receive window would be larger by now, had its budget been.
    #[must_use]
    pub fn wants_receive_budget(&self) -> bool {
        self.receive_flow.is_short()
    }

    /// How many exchanges may still be opened (client).
    #[must_use]
    pub fn exchanges_available(&self) -> u32 {
        if !self.goaway.may_open() || self.closed.is_some() {
            return 0;
        }
        self.settings.peer_concurrent_streams.saturating_sub(self.streams.open())
    }

    /// The counters up to the last turn.
    pub fn stats(&mut self) -> Stats {
        self.stats.read(&self.deadlines.clock)
    }

    /// RST_STREAM frames by error code, since this was asked last; `None`: there were none.
    pub fn take_resets(&mut self) -> Option<Box<Resets>> {
        self.stats.take_resets()
    }

    /// How long an open exchange has waited to send, and for what, up to its last change.
    #[must_use]
    pub fn stalls(&self, id: ExchangeId) -> Option<Stalls> {
        self.streams.find(id.0).map(|slot| self.stats.of_stream(slot, id.0))
    }

    /// The memory that the connection holds besides itself, in bytes: streams, header tables, a header block in pieces, and
    /// what waits for a window or its turn.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.allocated_bytes() + self.streams.waiting_bytes
    }

    /// Bytes of bodies and tunnels that were reported and are not [consumed](Self::consumed).
    #[inline]
    #[must_use]
    pub fn unconsumed_bytes(&self) -> usize {
        // What comes and goes in a run reaches the window at its end.
        let (came, went) =
            self.incoming.run.as_ref().map_or((0, 0), |run| (run.received, run.consumed));
        let before = self.receive_flow.window.unconsumed();
        (before.saturating_add(came)).saturating_sub(went) as usize
    }

    /// The same of one exchange.
    #[must_use]
    pub fn unconsumed_bytes_of(&self, id: ExchangeId) -> usize {
        let stream = self.streams.find(id.0).map(|slot| self.streams.get(slot));
        stream.map_or(0, |stream| stream.receiving.unconsumed as usize)
    }

    /// The memory that the connection holds besides itself, without body bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.streams.allocated_bytes()
            + self.budgets.allocated_bytes()
            + self.compression.decoder.allocated_bytes()
            + self.compression.encoder.allocated_bytes()
            + self.incoming.block.as_ref().map_or(0, |block| block.bytes.capacity())
    }

    /// Begins every call from outside. Returns the reason when the connection is closed.
    #[inline]
    pub(crate) fn begin(&mut self, cx: &mut Context<'_>) -> Option<CloseReason> {
        self.deadlines.clock.advance(cx.now);
        self.output.wake(cx.output.len(), self.deadlines.clock.ms);
        if let Some(reason) = &self.closed {
            return Some(**reason);
        }
        if !self.settings.sent {
            self.start(cx);
        }
        if self.incoming.is_in_run() {
            self.settle_run(cx);
        }
        None
    }

    /// RFC 9113 §3.4: the preface, our settings, and the connection's window.
    #[cold]
    fn start(&mut self, cx: &mut Context<'_>) {
        let out = cx.output.tail();
        if self.role == Role::Client {
            out.extend_from_slice(PREFACE);
        }
        self.settings.write_first(out, self.role, &self.limits);
        let window = self.receive_flow.window.size;
        if let Some(more) = window.checked_sub(crate::settings::INITIAL_WINDOW_BYTES)
            && more > 0
        {
            frame::window_update::write(out, 0, more);
        }
    }

    /// The connection ends with a GOAWAY.
    #[cold]
    fn fail(&mut self, cx: &mut Context<'_>, fault: Fault) -> Output {
        let last = match self.goaway.leaving {
            Leaving::Final { last } => last,
            Leaving::No | Leaving::Announced => self.streams.highest_peer,
        };
        frame::goaway::write(cx.output.tail(), last, fault.code, fault.what);
        self.close(fault.reason())
    }

    fn close(&mut self, reason: CloseReason) -> Output {
        self.closed = Some(Box::new(reason));
        Output::Closed(reason)
    }

    /// Turns a pending event into a report, unless it has been overtaken.
    fn report(&mut self, event: Event) -> Option<Output> {
        Some(match event {
            Event::Sendable(id) => {
                let slot = self.streams.find(id)?;
                if self.streams.get(slot).sending.place != Place::Nowhere {
                    return None;
                }
                Output::Exchange(ExchangeId(id), ExchangeEvent::Sendable)
            }
            Event::Aborted(id, reason) => {
                Output::Exchange(ExchangeId(id), ExchangeEvent::Aborted(reason))
            }
            Event::Concurrency(exchanges_max) => {
                Output::Connection(ConnectionEvent::Concurrency { exchanges_max })
            }
            Event::Draining(last) => {
                Output::Connection(ConnectionEvent::Draining { last: ExchangeId(last) })
            }
        })
    }

    /// Nothing is left to read or to send. Returns `None` when something came up.
    fn end_turn(&mut self, cx: &mut Context<'_>) -> Result<Option<Output>, Fault> {
        self.incoming.ahead.forget();
        self.refuse_rests(cx)?;
        if self.streams.open() == 0 {
            if self.goaway.is_final() {
                let reason = CloseReason::orderly("drained", "the connection was shut down");
                return Ok(Some(self.close(reason)));
            }
            if self.role == Role::Client && self.goaway.is_received() {
                let reason = CloseReason::orderly("goaway", "the server has left");
                return Ok(Some(self.close(reason)));
            }
        }
        if self.incoming.eof && !self.incoming.held {
            return Ok(Some(self.close_at_eof()));
        }
        // While responses wait for the peer to read, handlers take nothing, and another stream would wait, too.
        if self.receive_flow.window.is_full()
            && cx.output_room() > 0
            && let Some(increment) =
                self.receive_flow.make_room(self.limits.windows.connection_window_bytes)
        {
            frame::window_update::write(cx.output.tail(), 0, increment);
        }
        let waits = !cx.input.is_empty() && !self.incoming.held;
        let partial = waits && self.incoming.data.is_none() && self.incoming.skip == 0;
        self.deadlines.partial(partial, self.incoming.frames);
        if self.deadlines.is_due(cx.now) {
            if let Some(reason) = self.expire(cx)? {
                return Ok(Some(self.close(reason)));
            }
            if !self.pending.is_empty() {
                return Ok(None);
            }
        }
        let length = cx.output.len();
        self.output.rest(length);
        let deadline = self.earliest(length).deadline(cx.now);
        self.deadlines.set_due(deadline);
        Ok(Some(Output::Wait(deadline)))
    }

    fn close_at_eof(&mut self) -> Output {
        if self.streams.open() > 0 {
            let what = "the peer closed the connection with exchanges open";
            return self.close(CloseReason::peer("eof", what));
        }
        if !self.is_idle() || !self.settings.received {
            let what = "the peer closed the connection within a frame or before its settings";
            return self.close(CloseReason::peer("eof", what));
        }
        self.close(CloseReason::orderly("eof", "the peer closed the connection"))
    }

    /// Everything that the connection as a whole waits for.
    fn earliest(&self, output_length: usize) -> Earliest<'_> {
        let limits = &self.limits;
        let deadlines = &self.deadlines;
        let mut earliest = Earliest::new(&deadlines.clock);
        if !self.settings.received {
            earliest.consider(0, limits.times.head_time, DeadlineReason::Head);
        }
        if let Some(since_ms) = deadlines.partial_since() {
            earliest.consider(since_ms, limits.times.head_time, DeadlineReason::Head);
        }
        if let Some(block) = &self.incoming.block {
            earliest.consider(block.since_ms, limits.times.head_time, DeadlineReason::Head);
        }
        if !self.settings.is_acknowledged() {
            let (since_ms, limit) = (self.settings.sent_ms, limits.times.acknowledgement_time);
            earliest.consider(since_ms, limit, DeadlineReason::Acknowledgement);
        }
        match self.ping.waiting() {
            Some((Purpose::Drain, since_ms)) => {
                earliest.consider(since_ms, DRAIN_NOTICE, DeadlineReason::Drain);
            }
            Some((Purpose::Alive, since_ms)) => {
                earliest.consider(
                    since_ms,
                    limits.times.ping_reply,
                    DeadlineReason::Acknowledgement,
                );
            }
            None => {}
        }
        if output_length > 0 {
            earliest.consider(
                self.output.since_ms,
                limits.times.write_pause,
                DeadlineReason::Write,
            );
        }
        if self.streams.open() > 0 {
            earliest.consider(deadlines.scan_ms, SCAN_INTERVAL, DeadlineReason::Body);
        } else {
            if !deadlines.trimmed {
                earliest.consider(deadlines.idle_ms, TRIM_AFTER, DeadlineReason::Idle);
            }
            if !self.is_beginning() {
                earliest.consider(deadlines.idle_ms, limits.times.idle_time, DeadlineReason::Idle);
            }
        }
        earliest
    }

    /// Returns whether a request may be on its way: a part of a frame is there, or waits for the output.
    pub(crate) fn is_beginning(&self) -> bool {
        self.incoming.held || self.deadlines.partial_since().is_some()
    }

    /// The exchange of an order, or why there is none.
    #[inline]
    pub(crate) fn ordered(&mut self, cx: &mut Context<'_>, id: ExchangeId) -> Result<u32, Misuse> {
        if self.begin(cx).is_some() {
            return Err(Misuse::UnknownExchange);
        }
        let slot = self.streams.find(id.0).ok_or(Misuse::UnknownExchange)?;
        if self.streams.get(slot).state == State::Discarding {
            return Err(Misuse::UnknownExchange);
        }
        Ok(slot)
    }

    /// Takes a stream out of everything; what it received and was not consumed counts as consumed.
    #[inline]
    pub(crate) fn remove(&mut self, cx: &mut Context<'_>, slot: u32) {
        self.stop_waiting(slot);
        let unconsumed = self.streams.get(slot).receiving.unconsumed;
        self.streams.remove(slot);
        if self.streams.open() == 0 {
            self.deadlines.idle_ms = self.deadlines.clock.ms;
        }
        if unconsumed > 0 {
            self.release(cx, unconsumed);
        }
    }

    /// Bytes of the connection's window are free again.
    #[inline]
    pub(crate) fn release(&mut self, cx: &mut Context<'_>, bytes: u32) {
        if let Some(increment) = self.receive_flow.consume(bytes, self.deadlines.clock.us) {
            frame::window_update::write(cx.output.tail(), 0, increment);
        }
    }

    /// Counts a control frame of ours that was just queued.
    pub(crate) fn count_control(&mut self, cx: &Context<'_>) -> Result<(), Fault> {
        self.output.control_frame(cx.output.len(), self.limits.frames.control_frames_count)
    }

    /// Sends RST_STREAM and remembers that the peer may not know it yet.
    pub(crate) fn write_reset(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        code: ErrorCode,
    ) -> Result<(), Fault> {
        frame::rst_stream::write(cx.output.tail(), id, code);
        self.streams.reset.insert(id);
        self.stats.reset_sent(code as u32);
        self.count_control(cx)
    }

    /// RFC 9113 §5.4.2: an error of the peer on one stream, which need not be open.
    #[cold]
    pub(crate) fn stream_error(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        code: ErrorCode,
        what: &'static str,
    ) -> Result<(), Fault> {
        self.write_reset(cx, id, code)?;
        if let Some(slot) = self.streams.find(id) {
            if self.streams.get(slot).state != State::Discarding {
                let reason = AbortReason::new(Blame::Peer, "stream-error", what);
                self.pending.push(Event::Aborted(id, reason));
            }
            self.remove(cx, slot);
        }
        self.budgets.own_reset(self.deadlines.clock.ms, &self.limits)
    }

    /// The peer sent something useless.
    #[cold]
    pub(crate) fn glitch(&mut self) -> Result<(), Fault> {
        self.budgets.glitch(self.deadlines.clock.ms, &self.limits)
    }
}
