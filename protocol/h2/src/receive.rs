//! RFC 9113 §4.1, §5.5, §6: from bytes to frames, and each frame to where its type is dealt with.

use bolide_semantics::{Context, ExchangeEvent, ExchangeId, Role};

use crate::connection::Connection;
use crate::error::Fault;
use crate::frame::{FrameHeader, HEADER_BYTES, PREFACE, kind};
use crate::incoming::Step;
use crate::limits::Frames;

impl Connection {
    /// Reads frames until there is something to report or the input is used up.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Result<Option<(ExchangeId, ExchangeEvent)>, Fault> {
        self.incoming.held = false;
        if self.incoming.preface && !self.read_preface(cx)? {
            return Ok(None);
        }
        loop {
            if self.incoming.data.is_some() || self.incoming.skip != 0 {
                match self.read_rest(cx) {
                    Step::Incomplete => return Ok(None),
                    Step::Next => continue,
                    Step::Event(id, event) => return Ok(Some((id, event))),
                }
            }
            let Some(bytes) = cx.input.unread().first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let header = FrameHeader::parse(bytes);
            match self.read_frame(cx, header)? {
                Step::Incomplete => return Ok(None),
                Step::Next => {
                    self.read_one();
                    if !self.pending.is_empty() {
                        return Ok(None);
                    }
                }
                Step::Event(id, event) => {
                    self.read_one();
                    return Ok(Some((id, event)));
                }
            }
        }
    }

    #[inline]
    fn read_one(&mut self) {
        self.incoming.frames = self.incoming.frames.wrapping_add(1);
        self.deadlines.received_ms = self.deadlines.clock.ms;
    }

    /// RFC 9113 §3.4. False when more is needed.
    #[cold]
    fn read_preface(&mut self, cx: &mut Context<'_>) -> Result<bool, Fault> {
        let unread = cx.input.unread();
        let known = unread.len().min(PREFACE.len());
        if unread[..known] != PREFACE[..known] {
            return Err(Fault::protocol("the connection preface is not that of HTTP/2"));
        }
        if known < PREFACE.len() {
            return Ok(false);
        }
        cx.input.consume(PREFACE.len());
        self.incoming.preface = false;
        Ok(true)
    }

    #[inline]
    fn read_frame(&mut self, cx: &mut Context<'_>, header: FrameHeader) -> Result<Step, Fault> {
        if header.length > self.limits.frames.frame_bytes.max(Frames::DEFAULT.frame_bytes) {
            return Err(Fault::frame_size("a frame larger than we allow"));
        }
        if self.incoming.block.is_some() {
            return self.read_continuation(cx, header);
        }
        if !self.settings.received {
            let is_settings = header.kind == kind::SETTINGS && header.flags & 1 == 0;
            if !is_settings {
                return Err(Fault::protocol("the first frame is not SETTINGS"));
            }
        }
        match header.kind {
            kind::HEADERS => self.read_headers(cx, header),
            kind::DATA if self.passes_over(cx, header) => Ok(Step::Next),
            kind::DATA => self.read_data(cx, header),
            kind::WINDOW_UPDATE => self.read_window_update(cx, header),
            kind::RST_STREAM => self.read_rst_stream(cx, header),
            kind::SETTINGS => self.read_settings(cx, header),
            kind::PING => self.read_ping(cx, header),
            kind::GOAWAY => self.read_goaway(cx, header),
            kind::PRIORITY => self.read_priority(cx, header),
            kind::PRIORITY_UPDATE => self.read_priority_update(cx, header),
            kind::CONTINUATION => {
                Err(Fault::protocol("a CONTINUATION frame outside of a header block"))
            }
            kind::PUSH_PROMISE => Err(Fault::protocol("a PUSH_PROMISE frame")),
            // RFC 9113 §5.5: unknown types are ignored.
            _ => {
                self.glitch()?;
                cx.input.consume(HEADER_BYTES);
                self.incoming.skip = header.length;
                Ok(Step::Next)
            }
        }
    }

    /// Returns whether a stream has never been opened.
    #[inline]
    pub(crate) fn is_unopened(&self, id: u32) -> bool {
        match self.role {
            Role::Server => id > self.streams.highest_peer || id.is_multiple_of(2),
            Role::Client => id >= self.streams.next_own || id.is_multiple_of(2),
        }
    }
}
