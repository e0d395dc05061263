//! RFC 9114 §10.5 and limits of our own: streams that are too slow.

use std::collections::VecDeque;

use bolide_semantics::{AbortReason, Blame, ExchangeKind, PaceLimits, Role, keeps_pace, millis};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::limits::BODY_RATE_TIME;
use crate::priorities::EarlyPriorities;
use crate::stream::{Part, Stream};
use crate::transport::{Context, Quic};

const TAKES_TOO_LITTLE: &str = "the peer takes too little of what is sent";

impl Connection {
    /// Looks through the open streams.
    pub(crate) fn scan<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<(), Fault> {
        let passed_ms = self.times.clock.elapsed_ms(self.times.scan_ms);
        self.times.scan_ms = self.times.clock.ms;
        let numbers = self.streams.numbers();
        let is_stalled = self.is_stalled(&numbers);
        // What came before and is not consumed may fill the window that all bodies share.
        let is_held_up = self.times.bodies.is_quiet() && self.unconsumed > 0;
        let wanted = |number: &&u32| self.streams.peek(**number).is_some_and(|one| self.wants(one));
        let wanted_count = numbers.iter().filter(wanted).count() as u32;
        let limits = self.pace_limits(ExchangeKind::Message);
        self.times.bodies.look(wanted_count, passed_ms, &limits);
        for number in numbers {
            if self.is_never_ending(number) {
                self.remove(cx, number, ErrorCode::NoError);
            } else if let Some(what) = self.too_slow(number, is_stalled, is_held_up) {
                let reason = AbortReason::new(Blame::Circumstance, "stream-timeout", what);
                self.give_up(cx, number, ErrorCode::RequestCancelled, Some(reason));
            }
        }
        Ok(())
    }

    /// Returns whether streams have waited for others, or for room that all share, for too long, and the peer takes too little of all.
    fn is_stalled(&mut self, numbers: &[u32]) -> bool {
        let (clock, times) = (self.times.clock, &self.limits.times);
        let count = self.scheduler.taken_count;
        let waits = |number| {
            self.streams.peek(number).is_some_and(|stream| stream.sending.waits_for_others(count))
        };
        let waits = numbers.iter().copied().any(waits);
        let Some((since_ms, taken_bytes)) = self.scheduler.stalled.filter(|_| waits) else {
            self.scheduler.stalled = None;
            return false;
        };
        let passed_ms = clock.elapsed_ms(since_ms);
        if passed_ms < millis(times.stalled_stream) {
            return false;
        }
        self.scheduler.stalled = Some((clock.ms, 0));
        !keeps_pace(taken_bytes, passed_ms, times.body_rate_bytes)
    }

    /// Gives back the memory that only open streams need.
    pub(crate) fn trim(&mut self) {
        self.streams.trim();
        self.control.early = EarlyPriorities::default();
        self.scratch = Vec::new();
        self.ready = VecDeque::new();
        self.pending = VecDeque::new();
        self.datagrams = VecDeque::new();
        self.compression.blocked = Vec::new();
    }

    /// Returns whether nothing but the end of a stream is missing, for too long.
    fn is_never_ending(&self, number: u32) -> bool {
        self.streams.peek(number).is_some_and(|stream| {
            let passed_ms = self.times.clock.elapsed_ms(stream.receiving.since_ms);
            stream.receiving.part == Part::Tail
                && stream.sending.part == Part::Ended
                && !stream.sending.has_more()
                && passed_ms >= millis(self.limits.times.body_pause)
        })
    }

    /// Why a stream should end, if it should. `is_stalled`: those should that wait for others, or for room that all share.
    /// `is_held_up`: no body can be expected to come.
    fn too_slow(
        &mut self,
        number: u32,
        is_stalled: bool,
        is_held_up: bool,
    ) -> Option<&'static str> {
        let (limits, clock) = (&self.limits, self.times.clock);
        let taken_count = self.scheduler.taken_count;
        let stream = self.streams.find(number)?;
        let over = |since_ms: u32, limit| clock.elapsed_ms(since_ms) >= millis(limit);
        let receiving = &stream.receiving;
        let is_incoming = self.role == Role::Server && receiving.part == Part::Head;
        if (is_incoming || receiving.blocked.is_some())
            && over(receiving.since_ms, limits.times.head_time)
        {
            return Some("a head takes too long to be complete");
        }
        let sending = &mut stream.sending;
        if sending.waits_for_others(taken_count) {
            if is_stalled {
                return Some(TAKES_TOO_LITTLE);
            }
            // This time does not count.
            sending.stalled = Some((clock.ms, 0));
        } else if let Some((since_ms, taken_bytes)) = sending.stalled
            && sending.is_full
            && over(since_ms, limits.times.stalled_stream)
        {
            if !keeps_pace(taken_bytes, clock.elapsed_ms(since_ms), limits.times.body_rate_bytes) {
                return Some(TAKES_TOO_LITTLE);
            }
            sending.stalled = Some((clock.ms, 0));
        }
        let stream = self.streams.peek(number)?;
        let (is_wanted, pace) = (self.wants(stream) && !is_held_up, self.pace_limits(stream.kind));
        let receiving = &mut self.streams.find(number)?.receiving;
        receiving.pace.look(is_wanted, receiving.unconsumed, &clock, &pace, &self.times.bodies)
    }

    /// Returns whether more of a request's body is wanted: only until the response begins.
    fn wants(&self, stream: &Stream) -> bool {
        self.role == Role::Server
            && stream.sending.part == Part::Head
            && stream.receiving.part == Part::Content
            && matches!(stream.kind, ExchangeKind::Message | ExchangeKind::Call)
    }

    fn pace_limits(&self, kind: ExchangeKind) -> PaceLimits {
        let times = &self.limits.times;
        let (pause, rate_bytes) = match kind {
            ExchangeKind::Call => (times.call_pause, 0),
            _ => (times.body_pause, times.body_rate_bytes),
        };
        PaceLimits { pause, rate_bytes, rate_time: BODY_RATE_TIME }
    }
}
