//! RFC 9113 §6.5, §6.9: SETTINGS and WINDOW_UPDATE frames.

use bolide_semantics::{Context, Role};

use crate::connection::Connection;
use crate::error::{ErrorCode, Fault};
use crate::frame::payload;
use crate::frame::settings::ENTRY_BYTES;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, settings, window_update};
use crate::incoming::Step;
use crate::pending::Event;
use crate::stream::{Place, State};

impl Connection {
    pub(crate) fn read_settings(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.stream != 0 {
            return Err(Fault::protocol("a SETTINGS frame for a stream"));
        }
        if header.has(flag::ACK) {
            if header.length != 0 {
                return Err(Fault::frame_size("an acknowledgement of SETTINGS with a payload"));
            }
            cx.input.consume(HEADER_BYTES);
            return self.settings_acknowledged();
        }
        if !header.length.is_multiple_of(ENTRY_BYTES) {
            return Err(Fault::frame_size("a SETTINGS frame with half an entry"));
        }
        if header.length > self.limits.frames.settings_entries_count * ENTRY_BYTES {
            return Err(Fault::abuse("settings-flood", "too many entries in a SETTINGS frame"));
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        if self.settings.received {
            self.budgets.settings(self.deadlines.clock.ms, &self.limits)?;
            self.glitch()?;
        }
        let changes = self.settings.receive(bytes, self.role, &self.limits)?;
        cx.input.consume(HEADER_BYTES + header.length as usize);
        settings::write_ack(cx.output.tail());
        self.count_control(cx)?;
        if let Some(bytes) = changes.header_table_bytes {
            self.compression.encoder.set_peer_table_bytes(bytes);
        }
        if changes.window_difference != 0 {
            self.shift_send_windows(changes.window_difference)?;
        }
        if changes.concurrent_streams && self.role == Role::Client {
            self.pending.push(Event::Concurrency(self.settings.peer_concurrent_streams));
        }
        Ok(Step::Next)
    }

    fn settings_acknowledged(&mut self) -> Result<Step, Fault> {
        let clock = self.deadlines.clock;
        // Ours of the beginning, and what else has come before says nothing about the path.
        let first = self.settings.is_never_acknowledged();
        let Some(difference) = self.settings.acknowledged(clock.ms) else {
            self.glitch()?;
            return Ok(Step::Next);
        };
        if first {
            self.receive_flow.estimate_rtt(clock.us);
        }
        self.compression.decoder.set_table_bytes_max(self.limits.heads.header_table_bytes as usize);
        if difference != 0 {
            for stream in self.streams.open_mut() {
                stream.receiving.window.shift(difference);
                if stream.state == State::Discarding && stream.receiving.window.is_half_used() {
                    self.pending.refused_rests.push(stream.id);
                }
            }
        }
        Ok(Step::Next)
    }

    /// RFC 9113 §6.9.2: the peer's initial window changed, and with it every stream's.
    fn shift_send_windows(&mut self, difference: i64) -> Result<(), Fault> {
        for slot in 0..self.streams.slots_mut().len() as u32 {
            let stream = self.streams.get_mut(slot);
            if stream.state == State::Closed {
                continue;
            }
            let window = i64::from(stream.sending.window) + difference;
            stream.sending.window = i32::try_from(window).map_err(|_| {
                Fault::flow_control("INITIAL_WINDOW_SIZE makes a stream's window too large")
            })?;
            self.window_opened(slot);
        }
        Ok(())
    }

    /// A stream that waited for its window goes back to where it takes turns.
    #[inline]
    fn window_opened(&mut self, slot: u32) {
        let stream = self.streams.get_mut(slot);
        if stream.sending.place == Place::Window && stream.sending.window > 0 {
            let id = stream.id;
            stream.sending.place = Place::Nowhere;
            self.scheduler.push(self.streams.slots_mut(), slot);
            self.stats.waits_for_turn(slot, id, &self.deadlines.clock);
        }
    }

    #[inline]
    pub(crate) fn read_window_update(
        &mut self,
        cx: &mut Context<'_>,
        header: FrameHeader,
    ) -> Result<Step, Fault> {
        if header.length != window_update::PAYLOAD_BYTES {
            return Err(Fault::frame_size("a WINDOW_UPDATE frame that is not 4 bytes long"));
        }
        let Some(bytes) = payload(cx, header) else { return Ok(Step::Incomplete) };
        let increment = window_update::parse(bytes);
        cx.input.consume(HEADER_BYTES + header.length as usize);
        if header.stream == 0 {
            self.connection_window_update(increment)?;
        } else {
            self.stream_window_update(cx, header.stream, increment)?;
        }
        Ok(Step::Next)
    }

    fn connection_window_update(&mut self, increment: u32) -> Result<(), Fault> {
        if increment == 0 {
            return Err(Fault::protocol("a WINDOW_UPDATE of zero"));
        }
        if !self.scheduler.open_window(increment) {
            return Err(Fault::flow_control("the connection's window becomes too large"));
        }
        let is_useless = self.scheduler.unanswered.is_answered_uselessly(increment);
        // Most clients enlarge the window at once.
        let first = !std::mem::replace(&mut self.scheduler.updated, true);
        if !first && is_useless {
            self.glitch()?;
        }
        Ok(())
    }

    fn stream_window_update(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        increment: u32,
    ) -> Result<(), Fault> {
        let Some(slot) = self.streams.find(id) else {
            if self.is_unopened(id) {
                return Err(Fault::protocol("WINDOW_UPDATE for a stream that was never opened"));
            }
            return self.glitch();
        };
        if increment == 0 {
            let what = "a WINDOW_UPDATE of zero";
            return self.stream_error(cx, id, ErrorCode::ProtocolError, what);
        }
        let stream = &mut self.streams.get_mut(slot).sending;
        let Some(window) = stream.window.checked_add_unsigned(increment) else {
            let what = "the stream's window becomes too large";
            return self.stream_error(cx, id, ErrorCode::FlowControlError, what);
        };
        stream.window = window;
        let is_useless = stream.unanswered.is_answered_uselessly(increment);
        // The first one may come before anything was sent: it opens a small initial window.
        let first = !std::mem::replace(&mut stream.updated, true);
        if !first && is_useless {
            self.glitch()?;
        }
        self.window_opened(slot);
        Ok(())
    }
}
