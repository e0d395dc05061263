//! RFC 6455 §5.4: the frame and the message that are being received.

use bolide_semantics::Role;
use bytes::{Buf, Bytes};

use crate::failure::Failure;
use crate::frame::{FrameHead, HEAD_BYTES_MAX, Opcode};
use crate::mask::MaskKey;
use crate::utf8::Utf8;
use crate::{CloseCode, Kind, Limits};

const fn wrong(what: &'static str) -> Failure {
    Failure { code: CloseCode::PROTOCOL, what, limit: None }
}

pub(crate) static NOTHING_TO_CONTINUE: Failure = wrong("a continuation frame continues no message");
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

/// The message that is being received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) kind: Kind,
    pub(crate) compressed: bool,
    bytes: u64,
    frames: u32,
    empty_frames: u32,
}

/// The frame whose content is being received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) opcode: Opcode,
    pub(crate) fin: bool,
    pub(crate) left: u64,
    pub(crate) key: MaskKey,
}

/// State of the bytes received so far.
#[derive(Debug)]
pub(crate) struct Receiver {
    peer: Role,
    pub(crate) limits: Limits,
    /// The beginning of a head that the next bytes complete.
    head: [u8; HEAD_BYTES_MAX],
    head_length: u8,
    pub(crate) frame: Option<Frame>,
    pub(crate) message: Option<Incoming>,
    /// The content of a control frame so far.
    pub(crate) control: Vec<u8>,
    pub(crate) utf8: Utf8,
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
    pub(crate) fn read_head(&mut self, input: &mut Bytes) -> Result<Option<FrameHead>, Failure> {
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
    pub(crate) fn begin(&mut self, head: FrameHead, can_inflate: bool) -> Result<(), Failure> {
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
