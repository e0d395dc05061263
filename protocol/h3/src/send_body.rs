//! RFC 9114 §7.2.1: bodies that are to be sent, as the transport and other streams allow.

use bolide_buffers::Chunk;
use bolide_semantics::{End, ExchangeEvent, ExchangeId, LENGTH_UNKNOWN, Misuse};
use bytes::Buf;

use crate::connection::{Connection, Event};
use crate::frame::{self, kind};
use crate::head_writer;
use crate::scheduler::Scheduler;
use crate::stream::{After, Part, Sending, Waiting};
use crate::transport::{Context, Quic};

/// Bytes that a stream may send before it is the turn of another.
const TURN_BYTES: usize = 16 * 1024;

/// Content that is not longer is copied to the head before it: a piece of its own costs the transport more. In bytes.
const COPIED_BYTES: usize = 1024;

/// Result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Everything that waited is sent, and the message has ended.
    Done,
    /// Everything that waited is sent: more may be given.
    Empty,
    /// The turn is over, and more waits.
    Over,
    /// The transport takes no more; so many bytes it took.
    Full(usize),
}

impl Connection {
    /// Returns whether all of request `id` has been taken by the transport: one whose stream is open, or has just been reported
    /// as ended.
    #[must_use]
    pub fn is_framed(&self, id: ExchangeId) -> bool {
        self.streams.peek(id.0).is_none_or(|stream| {
            let sending = &stream.sending;
            sending.part == Part::Ended && !sending.has_more() && sending.cut.is_none()
        })
    }

    /// How many bytes of a body, of those that were given, wait for the transport, or are not sent because the server needs
    /// no more of them (§4.1).
    #[must_use]
    pub fn unframed_bytes(&self, id: ExchangeId) -> u64 {
        let Some(stream) = self.streams.peek(id.0) else { return 0 };
        let waiting = stream.sending.waiting.as_ref();
        let waiting = waiting.map(|waiting| waiting.chunk.bytes.len() as u64);
        waiting.or(stream.sending.cut).unwrap_or(0)
    }

    /// Gives the next chunk of a body or of a tunnel's bytes. What is [lent](bolide_buffers::Memory) is copied, for the
    /// transport keeps it until the peer has it. Returns whether more may be given
    /// right away; otherwise [`Sendable`](ExchangeEvent::Sendable) says when.
    /// Nothing is reported after a chunk with [`End::Yes`].
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] before the head, after the end, or once the server needs
    /// no more of the request (§4.1);
    /// [`Misuse::Busy`] while an earlier chunk waits; [`Misuse::WrongLength`] when the body is longer
    /// than its Content-Length, ends before it, or has no place in this response (RFC 9110 §6.4.1).
    #[inline]
    pub fn send_data<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: ExchangeId,
        chunk: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        let chunk = chunk.into();
        let stream = self.ordered(cx, id)?;
        let sending = &mut stream.sending;
        if sending.part != Part::Content {
            return Err(Misuse::OutOfOrder);
        }
        if sending.waiting.is_some() {
            return Err(Misuse::Busy);
        }
        let ends = end == End::Yes;
        if sending.left != LENGTH_UNKNOWN {
            let rest = sending.left.checked_sub(chunk.bytes.len() as u64);
            sending.left = rest.filter(|rest| !ends || *rest == 0).ok_or(Misuse::WrongLength)?;
        }
        if chunk.bytes.is_empty() && !ends {
            return Ok(!sending.has_more());
        }
        self.scratch.clear();
        Ok(self.send_head(cx, id.0, end, chunk))
    }

    /// Sends the frames in the scratch, then a chunk that a DATA frame carries unless it is empty. Returns whether everything has been taken.
    pub(crate) fn send_head<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        end: End,
        mut chunk: Chunk,
    ) -> bool {
        let Some(stream) = self.streams.find(number) else { return true };
        let ends = end == End::Yes;
        let id = stream.id();
        let sending = &mut stream.sending;
        if ends {
            sending.part = Part::Ended;
        }
        let length = chunk.bytes.len();
        if length > 0 {
            frame::write_header(kind::DATA, length as u64, &mut self.scratch);
        }
        let framed = self.scratch.len();
        let is_next = self.scheduler.is_empty() && !sending.is_full;
        let mut taken = 0;
        if is_next && sending.framed.is_empty() {
            if length <= COPIED_BYTES {
                self.scratch.extend_from_slice(&chunk.bytes);
            }
            taken = cx.quic.write(id, &self.scratch);
            self.scheduler.took(taken);
            chunk.bytes.advance(taken.saturating_sub(framed));
        }
        if taken < framed {
            sending.framed.extend_from_slice(&self.scratch[taken..framed]);
        }
        if sending.framed.is_empty() && chunk.bytes.is_empty() {
            if ends {
                cx.quic.finish(id);
                self.sent_all(cx, number);
            }
            return true;
        }
        if ends || !chunk.bytes.is_empty() {
            let after = if ends { After::End } else { After::More };
            sending.waiting = Some(Waiting { chunk: chunk.detach(), after });
        }
        if is_next {
            let turn = self.send_turn(cx, number, usize::MAX);
            self.streams.charge(number);
            return matches!(turn, Turn::Done | Turn::Empty);
        }
        self.wait_for_turn(number);
        self.streams.charge(number);
        self.send_listed(cx);
        ends && self.is_framed(ExchangeId(number))
    }

    /// The transport takes bytes of a stream again.
    pub(crate) fn writable(&mut self, number: u32) {
        if let Some(stream) = self.streams.find(number) {
            stream.sending.is_full = false;
            self.wait_for_turn(number);
        }
    }

    /// A stream that has something to send, and that the transport takes it from, waits for its turn.
    fn wait_for_turn(&mut self, number: u32) {
        let Some(stream) = self.streams.find(number) else { return };
        let sending = &mut stream.sending;
        if sending.turn.is_none() && !sending.is_full && sending.has_more() {
            let kept = sending.kept.take();
            sending.turn = Some(self.scheduler.push(number, sending.priority, kept));
        }
    }

    /// Sends what waits, stream by stream, until the transport is full.
    #[inline]
    pub(crate) fn send_listed<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) {
        while let Some(number) = self.scheduler.next() {
            let turn = self.send_turn(cx, number, TURN_BYTES);
            if turn == Turn::Empty {
                self.pending.push_back(Event::Exchange(number, ExchangeEvent::Sendable));
            }
            if let Some(stream) = self.streams.find(number) {
                let sending = &mut stream.sending;
                let stays = turn == Turn::Over && !sending.priority.incremental;
                if !stays && let Some(place) = sending.turn.take() {
                    self.scheduler.remove(sending.priority, place);
                    match turn {
                        Turn::Over => {
                            let last = self.scheduler.push(number, sending.priority, None);
                            sending.turn = Some(last);
                        }
                        // Streams are told of room in any order, and it may be enough for one.
                        Turn::Full(0) => sending.kept = Some(place),
                        Turn::Full(_) | Turn::Done | Turn::Empty => {}
                    }
                }
            }
            self.streams.charge(number);
        }
    }

    /// Sends at most so many bytes of what waits of a stream.
    fn send_turn<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        mut bytes_max: usize,
    ) -> Turn {
        let now_ms = self.times.clock.ms;
        let mut sent = 0;
        loop {
            let Some(stream) = self.streams.find(number) else { return Turn::Done };
            let id = stream.id();
            let sending = &mut stream.sending;
            if !sending.framed.is_empty() {
                let taken = cx.quic.write(id, &sending.framed);
                self.scheduler.took(taken);
                sending.framed.drain(..taken);
                sent += taken;
                if !sending.framed.is_empty() {
                    full(sending, &mut self.scheduler, taken, now_ms);
                    return Turn::Full(sent);
                }
                sending.framed = Vec::new();
            }
            let Some(waiting) = &mut sending.waiting else { return empty(sending) };
            let bytes = &mut waiting.chunk.bytes;
            if !bytes.is_empty() {
                if bytes_max == 0 {
                    return Turn::Over;
                }
                let mut piece = bytes.slice(..bytes.len().min(bytes_max));
                let offered = piece.len();
                cx.quic.write_chunk(id, &mut piece);
                let taken = offered - piece.len();
                self.scheduler.took(taken);
                bytes.advance(taken);
                bytes_max -= taken;
                sent += taken;
                if !piece.is_empty() {
                    full(sending, &mut self.scheduler, taken, now_ms);
                    return Turn::Full(sent);
                }
                if !bytes.is_empty() {
                    continue;
                }
            }
            match sending.waiting.take().map(|waiting| waiting.after) {
                None | Some(After::More) => return empty(sending),
                Some(After::End) => {
                    cx.quic.finish(id);
                    self.sent_all(cx, number);
                    return Turn::Done;
                }
                Some(After::Trailers(trailers)) => {
                    let encoder = &mut self.compression.encoder;
                    head_writer::trailers(encoder, id, trailers.fields(), &mut sending.framed);
                    let (chunk, after) = (Chunk::default(), After::End);
                    sending.waiting = Some(Waiting { chunk, after });
                }
            }
        }
    }
}

/// The transport took everything.
fn empty(sending: &mut Sending) -> Turn {
    sending.stalled = None;
    Turn::Empty
}

/// The transport took so much and takes no more.
fn full(sending: &mut Sending, scheduler: &mut Scheduler, taken: usize, now_ms: u32) {
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let (since_ms, before) = sending.stalled.unwrap_or((now_ms, 0));
    sending.stalled = Some((since_ms, before.saturating_add(taken)));
    sending.is_full = true;
    sending.refused = scheduler.taken_count;
    scheduler.stalled.get_or_insert((now_ms, 0));
}
