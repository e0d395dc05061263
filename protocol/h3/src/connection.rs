//! RFC 9114 §3, §5, §6: one connection, in either role: its parts and its life.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bolide_qpack::{Decoder, Encoder};
use bolide_semantics::{
    AbortReason, Blame, BodiesPace, Clock, CloseReason, ConnectionEvent, DeadlineReason, Earliest,
    ExchangeEvent, ExchangeId, Misuse, Output, Pace, Role, millis,
};
use bytes::Bytes;

use crate::abuse::Budgets;
use crate::control::{Control, PeerKind, PeerStream};
use crate::error::{ErrorCode, Fault};
use crate::goaway::Leaving;
use crate::limits::{
    DRAIN_NOTICE, Limits, SCAN_INTERVAL, TRIM_AFTER, UNIDIRECTIONAL_STREAMS_COUNT,
};
use crate::scheduler::Scheduler;
use crate::stream::{Part, Stream, number_of};
use crate::streams::Streams;
use crate::transport::{Context, Quic, QuicEvent};
use crate::varint;

/// Field compression, both directions.
#[derive(Debug)]
pub(crate) struct Compression {
    pub(crate) decoder: Decoder,
    pub(crate) encoder: Encoder,
    /// Streams whose sections wait for the peer's encoder.
    pub(crate) blocked: Vec<u32>,
}

/// Something that is to be reported.
#[derive(Debug)]
pub(crate) enum Event {
    Exchange(u32, ExchangeEvent),
    /// The response is complete, and the rest of the request is not needed. The stream is there until this is reported: how much
    /// of the request was sent can be asked when the end of the response is.
    NotNeeded(u32),
    Connection(ConnectionEvent),
}

/// Since when the connection waits for what.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) clock: Clock,
    /// When something is due.
    due: Option<Instant>,
    /// Since when no stream has been open.
    pub(crate) idle_ms: u32,
    /// When open streams were last looked through.
    pub(crate) scan_ms: u32,
    pub(crate) bodies: BodiesPace,
    /// Memory has been given back since the last stream.
    is_trimmed: bool,
}

/// One HTTP/3 connection, server or client.
///
/// After the transport has received something, and after every order from outside a turn, call [`poll`](Self::poll)
/// until it returns [`Output::Wait`] or [`Output::Closed`]. Orders may be given between two polls. The numbers of
/// exchanges count the requests from 1: request *n* is on the transport's stream 4(*n* − 1).
///
/// An exchange is over, and its number means nothing any more, when
/// [`Aborted`](ExchangeEvent::Aborted) is reported for it, when the caller aborts it, or when both
/// directions have ended. A server's exchange is over as soon as its response has ended: what still
/// comes of the request is refused with STOP_SENDING and H3_NO_ERROR (RFC 9114 §4.1).
#[derive(Debug)]
pub struct Connection {
    pub(crate) role: Role,
    pub(crate) limits: Arc<Limits>,
    closed: Option<Box<CloseReason>>,
    pub(crate) control: Control,
    pub(crate) streams: Streams,
    pub(crate) scheduler: Scheduler,
    pub(crate) budgets: Budgets,
    pub(crate) compression: Compression,
    pub(crate) pending: VecDeque<Event>,
    /// Streams of which something may be read.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) datagrams: VecDeque<(u32, Bytes)>,
    pub(crate) times: Times,
    /// Buffer in which heads are written before the transport takes them.
    pub(crate) scratch: Vec<u8>,
    /// Bytes of bodies that were reported and are not consumed.
    pub(crate) unconsumed: usize,
}

impl Connection {
    /// A connection that begins at `now`. Its control stream is opened by the first poll or request.
    #[must_use]
    pub fn new(role: Role, limits: &Arc<Limits>, now: Instant) -> Self {
        let decoder = Decoder::default();
        Self {
            role,
            limits: Arc::clone(limits),
            closed: None,
            control: Control::new(role, limits, &decoder),
            streams: Streams::default(),
            scheduler: Scheduler::default(),
            budgets: Budgets::new(limits),
            compression: Compression { decoder, encoder: Encoder::new(), blocked: Vec::new() },
            pending: VecDeque::new(),
            ready: VecDeque::new(),
            datagrams: VecDeque::new(),
            times: Times {
                clock: Clock::new(now),
                due: None,
                idle_ms: 0,
                scan_ms: 0,
                bodies: BodiesPace::default(),
                is_trimmed: true,
            },
            scratch: Vec::new(),
            unconsumed: 0,
        }
    }

    /// Reads on, sends what can be sent, and looks at the time, until there is one thing to report.
    /// Call it until it returns [`Output::Wait`] or [`Output::Closed`]; once closed, a connection
    /// stays closed.
    pub fn poll<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Output {
        if let Some(reason) = self.begin(cx) {
            return Output::Closed(reason);
        }
        match self.advance(cx) {
            Ok(output) => output,
            Err(fault) => {
                cx.quic.close(fault.code as u64, fault.what);
                self.close(fault.reason())
            }
        }
    }

    fn advance<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<Output, Fault> {
        loop {
            while let Some(event) = self.pending.pop_front() {
                if let Some(output) = self.report(cx, event) {
                    return Ok(output);
                }
            }
            while let Some(&number) = self.ready.front() {
                let step = self.read_stream(cx, number)?;
                self.streams.charge(number);
                match step {
                    Some(event) => return Ok(Output::Exchange(ExchangeId(number), event)),
                    None => {
                        self.ready.pop_front();
                        if let Some(stream) = self.streams.find(number) {
                            stream.receiving.is_ready = false;
                        }
                        if !self.pending.is_empty() {
                            break;
                        }
                    }
                }
            }
            if !self.pending.is_empty() {
                continue;
            }
            match cx.quic.event() {
                Some(QuicEvent::Closed(reason)) => return Ok(self.close(reason)),
                Some(event) => {
                    self.happened(cx, event)?;
                    continue;
                }
                None => {}
            }
            self.send_listed(cx);
            self.announce_leaving(cx.quic);
            self.flush(cx)?;
            if self.pending.is_empty()
                && let Some(output) = self.end_turn(cx)?
            {
                return Ok(output);
            }
        }
    }

    /// Something happened below.
    fn happened<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        event: QuicEvent,
    ) -> Result<(), Fault> {
        match event {
            QuicEvent::Opened(id) if id & 2 != 0 => {
                if self.control.peers.len() >= UNIDIRECTIONAL_STREAMS_COUNT {
                    let what = "too many unidirectional streams";
                    return Err(Fault::abuse("reserved-stream-flood", what));
                }
                let (kind, frames) = (PeerKind::Untyped, crate::frame::Frames::default());
                self.control.peers.push(PeerStream { id, kind, frames, partial: Vec::new() });
                self.read_peer(cx, id)
            }
            QuicEvent::Opened(id) => self.opened_by_peer(cx, id),
            QuicEvent::Readable(id) if id & 2 != 0 => self.read_peer(cx, id),
            QuicEvent::Readable(id) => {
                if let Some(number) = number_of(id) {
                    self.look_at(number);
                }
                Ok(())
            }
            QuicEvent::Writable(id) => {
                if let Some(number) = number_of(id) {
                    self.writable(number);
                }
                Ok(())
            }
            QuicEvent::Stopped(id, _) if id & 2 != 0 => {
                let what = "a stream that the connection needs was stopped";
                Err(Fault::new(ErrorCode::ClosedCriticalStream, what))
            }
            QuicEvent::Stopped(id, code) => self.stopped(cx, id, code),
            QuicEvent::Openable => {
                self.concurrency(cx);
                Ok(())
            }
            QuicEvent::Datagram(bytes) => self.receive_datagram(bytes),
            QuicEvent::Closed(_) => Ok(()),
        }
    }

    /// The peer opened a bidirectional stream.
    fn opened_by_peer<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, id: u64) -> Result<(), Fault> {
        if self.role == Role::Client {
            let what = "a server opened a bidirectional stream";
            return Err(Fault::new(ErrorCode::StreamCreationError, what));
        }
        let number = number_of(id).filter(|_| self.control.goaway.serves(id));
        let full = self.streams.open() >= self.limits.concurrent_streams_count;
        let Some(number) = number.filter(|_| !full) else {
            let code = ErrorCode::RequestRejected as u64;
            cx.quic.stop(id, code);
            cx.quic.reset(id, code);
            return self.glitch();
        };
        let priority = self.control.early.take(number);
        let stream = self.insert(number);
        if let Some(priority) = priority {
            stream.sending.priority = priority;
            cx.quic.prioritise(id, priority);
        }
        self.look_at(number);
        Ok(())
    }

    /// A stream is open.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> &mut Stream {
        if self.streams.open() == 0 {
            self.times.scan_ms = self.times.clock.ms;
            self.times.is_trimmed = false;
            self.scheduler.stalled = None;
        }
        self.streams.insert(number, self.times.clock.ms)
    }

    /// Something may be read of a stream.
    pub(crate) fn look_at(&mut self, number: u32) {
        if let Some(stream) = self.streams.find(number)
            && !stream.receiving.is_ready
            && stream.receiving.part != Part::Ended
        {
            stream.receiving.is_ready = true;
            self.ready.push_back(number);
        }
    }

    /// Returns whether the peer takes an extended CONNECT (RFC 9220 §3). `None` before its SETTINGS have come.
    #[must_use]
    pub fn takes_protocols(&self) -> Option<bool> {
        self.control.settings.map(|settings| settings.connect_protocol)
    }

    /// Returns whether no exchange is open: the connection may be shed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.open() == 0
    }

    /// How many exchanges are open.
    #[must_use]
    pub fn exchanges_open(&self) -> u32 {
        self.streams.open()
    }

    /// How many exchanges may still be opened (client).
    #[must_use]
    pub fn exchanges_available<Q: Quic>(&self, quic: &Q) -> u32 {
        if !self.control.goaway.may_open() || self.closed.is_some() {
            return 0;
        }
        u32::try_from(quic.openable()).unwrap_or(u32::MAX)
    }

    /// The memory that the connection holds besides itself, in bytes: streams, tables, sections in pieces, and what waits
    /// to be sent or read.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.streams.allocated_bytes()
            + self.streams.charged_bytes
            + self.compression.decoder.allocated_bytes()
            + self.compression.encoder.allocated_bytes()
            + self.control.allocated_bytes()
            + self.scratch.capacity()
            + self.datagrams.capacity() * size_of::<(u32, Bytes)>()
    }

    /// Bytes of bodies and tunnels that were reported and are not [consumed](Self::consumed).
    #[must_use]
    pub fn unconsumed_bytes(&self) -> usize {
        self.unconsumed
    }

    /// The caller has used so many bytes of a body or tunnel: the peer may send more.
    pub fn consumed<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, id: ExchangeId, bytes: usize) {
        if self.begin(cx).is_some() {
            return;
        }
        let Some(stream) = self.streams.find(id.0) else { return };
        let receiving = &mut stream.receiving;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(receiving.unconsumed);
        let full = receiving.unconsumed >= self.limits.stream_unconsumed_bytes;
        receiving.unconsumed -= bytes;
        self.unconsumed -= bytes as usize;
        if full {
            receiving.pace = Pace::new(self.times.clock.ms);
            self.look_at(id.0);
        }
    }

    /// Begins every call from outside. Returns the reason when the connection is closed.
    #[inline]
    pub(crate) fn begin<Q>(&mut self, cx: &Context<'_, Q>) -> Option<CloseReason> {
        self.times.clock.advance(cx.now);
        self.closed.as_ref().map(|reason| **reason)
    }

    fn close(&mut self, reason: CloseReason) -> Output {
        self.closed = Some(Box::new(reason));
        Output::Closed(reason)
    }

    /// An orderly end.
    pub(crate) fn close_orderly<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        name: &'static str,
        what: &'static str,
    ) -> Result<Option<Output>, Fault> {
        self.flush(cx)?;
        cx.quic.close(ErrorCode::NoError as u64, "");
        Ok(Some(self.close(CloseReason::orderly(name, what))))
    }

    /// Returns whether no exchange is open, and the peer has all of those that were.
    fn is_over_with<Q: Quic>(&self, quic: &Q) -> bool {
        self.streams.open() == 0 && quic.is_acknowledged()
    }

    /// Turns a pending event into a report, unless it has been overtaken.
    fn report<Q: Quic>(&mut self, cx: &mut Context<'_, Q>, event: Event) -> Option<Output> {
        match event {
            Event::Exchange(number, ExchangeEvent::Sendable) => {
                let sending = &self.streams.find(number)?.sending;
                if sending.has_more() || !(sending.part == Part::Content || sending.cut.is_some()) {
                    return None;
                }
                Some(Output::Exchange(ExchangeId(number), ExchangeEvent::Sendable))
            }
            Event::NotNeeded(number) => {
                self.streams.peek(number)?;
                self.remove(cx, number, ErrorCode::NoError);
                let what = "the rest of the request is not needed";
                let reason = AbortReason::new(Blame::Peer, "not-needed", what);
                Some(Output::Exchange(ExchangeId(number), ExchangeEvent::Aborted(reason)))
            }
            Event::Exchange(number, event) => Some(Output::Exchange(ExchangeId(number), event)),
            Event::Connection(event) => Some(Output::Connection(event)),
        }
    }

    /// Nothing is left to read or to send. Returns `None` when something came up.
    fn end_turn<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<Option<Output>, Fault> {
        let goaway = &self.control.goaway;
        if self.is_over_with(cx.quic) {
            if goaway.is_final() {
                return self.close_orderly(cx, "drained", "the connection was shut down");
            }
            if self.role == Role::Client && goaway.is_received() {
                return self.close_orderly(cx, "goaway", "the server has left");
            }
        }
        if self.times.due.is_some_and(|due| cx.now >= due) {
            if let Some(output) = self.expire(cx)? {
                return Ok(Some(output));
            }
            if !self.pending.is_empty() {
                return Ok(None);
            }
            self.flush(cx)?;
        }
        let deadline = self.earliest().deadline(cx.now);
        self.times.due = deadline.map(|deadline| deadline.at);
        Ok(Some(Output::Wait(deadline)))
    }

    /// Everything that the connection as a whole waits for.
    fn earliest(&self) -> Earliest<'_> {
        let Times { clock, idle_ms, scan_ms, is_trimmed, .. } = &self.times;
        let mut earliest = Earliest::new(clock);
        if self.control.settings.is_none() {
            earliest.consider(0, self.limits.times.head_time, DeadlineReason::Head);
        }
        if let Leaving::Announced { since_ms } = self.control.goaway.leaving {
            earliest.consider(since_ms, DRAIN_NOTICE, DeadlineReason::Drain);
        }
        if self.streams.open() > 0 {
            earliest.consider(*scan_ms, SCAN_INTERVAL, DeadlineReason::Body);
        } else {
            if !is_trimmed {
                earliest.consider(*idle_ms, TRIM_AFTER, DeadlineReason::Idle);
            }
            earliest.consider(*idle_ms, self.limits.times.idle_time, DeadlineReason::Idle);
        }
        earliest
    }

    /// Something is due.
    fn expire<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<Option<Output>, Fault> {
        let clock = self.times.clock;
        if self.control.settings.is_none()
            && clock.elapsed_ms(0) >= millis(self.limits.times.head_time)
        {
            let (code, what) = (ErrorCode::MissingSettings, "the peer's settings did not come");
            let blame = Blame::Circumstance;
            return Err(Fault { code, blame, name: "slow-head", what });
        }
        if let Leaving::Announced { since_ms } = self.control.goaway.leaving
            && clock.elapsed_ms(since_ms) >= millis(DRAIN_NOTICE)
        {
            self.leave_finally();
            if self.is_over_with(cx.quic) {
                return self.close_orderly(cx, "drained", "the connection was shut down");
            }
        }
        if self.streams.open() > 0 {
            if clock.elapsed_ms(self.times.scan_ms) >= millis(SCAN_INTERVAL) {
                self.scan(cx)?;
            }
        } else if clock.elapsed_ms(self.times.idle_ms) >= millis(self.limits.times.idle_time) {
            self.leave_finally();
            return self.close_orderly(cx, "idle", "no exchange for a while");
        } else if clock.elapsed_ms(self.times.idle_ms) >= millis(TRIM_AFTER) {
            self.times.is_trimmed = true;
            self.trim();
        }
        Ok(None)
    }

    /// Sends what our own unidirectional streams have to send.
    fn flush<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<(), Fault> {
        if let Some(instructions) = self.compression.encoder.instructions()
            && !instructions.is_empty()
        {
            self.control.encoder_output().append(instructions);
        }
        self.compression.decoder.increment(self.control.decoder_output());
        self.control.flush(cx)
    }

    /// RFC 9114 §8: an error of the peer's on one stream.
    #[cold]
    pub(crate) fn stream_error<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        code: ErrorCode,
        what: &'static str,
    ) -> Result<(), Fault> {
        let reason = AbortReason::new(Blame::Peer, "stream-error", what);
        self.give_up(cx, number, code, Some(reason));
        self.budgets.own_reset(self.times.clock.ms, &self.limits)
    }

    /// Ends a stream before its time. The reason is reported if the caller knows of the exchange.
    pub(crate) fn give_up<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        code: ErrorCode,
        reason: Option<AbortReason>,
    ) {
        let Some(stream) = self.streams.find(number) else { return };
        let (id, reported) = (stream.id(), stream.is_reported);
        let sending = &stream.sending;
        if sending.part != Part::Ended || sending.has_more() {
            cx.quic.reset(id, code as u64);
        }
        self.remove(cx, number, code);
        if let Some(reason) = reason.filter(|_| reported) {
            self.pending.push_back(Event::Exchange(number, ExchangeEvent::Aborted(reason)));
        }
    }

    /// Takes a stream out of everything. What the peer still sends of it is refused with the code.
    pub(crate) fn remove<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        code: ErrorCode,
    ) {
        let Some(stream) = self.streams.find(number) else { return };
        let id = stream.id();
        let receiving = &stream.receiving;
        if !receiving.has_ended && receiving.reset.is_none() {
            cx.quic.stop(id, code as u64);
        }
        if !receiving.needs_no_table() {
            self.compression.decoder.cancel(id, self.control.decoder_output());
        }
        if receiving.blocked.is_some() {
            self.compression.decoder.unblock();
            self.compression.blocked.retain(|blocked| *blocked != number);
        }
        self.unconsumed -= receiving.unconsumed as usize;
        if let Some(turn) = stream.sending.turn {
            self.scheduler.remove(stream.sending.priority, turn);
        }
        self.streams.remove(number);
        if self.streams.open() == 0 {
            self.times.idle_ms = self.times.clock.ms;
        }
    }

    /// The exchange of an order.
    #[inline]
    pub(crate) fn ordered<Q>(
        &mut self,
        cx: &Context<'_, Q>,
        id: ExchangeId,
    ) -> Result<&mut Stream, Misuse> {
        if self.begin(cx).is_some() {
            return Err(Misuse::UnknownExchange);
        }
        let stream = self.streams.find(id.0).filter(|stream| stream.is_reported);
        stream.ok_or(Misuse::UnknownExchange)
    }

    /// The peer sent something useless.
    #[cold]
    pub(crate) fn glitch(&mut self) -> Result<(), Fault> {
        self.budgets.glitch(self.times.clock.ms, &self.limits)
    }

    /// The peer allows so many exchanges (client).
    pub(crate) fn concurrency<Q: Quic>(&mut self, cx: &Context<'_, Q>) {
        if self.role == Role::Client {
            let openable = u32::try_from(cx.quic.openable()).unwrap_or(u32::MAX);
            let exchanges_max = openable.saturating_add(self.streams.open());
            let event = ConnectionEvent::Concurrency { exchanges_max };
            self.pending.push_back(Event::Connection(event));
        }
    }

    /// RFC 9297 §2.1: a datagram of one exchange.
    fn receive_datagram(&mut self, mut bytes: Bytes) -> Result<(), Fault> {
        let wrong = || {
            let what = "a datagram that names no stream";
            Fault::new(ErrorCode::DatagramError, what)
        };
        let (quarter, length) = varint::read(&bytes).ok_or_else(wrong)?;
        if quarter >= 1 << 60 {
            return Err(wrong());
        }
        let number = number_of(quarter * 4);
        let Some(number) = number.filter(|number| self.streams.peek(*number).is_some()) else {
            return self.glitch();
        };
        if self.limits.datagrams_count == 0 {
            return self.glitch();
        }
        if self.datagrams.len() >= self.limits.datagrams_count {
            self.datagrams.pop_front();
        }
        self.datagrams.push_back((number, bytes.split_off(length)));
        Ok(())
    }

    /// The next datagram that came, and of which exchange. Datagrams come unordered, or not at all.
    pub fn take_datagram(&mut self) -> Option<(ExchangeId, Bytes)> {
        let (number, bytes) = self.datagrams.pop_front()?;
        Some((ExchangeId(number), bytes))
    }
}
