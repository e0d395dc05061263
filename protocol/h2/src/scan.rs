//! RFC 9113 §10.5 and limits of our own: what becomes of a connection, and of the streams in it, when
//! its time is up.

use bolide_semantics::{AbortReason, Blame, CloseReason, Context, PaceLimits, keeps_pace, millis};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame;
use crate::limits::{BODY_RATE_TIME, DRAIN_NOTICE, SCAN_INTERVAL, TRIM_AFTER};
use crate::pending::Event;
use crate::ping::Purpose;
use crate::stream::{Kind, Part, Place, State};

impl Connection {
    /// The reported deadline has passed: finds out which it was. Returns a reason to close without
    /// a GOAWAY.
    #[cold]
    pub(crate) fn expire(&mut self, cx: &mut Context<'_>) -> Result<Option<CloseReason>, Fault> {
        let clock = self.deadlines.clock;
        let over = |since_ms: u32, limit| clock.elapsed_ms(since_ms) >= millis(limit);
        let limits = &*self.limits;
        if !cx.output.is_empty() && over(self.output.since_ms, limits.times.write_pause) {
            let passed_ms = clock.elapsed_ms(self.output.since_ms);
            let taken_bytes = self.output.taken_bytes();
            if taken_bytes == 0 || !keeps_pace(taken_bytes, passed_ms, limits.times.body_rate_bytes)
            {
                let what = "the peer takes too little of what is sent";
                return Ok(Some(CloseReason::circumstance("write-stall", what)));
            }
            self.output.measure_anew(clock.ms);
        }
        if !self.settings.received && over(0, limits.times.head_time) {
            let what = "no preface or SETTINGS in time";
            return Err(Fault::circumstance(ErrorCode::NoError, "preface-timeout", what));
        }
        let block_since = self.incoming.block.as_ref().map(|block| block.since_ms);
        for since_ms in [self.deadlines.partial_since(), block_since].into_iter().flatten() {
            if over(since_ms, limits.times.head_time) {
                let what = "a frame or header block takes too long";
                return Err(Fault::circumstance(ErrorCode::NoError, "head-timeout", what));
            }
        }
        if !self.settings.is_acknowledged()
            && over(self.settings.sent_ms, limits.times.acknowledgement_time)
        {
            let what = "SETTINGS were not acknowledged in time";
            return Err(Fault::circumstance(ErrorCode::SettingsTimeout, "settings-timeout", what));
        }
        match self.ping.waiting() {
            Some((Purpose::Drain, since_ms)) if over(since_ms, DRAIN_NOTICE) => {
                self.ping.give_up();
                self.leave_finally(cx);
                if self.streams.open() == 0 {
                    let what = "the connection was shut down";
                    return Ok(Some(CloseReason::orderly("drained", what)));
                }
            }
            Some((Purpose::Alive, since_ms)) if over(since_ms, limits.times.ping_reply) => {
                let what = "a PING had no reply in time";
                return Ok(Some(CloseReason::circumstance("ping-timeout", what)));
            }
            _ => {}
        }
        if self.streams.open() == 0 {
            return self.expire_idle(cx);
        }
        if over(self.deadlines.scan_ms, SCAN_INTERVAL) {
            self.scan(cx)?;
        }
        Ok(None)
    }

    fn expire_idle(&mut self, cx: &mut Context<'_>) -> Result<Option<CloseReason>, Fault> {
        let idle_ms = self.deadlines.clock.elapsed_ms(self.deadlines.idle_ms);
        if idle_ms >= millis(self.limits.times.idle_time) && !self.is_beginning() {
            self.leave_finally(cx);
            let what = "no exchange for a while";
            return Ok(Some(CloseReason::orderly("idle", what)));
        }
        if !self.deadlines.trimmed && idle_ms >= millis(TRIM_AFTER) {
            self.deadlines.trimmed = true;
            self.trim();
        }
        Ok(None)
    }

    /// Gives back the memory that only open streams need.
    fn trim(&mut self) {
        self.streams.trim();
        self.pending.trim();
        self.stats.trim();
        self.scheduler.trim();
        self.compression.encoder.forget();
        self.incoming.run = None;
        if self.incoming.block.is_none() {
            self.incoming.ahead.taken.trim();
        }
    }

    /// Looks through the open streams for those that are too slow.
    fn scan(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let clock = self.deadlines.clock;
        let passed_ms = clock.elapsed_ms(self.deadlines.scan_ms);
        self.deadlines.scan_ms = clock.ms;
        self.connection_stall(passed_ms)?;
        let silent_ms = clock.elapsed_ms(self.deadlines.received_ms);
        if silent_ms >= millis(self.limits.times.ping_after) && self.ping.waiting().is_none() {
            let payload = self.ping.send(Purpose::Alive, clock.ms);
            frame::ping::write(cx.output.tail(), payload, false);
        }
        let count =
            (0..self.streams.slots_mut().len() as u32).filter(|slot| self.wants(*slot)).count();
        let limits = self.pace_limits(Kind::Message);
        self.deadlines.bodies.look(count as u32, passed_ms, &limits);
        // Slots keep their places while streams are removed.
        for slot in 0..self.streams.slots_mut().len() as u32 {
            if self.streams.get(slot).state == State::Closed {
                continue;
            }
            if let Some(what) = self.too_slow(slot, passed_ms) {
                let stream = self.streams.get(slot);
                let (id, discarding) = (stream.id, stream.state == State::Discarding);
                let code = if discarding { ErrorCode::NoError } else { ErrorCode::Cancel };
                self.write_reset(cx, id, code)?;
                self.remove(cx, slot);
                if !discarding {
                    let reason = AbortReason::new(Blame::Circumstance, "stream-timeout", what);
                    self.pending.push(Event::Aborted(id, reason));
                }
            }
        }
        Ok(())
    }

    /// Streams have waited for the connection's window for too long. The time since the last look counts when they wait now, and
    /// an open window in between takes nothing back: only bytes do.
    fn connection_stall(&mut self, since_scan_ms: u32) -> Result<(), Fault> {
        let clock = self.deadlines.clock;
        let blocked = self.scheduler.window <= 0 && !self.scheduler.is_empty();
        // Not looked at without streams.
        let goes_on = since_scan_ms < 2 * millis(SCAN_INTERVAL);
        let Some(since_ms) = self.scheduler.blocked_ms.filter(|_| goes_on) else {
            self.scheduler.blocked_ms = blocked.then_some(clock.ms);
            self.scheduler.taken_bytes = 0;
            return Ok(());
        };
        if !blocked {
            self.scheduler.blocked_ms = Some(later(since_ms, since_scan_ms, clock.ms));
            return Ok(());
        }
        let passed_ms = clock.elapsed_ms(since_ms);
        if passed_ms < millis(self.limits.times.stalled_connection) {
            return Ok(());
        }
        if !keeps_pace(self.scheduler.taken_bytes, passed_ms, self.limits.times.body_rate_bytes) {
            let what = "the connection's window stays closed";
            return Err(Fault::circumstance(ErrorCode::EnhanceYourCalm, "zero-window", what));
        }
        self.scheduler.blocked_ms = Some(clock.ms);
        self.scheduler.taken_bytes = 0;
        Ok(())
    }

    /// Why a stream should end, if it should. The last look was so long ago.
    fn too_slow(&mut self, slot: u32, since_scan_ms: u32) -> Option<&'static str> {
        let clock = self.deadlines.clock;
        let rate = self.limits.times.body_rate_bytes;
        let stream = self.streams.get_mut(slot);
        if stream.state == State::Discarding {
            let passed_ms = clock.elapsed_ms(stream.receiving.pace.since_ms());
            let over = passed_ms >= millis(self.limits.times.body_pause);
            return over.then_some("a request with a complete response takes too long to end");
        }
        let sending = &mut stream.sending;
        match sending.place {
            Place::Nowhere => {}
            // It waits for others, for the connection's window or for the socket: this time does not count.
            Place::Listed => {
                sending.waiting_ms = later(sending.waiting_ms, since_scan_ms, clock.ms);
            }
            Place::Window => {
                let passed_ms = clock.elapsed_ms(sending.waiting_ms);
                if passed_ms >= millis(self.limits.times.stalled_stream) {
                    if !keeps_pace(sending.taken_bytes, passed_ms, rate) {
                        return Some("the stream's window stays closed");
                    }
                    sending.waiting_ms = clock.ms;
                    sending.taken_bytes = 0;
                }
            }
        }
        let limits = self.pace_limits(self.streams.get(slot).kind);
        let is_wanted = self.wants(slot);
        let receiving = &mut self.streams.get_mut(slot).receiving;
        let all = &self.deadlines.bodies;
        receiving.pace.look(is_wanted, receiving.unconsumed, &clock, &limits, all)
    }

    /// Returns whether more of a request's body is wanted: only until the response begins, and while there is room for it.
    fn wants(&self, slot: u32) -> bool {
        let stream = self.streams.get(slot);
        let unanswered = State::Open { receiving: Part::Content, sending: Part::Head };
        stream.state == unanswered
            && matches!(stream.kind, Kind::Message | Kind::Call)
            && stream.receiving.window.available > 0
            && self.receive_flow.window.available > 0
    }

    fn pace_limits(&self, kind: Kind) -> PaceLimits {
        let times = &self.limits.times;
        let (pause, rate_bytes) = match kind {
            Kind::Call => (times.call_pause, 0),
            _ => (times.body_pause, times.body_rate_bytes),
        };
        PaceLimits { pause, rate_bytes, rate_time: BODY_RATE_TIME }
    }
}

/// The beginning of a time that is to be shorter by `by_ms`.
fn later(since_ms: u32, by_ms: u32, now_ms: u32) -> u32 {
    let passed_ms = now_ms.wrapping_sub(since_ms);
    now_ms.wrapping_sub(passed_ms.saturating_sub(by_ms))
}
