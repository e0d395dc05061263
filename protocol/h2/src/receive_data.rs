//! RFC 9113 §6.1, §5.1: DATA frames, reported piece by piece as they arrive.

use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Output};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame::data::Layout;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, window_update};
use crate::incoming::{DataRest, Step};
use crate::run::Run;
use crate::stream::{Kind, LENGTH_UNKNOWN, Part, State};

impl Connection {
    /// The header of a DATA frame. The whole frame counts against the windows at once.
    #[inline]
    pub(crate) fn read_data(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream == 0 {
            return Err(Fault::protocol("a DATA frame for stream 0"));
        }
        let first = cx.input.unread().get(HEADER_BYTES).copied();
        let Some(layout) = Layout::of(header, first)? else { return Ok(Step::Incomplete) };
        let clock = self.deadlines.clock;
        if !self.receive_flow.window.receive(header.length, clock.us) {
            return Err(Fault::flow_control("more DATA than the connection's window allows"));
        }
        let Some(slot) = self.streams.find(header.stream) else {
            return self.data_without_stream(cx, header);
        };
        let end_stream = header.has(flag::END_STREAM);
        let stream = self.streams.get_mut(slot);
        let (discarding, tunnel) = (stream.state == State::Discarding, stream.kind == Kind::Tunnel);
        let misplaced = match stream.state.receiving() {
            Some(Part::Content) => None,
            Some(Part::Head) => Some((ErrorCode::ProtocolError, "DATA before the head")),
            None => Some((ErrorCode::StreamClosed, "DATA after the end of the stream")),
        };
        if let Some((code, what)) = misplaced {
            return self.bad_data(cx, header, code, what);
        }
        let stream = &mut stream.receiving;
        if !stream.window.receive(header.length, clock.us) {
            let what = "more DATA than the stream's window allows";
            return self.bad_data(cx, header, ErrorCode::FlowControlError, what);
        }
        let windows = (&stream.window, &self.receive_flow.window);
        if windows.0.available <= 0 || windows.1.available <= 0 {
            self.stats.window_used_up();
        }
        if !stream.expects(layout.data, end_stream) {
            stream.unconsumed += header.length;
            let what = "a body that is not as long as its content-length";
            return self.bad_counted(cx, header, ErrorCode::ProtocolError, what);
        }
        let is_first = stream.unconsumed == 0;
        self.count_received(slot, layout.data);
        if !tunnel {
            self.budgets.data(layout.data, end_stream, clock.ms, &self.limits)?;
        } else if !end_stream {
            self.budgets.tunnel_data(layout.data, is_first, clock.ms, &self.limits)?;
        }
        cx.input.consume(HEADER_BYTES + layout.before as usize);
        let padding = header.length - layout.data;
        if padding > 0 {
            self.incoming.skip = layout.padding;
            self.give_back_padding(cx, slot, padding, end_stream);
        }
        if discarding {
            self.discard_rest(cx, slot, layout.data, end_stream)?;
        }
        if layout.data > 0 || end_stream {
            let (stream, left) = (header.stream, layout.data);
            self.incoming.data = Some(DataRest { stream, left, end_stream });
        }
        Ok(Step::Next)
    }

    /// Data of a body counts as received, and not yet as [consumed](Self::consumed). Both windows have taken it, and its
    /// stream [expects](crate::stream::Receiving::expects) it.
    #[inline]
    pub(crate) fn count_received(&mut self, slot: u32, data: u32) {
        let clock = self.deadlines.clock;
        let stream = self.streams.get_mut(slot);
        let (state, stream) = (stream.state, &mut stream.receiving);
        if stream.left != LENGTH_UNKNOWN {
            stream.left -= u64::from(data);
        }
        if state != State::Discarding {
            stream.unconsumed += data;
        }
        stream.pace.received(data, clock.ms);
        self.deadlines.bodies.received(data);
        let connection = &self.receive_flow.window;
        let used_up = (stream.window.is_used_up(clock.us), connection.is_used_up(clock.us));
        self.stats.received(used_up.0, used_up.1, &clock);
    }

    /// RFC 9113 §8.1: what follows a response that came early is read as long as it is short, so that
    /// a client which has nearly finished can do so, and refused when it is long.
    #[cold]
    fn discard_rest(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        data: u32,
        end_stream: bool,
    ) -> Result<(), Fault> {
        self.release(cx, data);
        let stream = self.streams.get(slot);
        if !end_stream && stream.receiving.window.is_half_used() {
            let id = stream.id;
            self.write_reset(cx, id, ErrorCode::NoError)?;
            self.remove(cx, slot);
        }
        Ok(())
    }

    /// Padding is consumed as it comes.
    #[cold]
    fn give_back_padding(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        padding: u32,
        end_stream: bool,
    ) {
        self.release(cx, padding);
        let tuning = self.receive_flow.stream_tuning(self.deadlines.clock.us, &self.limits);
        let stream = self.streams.get_mut(slot);
        if let Some(increment) = stream.receiving.window.consume(padding, tuning)
            && !end_stream
        {
            window_update::write(cx.output.tail(), stream.id, increment);
        }
    }

    /// DATA that an open stream can't take: the stream ends.
    #[cold]
    fn bad_data(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
        code: ErrorCode,
        what: &'static str,
    ) -> Result<Step, Fault> {
        self.release(cx, header.length);
        self.bad_counted(cx, header, code, what)
    }

    /// The same, when the frame counts as unconsumed already.
    #[cold]
    fn bad_counted(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
        code: ErrorCode,
        what: &'static str,
    ) -> Result<Step, Fault> {
        cx.input.consume(HEADER_BYTES);
        self.incoming.skip = header.length;
        self.stream_error(cx, header.stream, code, what)?;
        Ok(Step::Next)
    }

    /// DATA that is not wanted, but not an error.
    fn discard(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
        data: u32,
        end_stream: bool,
    ) -> Result<Step, Fault> {
        self.budgets.data(data, end_stream, self.deadlines.clock.ms, &self.limits)?;
        cx.input.consume(HEADER_BYTES);
        self.incoming.skip = header.length;
        self.release(cx, header.length);
        Ok(Step::Next)
    }

    /// RFC 9113 §5.1: DATA for a stream that is idle or closed.
    #[cold]
    fn data_without_stream(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if self.is_unopened(header.stream) {
            return Err(Fault::protocol("a DATA frame for a stream that was never opened"));
        }
        if self.streams.reset.contains(header.stream) {
            let end_stream = header.has(flag::END_STREAM);
            return self.discard(cx, header, header.length, end_stream);
        }
        self.bad_data(cx, header, ErrorCode::StreamClosed, "DATA for a closed stream")
    }

    /// The next piece of a payload of which the header has been dealt with.
    #[inline]
    pub(crate) fn read_rest(&mut self, cx: &mut Context<'_>) -> Step {
        let Some(rest) = &mut self.incoming.data else { return self.skip(cx) };
        let take = cx.input.len().min(rest.left as usize);
        if take == 0 && rest.left > 0 {
            return Step::Incomplete;
        }
        let bytes = cx.input.take(take);
        rest.left -= take as u32;
        let id = rest.stream;
        let complete = rest.left == 0;
        let ended = complete && rest.end_stream;
        if complete {
            self.incoming.data = None;
        }
        // The stream may have ended since the frame began: its bytes have been given back.
        let Some(slot) = self.streams.find(id) else { return Step::Next };
        let stream = self.streams.get_mut(slot);
        let silent = stream.state == State::Discarding;
        if ended && stream.state.end_received() {
            self.remove(cx, slot);
        }
        if silent {
            return Step::Next;
        }
        if complete && !ended && self.incoming.skip == 0 {
            let run = Run::of(self.streams.get(slot), slot, &self.receive_flow.window);
            **self.incoming.run.get_or_insert_default() = run;
        }
        let end = if ended { End::Yes } else { End::No };
        Step::Event(ExchangeId(id), ExchangeEvent::Data(bytes, end))
    }

    /// The next frame of the run.
    #[inline]
    pub(crate) fn next_of_run(&mut self, cx: &mut Context<'_>) -> Option<Output> {
        if !self.pending.is_empty() {
            return None;
        }
        let run = self.incoming.run.as_mut()?;
        let data = run.next(cx.input, self.limits.frames.frame_bytes)?;
        self.incoming.frames = self.incoming.frames.wrapping_add(1);
        Some(Output::Exchange(ExchangeId(run.stream), ExchangeEvent::Data(data, End::No)))
    }

    /// The run is over: what came in it counts.
    pub(crate) fn settle_run(&mut self, cx: &mut Context<'_>) {
        let Some(run) = &mut self.incoming.run else { return };
        let Run { slot, received, consumed, .. } = run.close();
        let clock = self.deadlines.clock;
        if received > 0 {
            self.deadlines.received_ms = clock.ms;
            let stream = self.streams.get_mut(slot);
            // The run's length has seen to it that both take it.
            let _ = stream.receiving.window.receive(received, clock.us);
            let _ = self.receive_flow.window.receive(received, clock.us);
            self.count_received(slot, received);
        }
        if consumed > 0 {
            self.consume(cx, slot, consumed);
        }
    }

    /// How many bytes of the body that came last are still to come, as far as its length is known and our windows let
    /// the peer send them (RFC 9113 §5.2): it sends them without waiting for anything. 0: unknown.
    #[inline]
    #[must_use]
    pub fn expects(&self) -> u64 {
        let Some(run) = &self.incoming.run else { return 0 };
        let Some(slot) = self.streams.find(run.last) else { return 0 };
        let stream = self.streams.get(slot);
        let (state, stream) = (stream.state, &stream.receiving);
        if stream.left == LENGTH_UNKNOWN || state.receiving() != Some(Part::Content) {
            return 0;
        }
        let allowed = stream.window.available.min(self.receive_flow.window.available);
        stream.left.min(allowed.max(0) as u64)
    }

    fn skip(&mut self, cx: &mut Context<'_>) -> Step {
        let take = cx.input.len().min(self.incoming.skip as usize);
        if take == 0 {
            return Step::Incomplete;
        }
        cx.input.consume(take);
        self.incoming.skip -= take as u32;
        Step::Next
    }
}
