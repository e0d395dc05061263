//! RFC 6455 §5.4, §5.5, §6.2: from bytes to messages.

use bolide_semantics::{End, Role};
use bytes::{Buf, Bytes};

use crate::codec::Kind;
use crate::failure::Failure;
use crate::frame::{FrameHead, HEAD_BYTES_MAX, Opcode};
use crate::mask::MaskKey;
use crate::utf8::Utf8;
use crate::{Close, CloseCode, Codec, Event, Limits, Payload};

const fn wrong(what: &'static str) -> Failure {
    Failure { code: CloseCode::PROTOCOL, what, limit: None }
}

static NOTHING_TO_CONTINUE: Failure = wrong("a continuation frame continues no message");
static INTERLEAVED: Failure = wrong("a message begins before the one before it is complete");
static NOT_AGREED: Failure = wrong("a compressed message, and no compression was agreed on");
static FRAGMENTS: Failure = Failure {
    code: CloseCode::POLICY,
    what: "a message has too many frames",
    limit: Some("fragments-count"),
};
static EMPTY_FRAGMENTS: Failure = Failure {
    code: CloseCode::POLICY,
    what: "a message has too many frames without content",
    limit: Some("empty-fragments-count"),
};
static TOO_BIG: Failure = Failure {
    code: CloseCode::TOO_BIG,
    what: "a message is too big",
    limit: Some("message-bytes"),
};
static NOT_UTF8: Failure =
    Failure { code: CloseCode::INVALID_DATA, what: "a text is not UTF-8", limit: None };

/// The message that is being received.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    kind: Kind,
    compressed: bool,
    bytes: u64,
    frames: u32,
    empty_frames: u32,
}

/// The frame whose content is being received.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: Opcode,
    fin: bool,
    left: u64,
    key: MaskKey,
}

/// What is known of the bytes received so far.
#[derive(Debug)]
pub(crate) struct Receiver {
    peer: Role,
    limits: Limits,
    /// The beginning of a head that the next bytes complete.
    head: [u8; HEAD_BYTES_MAX],
    head_length: u8,
    frame: Option<Frame>,
    message: Option<Incoming>,
    /// The content of a control frame so far.
    control: Vec<u8>,
    utf8: Utf8,
}

impl Receiver {
    pub(crate) fn new(peer: Role, limits: Limits) -> Self {
        Self {
            peer,
            limits,
            head: [0; HEAD_BYTES_MAX],
            head_length: 0,
            frame: None,
            message: None,
            control: Vec::new(),
            utf8: Utf8::default(),
        }
    }

    pub(crate) fn is_in_message(&self) -> bool {
        self.message.is_some()
    }

    /// Takes a head from the input, together with what came of it before.
    fn read_head(&mut self, input: &mut Bytes) -> Result<Option<FrameHead>, Failure> {
        if self.head_length == 0
            && let Some((head, used)) = FrameHead::parse(input, self.peer)?
        {
            input.advance(used);
            return Ok(Some(head));
        }
        let before = usize::from(self.head_length);
        let added = input.len().min(HEAD_BYTES_MAX - before);
        self.head[before..before + added].copy_from_slice(&input[..added]);
        match FrameHead::parse(&self.head[..before + added], self.peer)? {
            Some((head, used)) => {
                self.head_length = 0;
                input.advance(used - before);
                Ok(Some(head))
            }
            None => {
                self.head_length += added as u8;
                input.advance(added);
                Ok(None)
            }
        }
    }

    /// A frame begins: it must fit what came before it.
    fn begin(&mut self, head: FrameHead, can_inflate: bool) -> Result<(), Failure> {
        if !head.opcode.is_control() {
            self.begin_data(&head, can_inflate)?;
        }
        self.frame = Some(Frame {
            opcode: head.opcode,
            fin: head.fin,
            left: head.length,
            key: head.key.unwrap_or(MaskKey::NONE),
        });
        Ok(())
    }

    fn begin_data(&mut self, head: &FrameHead, can_inflate: bool) -> Result<(), Failure> {
        let kind = match head.opcode {
            Opcode::Text => Some(Kind::Text),
            Opcode::Binary => Some(Kind::Binary),
            _ => None,
        };
        if head.compressed && !can_inflate {
            return Err(NOT_AGREED);
        }
        match (kind, &self.message) {
            (Some(_), Some(_)) => return Err(INTERLEAVED),
            (None, None) => return Err(NOTHING_TO_CONTINUE),
            (None, Some(_)) => {}
            (Some(kind), None) => {
                self.message = Some(Incoming {
                    kind,
                    compressed: head.compressed,
                    bytes: 0,
                    frames: 0,
                    empty_frames: 0,
                });
            }
        }
        let Some(message) = &mut self.message else { return Err(NOTHING_TO_CONTINUE) };
        message.frames += 1;
        if message.frames > self.limits.fragments_count.max(1) {
            return Err(FRAGMENTS);
        }
        if head.length == 0 && !head.fin {
            message.empty_frames += 1;
            if message.empty_frames > self.limits.empty_fragments_count {
                return Err(EMPTY_FRAGMENTS);
            }
        }
        if !message.compressed {
            message.bytes = message.bytes.saturating_add(head.length);
            if message.bytes > self.limits.message_bytes {
                return Err(TOO_BIG);
            }
        }
        Ok(())
    }
}

/// What a step came to.
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
                // What comes behind our close frame is not looked at, but for the answer to it.
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
