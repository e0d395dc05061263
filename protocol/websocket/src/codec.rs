//! RFC 6455: one end of a WebSocket connection.

use bolide_semantics::Role;
use bytes::Bytes;

use crate::deflate::Deflater;
use crate::inflate::Inflater;
use crate::mask::{MaskKey, MaskKeys};
use crate::outbox::Outbox;
use crate::receiver::Receiver;
use crate::{Deflate, Kind, Limits};

/// An order that can't be carried out. It had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// A close frame has been sent.
    Closed,
    /// A message of the other kind is not complete.
    OutOfOrder,
    /// A control frame has at most 125 bytes; of a close frame's, two are its code.
    TooLong,
    /// The code may not be sent.
    InvalidCode,
}

/// How a codec works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Limits of what the peer may send.
    pub limits: Limits,
    /// The compression that the handshake agreed on. Default: no compression.
    pub deflate: Option<Deflate>,
    /// Seed of a client's masks: a number that can't be guessed (RFC 6455 §10.3), a new one for
    /// each connection. Servers don't mask.
    pub mask_seed: u64,
}

/// One end of a WebSocket connection, after the handshake.
#[derive(Debug)]
pub struct Codec {
    pub(crate) role: Role,
    pub(crate) receiver: Receiver,
    pub(crate) inflater: Option<Box<Inflater>>,
    pub(crate) deflater: Option<Box<Deflater>>,
    pub(crate) masks: MaskKeys,
    pub(crate) outbox: Outbox,
    /// The newest ping's pong, while much else waits to leave.
    pub(crate) pong: Option<Bytes>,
    /// The message that is being sent, and whether it is compressed.
    pub(crate) sending: Option<(Kind, bool)>,
    pub(crate) close_sent: bool,
    /// Nothing is received any more: the peer has closed, or broke a rule.
    pub(crate) is_over: bool,
}

impl Codec {
    /// An end of a connection whose handshake is complete.
    #[must_use]
    pub fn new(role: Role, settings: Settings) -> Self {
        let peer = match role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let window = |side: Role, agreed: &Deflate| match side {
            Role::Server => (agreed.server_max_window_bits, !agreed.server_no_context_takeover),
            Role::Client => (agreed.client_max_window_bits, !agreed.client_no_context_takeover),
        };
        let inflater = settings.deflate.map(|agreed| {
            let (bits, keeps) = window(peer, &agreed);
            Box::new(Inflater::new(bits, keeps))
        });
        let deflater = settings.deflate.and_then(|agreed| {
            let (bits, keeps) = window(role, &agreed);
            Deflater::new(bits, keeps).map(Box::new)
        });
        Self {
            role,
            receiver: Receiver::new(peer, settings.limits),
            inflater,
            deflater,
            masks: MaskKeys::new(settings.mask_seed),
            outbox: Outbox::default(),
            pong: None,
            sending: None,
            close_sent: false,
            is_over: false,
        }
    }

    /// Returns what is to leave next: pieces of frames, in order.
    pub fn pop_output(&mut self) -> Option<Bytes> {
        if self.outbox.len() == 0 {
            self.flush_pong();
        }
        self.outbox.pop()
    }

    /// How many bytes wait to leave.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.outbox.len() + self.pong.as_ref().map_or(0, |pong| pong.len() + 2)
    }

    /// The memory that the peer makes the codec keep, in bytes: frames that wait to leave,
    /// and the compressors in use.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let inflater = self.inflater.as_ref().map_or(0, |inflater| inflater.held_bytes());
        let deflater = self.deflater.as_ref().map_or(0, |deflater| deflater.held_bytes());
        let pong = self.pong.as_ref().map_or(0, Bytes::len);
        self.outbox.held_bytes() + pong + inflater + deflater
    }

    /// Returns whether a close frame was sent or queued: no message can be sent any more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.close_sent
    }

    /// Returns whether both ends have closed, or the peer broke a rule: once the output has left, a server ends the
    /// transport, and a client waits for that (RFC 6455 §7.1.1).
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns whether a message is being received.
    #[must_use]
    pub fn is_receiving(&self) -> bool {
        self.receiver.is_in_message()
    }

    /// The next frame's key.
    pub(crate) fn next_key(&mut self) -> Option<MaskKey> {
        (self.role == Role::Client).then(|| self.masks.next())
    }
}
