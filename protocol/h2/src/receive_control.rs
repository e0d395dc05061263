//! RFC 9113 §6.3, §6.4, §6.7, §6.8 and RFC 9218 §7: RST_STREAM, PING, GOAWAY and what is said about
//! priorities.

use bolide_semantics::{AbortReason, Blame, Context, ExchangeEvent, ExchangeId, Priority, Role};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame::payload;
use crate::frame::priority_update::PriorityUpdate;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, goaway, ping, priority, read_u32, rst_stream};
use crate::goaway::Leaving;
use crate::incoming::Step;
use crate::pending::Event;
use crate::ping::Purpose;
use crate::stream::{Place, State};

/// A longer PRIORITY_UPDATE is ignored. Unit: bytes.
const PRIORITY_UPDATE_BYTES_MAX: u32 = 256;

impl Connection {
    pub(crate) fn read_rst_stream(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        let id = header.stream;
        if id == 0 {
            return Err(Fault::protocol("a RST_STREAM frame for stream 0"));
        }
        if header.length != rst_stream::PAYLOAD_BYTES {
            return Err(Fault::frame_size("a RST_STREAM frame that is not 4 bytes long"));
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        let code = read_u32(bytes);
        cx.input.consume(HEADER_BYTES + header.length as usize);
        let Some(slot) = self.streams.find(id) else {
            if self.is_unopened(id) {
                return Err(Fault::protocol("RST_STREAM for a stream that was never opened"));
            }
            self.glitch()?;
            return Ok(Step::Next);
        };
        self.stats.reset_received(code);
        let stream = self.streams.get(slot);
        let (silent, answered) =
            (stream.state == State::Discarding, stream.state.receiving().is_none());
        self.remove(cx, slot);
        if silent {
            return Ok(Step::Next);
        }
        if self.role == Role::Server {
            self.budgets.client_reset(self.deadlines.clock.ms, &self.limits)?;
        }
        let refused = code == ErrorCode::RefusedStream as u32;
        let by_peer = |name, what| AbortReason::new(Blame::Peer, name, what);
        let reason = match self.role {
            Role::Client if code == ErrorCode::NoError as u32 && answered => {
                by_peer("not-needed", "the rest of the request is not needed")
            }
            Role::Client if refused => {
                by_peer(AbortReason::REFUSED, "the server refused the request").untouched()
            }
            Role::Client if code == ErrorCode::Cancel as u32 => {
                by_peer(AbortReason::CANCELLED, "the server cancelled the stream")
            }
            Role::Client => by_peer("server-reset", "the server reset the stream"),
            Role::Server => by_peer("client-reset", "the client reset the stream"),
        };
        Ok(Step::Event(ExchangeId(id), ExchangeEvent::Aborted(reason)))
    }

    pub(crate) fn read_ping(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream != 0 {
            return Err(Fault::protocol("a PING frame for a stream"));
        }
        if header.length != ping::PAYLOAD_BYTES {
            return Err(Fault::frame_size("a PING frame that is not 8 bytes long"));
        }
        let bytes = payload(cx, header).and_then(|bytes| bytes.first_chunk().copied());
        let Some(bytes) = bytes else { return Ok(Step::Incomplete) };
        cx.input.consume(HEADER_BYTES + header.length as usize);
        if !header.has(flag::ACK) {
            ping::write(cx.output.tail(), bytes, true);
            self.count_control(cx)?;
            self.glitch()?;
            return Ok(Step::Next);
        }
        match self.ping.answered(&bytes) {
            Some(Purpose::Drain) if self.goaway.leaving == Leaving::Announced => {
                self.leave_finally(cx);
            }
            Some(_) => {}
            None => self.glitch()?,
        }
        Ok(Step::Next)
    }

    pub(crate) fn read_goaway(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream != 0 {
            return Err(Fault::protocol("a GOAWAY frame for a stream"));
        }
        let Some(debug_bytes) = header.length.checked_sub(goaway::PAYLOAD_BYTES_MIN) else {
            return Err(Fault::frame_size("a GOAWAY frame shorter than 8 bytes"));
        };
        let fixed = FrameHeader { length: goaway::PAYLOAD_BYTES_MIN, ..header };
        let Some(bytes) = payload(cx, fixed) else { return Ok(Step::Incomplete) };
        let (last, _code) = goaway::parse(bytes);
        cx.input.consume(HEADER_BYTES + fixed.length as usize);
        self.incoming.skip = debug_bytes;
        let repeated = self.goaway.is_received();
        if !self.goaway.receive(last) {
            return Err(Fault::protocol("a GOAWAY frame with a higher last stream than before"));
        }
        if repeated {
            self.glitch()?;
        }
        self.pending.push(Event::Draining(last));
        if self.role == Role::Client {
            self.abort_unserved(cx, last);
        }
        Ok(Step::Next)
    }

    /// RFC 9113 §6.8: streams above the last one were not acted on.
    fn abort_unserved(&mut self, cx: &mut Context<'_>, last: u32) {
        let unserved: Vec<u32> =
            (self.streams.open_slots()).filter(|slot| self.streams.get(*slot).id > last).collect();
        for slot in unserved {
            let id = self.streams.get(slot).id;
            self.streams.reset.insert(id);
            self.remove(cx, slot);
            let what = "the server closed the connection before it acted on the request";
            let reason = AbortReason::new(Blame::Peer, "not-served", what).untouched();
            self.pending.push(Event::Aborted(id, reason));
        }
    }

    /// RFC 9113 §5.3.2: parsed and ignored.
    pub(crate) fn read_priority(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        let id = header.stream;
        if id == 0 {
            return Err(Fault::protocol("a PRIORITY frame for stream 0"));
        }
        if header.length != priority::PAYLOAD_BYTES {
            return self.bad_priority(cx, header, ErrorCode::FrameSizeError);
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        if priority::depends_on(bytes) == id {
            return self.bad_priority(cx, header, ErrorCode::ProtocolError);
        }
        cx.input.consume(HEADER_BYTES + header.length as usize);
        self.glitch()?;
        Ok(Step::Next)
    }

    #[cold]
    fn bad_priority(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
        code: ErrorCode,
    ) -> Result<Step, Fault> {
        let what = "a PRIORITY frame that can't be right";
        if self.is_unopened(header.stream) {
            // There is no stream to reset.
            return Err(Fault::peer(code, "protocol-error", what));
        }
        cx.input.consume(HEADER_BYTES);
        self.incoming.skip = header.length;
        self.stream_error(cx, header.stream, code, what)?;
        Ok(Step::Next)
    }

    pub(crate) fn read_priority_update(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream != 0 {
            return Err(Fault::protocol("a PRIORITY_UPDATE frame for a stream"));
        }
        if self.role == Role::Client {
            return Err(Fault::protocol("a PRIORITY_UPDATE frame from a server"));
        }
        if header.length > PRIORITY_UPDATE_BYTES_MAX {
            self.glitch()?;
            cx.input.consume(HEADER_BYTES);
            self.incoming.skip = header.length;
            return Ok(Step::Next);
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        let Some(update) = PriorityUpdate::parse(bytes) else {
            return Err(Fault::frame_size("a PRIORITY_UPDATE frame shorter than 4 bytes"));
        };
        if update.stream == 0 {
            return Err(Fault::protocol("a PRIORITY_UPDATE frame about stream 0"));
        }
        let (id, priority) = (update.stream, Priority::parse(update.value));
        cx.input.consume(HEADER_BYTES + header.length as usize);
        self.glitch()?;
        match self.streams.find(id) {
            Some(slot) => self.reprioritise(slot, priority),
            None if self.is_unopened(id) && !id.is_multiple_of(2) => {
                self.scheduler.early.insert(id, priority);
            }
            None => {}
        }
        Ok(Step::Next)
    }

    pub(crate) fn reprioritise(&mut self, slot: u32, priority: Priority) {
        if self.streams.get(slot).sending.place == Place::Listed {
            self.scheduler.remove(self.streams.slots_mut(), slot);
            self.streams.get_mut(slot).sending.priority = priority;
            self.scheduler.push(self.streams.slots_mut(), slot);
        } else {
            self.streams.get_mut(slot).sending.priority = priority;
        }
    }
}
