//! RFC 9113 §5.2, §6.1: bodies that are to be sent, as windows, the output and other streams allow.

use std::mem;

use bolide_buffers::Chunk;
use bolide_semantics::{Context, End, ExchangeId, Misuse};

use crate::connection::Connection;
use crate::frame::data;
use crate::limits::Frames;
use crate::pending::Event;
use crate::scheduler::Scheduler;
use crate::stats::Blocker;
use crate::stream::{After, LENGTH_UNKNOWN, Part, Place, Stream, Waiting};

/// Frames one DATA frame of what is left of a chunk, and removes it from that. Whether the windows and the output had any
/// room for it; a frame may go beyond the output's limit, so that frames do not become tiny.
#[inline]
fn frame_data(
    cx: &mut Context<'_>,
    scheduler: &mut Scheduler,
    stream: &mut Stream,
    chunk: &mut Chunk,
    ends: bool,
    frame_bytes_max: u32,
) -> bool {
    let windows = stream.sending.window.min(scheduler.window);
    let room = cx.output_room();
    if windows <= 0 || room == 0 {
        return false;
    }
    let room = room.max(Frames::DEFAULT.frame_bytes as usize);
    let most = room.min(windows as usize).min(frame_bytes_max as usize);
    let length = chunk.bytes.len().min(most);
    let last = length == chunk.bytes.len();
    data::write_header(cx.output.tail(), stream.id, length as u32, last && ends);
    cx.output.push_front(chunk, length);
    scheduler.sent(stream, length as u32);
    true
}

impl Connection {
    /// Returns whether all of request `id` has been framed: one whose stream is open, or has just been reported as ended.
    #[must_use]
    pub fn is_framed(&self, id: ExchangeId) -> bool {
        self.streams.find(id.0).is_none_or(|slot| self.streams.get(slot).state.sending().is_none())
    }

    /// How many bytes of a body, of those that were given, wait to be framed.
    #[must_use]
    pub fn unframed_bytes(&self, id: ExchangeId) -> u64 {
        let stream = self.streams.find(id.0).map(|slot| self.streams.get(slot));
        let waiting = stream.and_then(|stream| stream.sending.waiting.as_ref());
        waiting.map_or(0, |waiting| waiting.bytes.len() as u64)
    }

    /// Gives the next chunk of a body or of a tunnel's bytes. What of it has to wait is copied if it is
    /// [lent](bolide_buffers::Memory), for plain [`Bytes`](bytes::Bytes) may be a slice of the worker's block. Returns whether more may be given
    /// right away; otherwise [`Sendable`](bolide_semantics::ExchangeEvent::Sendable) says when.
    /// Nothing is reported after a chunk with [`End::Yes`].
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`]; [`Misuse::OutOfOrder`] before the head or after the end;
    /// [`Misuse::Busy`] while an earlier chunk waits; [`Misuse::WrongLength`] when the body is longer
    /// than its Content-Length, ends before it, or has no place in this response (RFC 9110 §6.4.1).
    #[inline]
    pub fn send_data(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        chunk: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        let slot = self.ordered(cx, id)?;
        self.give(cx, slot, &mut chunk.into(), end)
    }

    /// The same for an open stream.
    #[inline]
    pub(crate) fn give(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        chunk: &mut Chunk,
        end: End,
    ) -> Result<bool, Misuse> {
        let frame_bytes_max = self.frame_bytes_max();
        let stream = self.streams.get_mut(slot);
        let id = stream.id;
        match &stream.sending.waiting {
            None if stream.state.sending() == Some(Part::Content) => {}
            Some(Waiting { after: After::More, .. }) => return Err(Misuse::Busy),
            _ => return Err(Misuse::OutOfOrder),
        }
        let ends = end == End::Yes;
        let left = &mut stream.sending.left;
        if *left != LENGTH_UNKNOWN {
            let rest = left.checked_sub(chunk.bytes.len() as u64);
            *left = rest.filter(|rest| !ends || *rest == 0).ok_or(Misuse::WrongLength)?;
        }
        if chunk.bytes.is_empty() {
            if ends {
                data::write_header(cx.output.tail(), id, 0, true);
                self.finish_sending(cx, slot);
            }
            return Ok(ends || self.may_give_more(cx, slot));
        }
        let after = if ends { After::End } else { After::More };
        let given_bytes = chunk.held_bytes();
        let is_first = stream.sending.place == Place::Nowhere;
        if is_first && self.scheduler.is_empty() {
            while frame_data(cx, &mut self.scheduler, stream, chunk, ends, frame_bytes_max) {
                if chunk.bytes.is_empty() {
                    if ends {
                        self.finish_sending(cx, slot);
                        return Ok(true);
                    }
                    return Ok(self.may_give_more(cx, slot));
                }
            }
            let mut waiting = Waiting::new(mem::take(chunk), given_bytes, after);
            waiting.detach();
            self.streams.keep(slot, waiting);
            self.wait_to_send(slot);
            return Ok(false);
        }
        self.streams.keep(slot, Waiting::new(mem::take(chunk), given_bytes, after));
        if is_first {
            self.wait_to_send(slot);
        }
        self.send_listed(cx);
        // Its turn may have come already, and its slot may be another stream's.
        if let Some(slot) = self.streams.find(id)
            && let Some(waiting) = &mut self.streams.get_mut(slot).sending.waiting
        {
            let less = waiting.detach();
            self.streams.waiting_bytes -= less;
        }
        Ok(ends && self.is_framed(ExchangeId(id)))
    }

    #[inline]
    fn frame_bytes_max(&self) -> u32 {
        self.settings.peer_frame_bytes.min(self.limits.frames.data_frame_bytes)
    }

    /// Returns whether a stream with nothing to send could send; if not, it waits to be told. RFC 9113 §6.9.1: the end needs no
    /// window, and a peer that has all of the content has no reason to open one.
    #[inline]
    fn may_give_more(&mut self, cx: &Context<'_>, slot: u32) -> bool {
        let stream = self.streams.get_mut(slot);
        if stream.sending.place != Place::Nowhere {
            return false;
        }
        if stream.sending.left == 0 {
            return true;
        }
        if stream.sending.window > 0 && self.scheduler.window > 0 && cx.output_room() > 0 {
            return true;
        }
        self.wait_to_send(slot);
        false
    }

    /// A stream begins to wait for its turn or for its window.
    fn wait_to_send(&mut self, slot: u32) {
        let clock = &self.deadlines.clock;
        let stream = self.streams.get_mut(slot);
        let (id, stream) = (stream.id, &mut stream.sending);
        stream.waiting_ms = clock.ms;
        stream.taken_bytes = 0;
        if stream.window > 0 {
            self.stats.waits_for_turn(slot, id, clock);
            self.scheduler.push(self.streams.slots_mut(), slot);
        } else {
            stream.place = Place::Window;
            self.stats.waits_for_window(slot, id, clock);
        }
    }

    /// Frames what waits, stream by stream, until a window or the output is full.
    #[inline]
    pub(crate) fn send_listed(&mut self, cx: &mut Context<'_>) {
        let blocker = if self.scheduler.is_empty() { None } else { self.send_turns(cx) };
        self.stats.blocked(blocker, &self.deadlines.clock);
    }

    fn send_turns(&mut self, cx: &mut Context<'_>) -> Option<Blocker> {
        let frame_bytes_max = self.frame_bytes_max();
        while let Some(slot) = self.scheduler.next() {
            if cx.output_room() == 0 {
                return Some(Blocker::Socket);
            }
            if self.scheduler.window <= 0 {
                return Some(Blocker::ConnectionWindow);
            }
            let stream = self.streams.get_mut(slot);
            let id = stream.id;
            if stream.sending.window <= 0 {
                self.scheduler.remove(self.streams.slots_mut(), slot);
                self.streams.get_mut(slot).sending.place = Place::Window;
                self.stats.waits_for_window(slot, id, &self.deadlines.clock);
                continue;
            }
            let Some(waiting) = stream.sending.waiting.take() else {
                self.stop_waiting(slot);
                self.pending.push(Event::Sendable(id));
                continue;
            };
            let Waiting { bytes, memory, chunk_bytes, after } = waiting;
            let mut chunk = Chunk { bytes, memory };
            let ends = matches!(after, After::End);
            frame_data(cx, &mut self.scheduler, stream, &mut chunk, ends, frame_bytes_max);
            if !chunk.bytes.is_empty() {
                let Chunk { bytes, memory } = chunk;
                stream.sending.waiting = Some(Waiting { bytes, memory, chunk_bytes, after });
                self.scheduler.turn(self.streams.slots_mut(), slot);
                continue;
            }
            self.streams.waiting_bytes -= chunk_bytes as usize;
            match after {
                // Only the end is to come.
                After::More if self.streams.get(slot).sending.left == 0 => {
                    self.stop_waiting(slot);
                    self.pending.push(Event::Sendable(id));
                }
                After::More => self.scheduler.turn(self.streams.slots_mut(), slot),
                After::End => self.finish_sending(cx, slot),
                After::Trailers(trailers) => {
                    self.streams.waiting_bytes -= trailers.held_bytes();
                    self.write_trailers(cx, id, trailers.fields());
                    self.finish_sending(cx, slot);
                }
            }
        }
        None
    }
}
