//! RFC 6455 §5.4, §5.5, §6.2: from bytes to messages.

use bolide_semantics::End;
use bytes::Bytes;

use crate::failure::Failure;
use crate::frame::Opcode;
use crate::receiver::{Frame, NOTHING_TO_CONTINUE};
use crate::{Close, CloseCode, Codec, Event, Kind, Payload};

static NOT_UTF8: Failure =
    Failure { code: CloseCode::INVALID_DATA, what: "a text is not UTF-8", limit: None };

/// Result of a step.
enum Step {
    /// Look again.
    Again,
    /// The input is used up.
    Starved,
    Report(Event),
}

impl Codec {
    /// Takes bytes from the front of `input` until there is one thing to report. `None`: all of `input` is
    /// used up. Who can't take more for now stops calling and keeps the rest of `input`.
    pub fn receive(&mut self, input: &mut Bytes) -> Option<Event> {
        while !self.is_over {
            match self.step(input) {
                Ok(Step::Again) => {}
                Ok(Step::Starved) => return None,
                // What comes behind our close frame is not looked at, but for the reply to it.
                Ok(Step::Report(Event::Message { .. })) if self.close_sent => {}
                Ok(Step::Report(event)) => return Some(event),
                Err(failure) => {
                    self.is_over = true;
                    self.send_failure(&failure);
                    return Some(Event::Failed(failure));
                }
            }
        }
        input.clear();
        None
    }

    fn step(&mut self, input: &mut Bytes) -> Result<Step, Failure> {
        if let Some(inflater) = self.inflater.as_mut().filter(|inflater| inflater.is_pending()) {
            let pulled = inflater.pull(&self.receiver.limits)?;
            let Some((bytes, end)) = pulled else { return Ok(Step::Again) };
            return self.piece(Payload::plain(bytes), end);
        }
        let Some(frame) = self.receiver.frame else {
            if input.is_empty() {
                return Ok(Step::Starved);
            }
            let Some(head) = self.receiver.read_head(input)? else { return Ok(Step::Starved) };
            self.receiver.begin(head, self.inflater.is_some())?;
            return Ok(Step::Again);
        };
        if frame.left > 0 && input.is_empty() {
            return Ok(Step::Starved);
        }
        let length = usize::try_from(frame.left).unwrap_or(usize::MAX).min(input.len());
        let content = input.split_to(length);
        let left = frame.left - length as u64;
        let key = frame.key.advanced(length);
        self.receiver.frame = (left > 0).then_some(Frame { left, key, ..frame });
        let payload = Payload::masked(content, frame.key);
        if frame.opcode.is_control() {
            return self.control_content(frame.opcode, &payload, left == 0);
        }
        self.content(payload, frame.fin && left == 0)
    }

    /// Content of a data frame.
    fn content(&mut self, payload: Payload, is_last: bool) -> Result<Step, Failure> {
        let compressed = self.receiver.message.is_some_and(|message| message.compressed);
        match &mut self.inflater {
            Some(inflater) if compressed => {
                inflater.push(payload.into_bytes(), is_last);
                Ok(Step::Again)
            }
            _ if payload.is_empty() && !is_last => Ok(Step::Again),
            _ => self.piece(payload, if is_last { End::Yes } else { End::No }),
        }
    }

    /// A piece of a message, as it was before it was compressed.
    fn piece(&mut self, mut payload: Payload, end: End) -> Result<Step, Failure> {
        let Some(message) = self.receiver.message else { return Err(NOTHING_TO_CONTINUE) };
        if message.kind == Kind::Text {
            let bytes = payload.into_bytes();
            let utf8 = &mut self.receiver.utf8;
            if !utf8.takes(&bytes) || (end == End::Yes && !utf8.ends()) {
                return Err(NOT_UTF8);
            }
            payload = Payload::plain(bytes);
        }
        if end == End::Yes {
            self.receiver.message = None;
        }
        Ok(Step::Report(Event::Message { kind: message.kind, payload, end }))
    }

    /// Content of a control frame.
    fn control_content(
        &mut self,
        opcode: Opcode,
        payload: &Payload,
        is_last: bool,
    ) -> Result<Step, Failure> {
        payload.append_to(&mut self.receiver.control);
        if !is_last {
            return Ok(Step::Again);
        }
        let content = std::mem::take(&mut self.receiver.control);
        Ok(Step::Report(match opcode {
            Opcode::Ping => {
                let content = Bytes::from(content);
                self.answer_ping(content.clone());
                Event::Ping(content)
            }
            Opcode::Pong => Event::Pong(content.into()),
            _ => {
                let close = Close::parse(&content).map_err(|(code, what)| Failure {
                    code,
                    what,
                    limit: None,
                })?;
                self.is_over = true;
                self.answer_close(close.code);
                Event::Closed(close)
            }
        }))
    }
}
