//! RFC 6455 §5.4, §5.5, §6.1: from messages to bytes.

use bolide_semantics::End;
use bytes::Bytes;

use crate::codec::Misuse;
use crate::failure::Failure;
use crate::frame::{CONTROL_BYTES_MAX, FrameHead, Opcode};
use crate::limits::PONGS_BYTES;
use crate::outbox::is_copied;
use crate::{CloseCode, Codec, Kind};

/// Messages below this size are not compressed, in bytes: what is saved is less than a packet.
const COMPRESS_FROM_BYTES: usize = 64;

impl Codec {
    /// Sends a whole message. Text must be UTF-8.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] after a close frame, [`Misuse::OutOfOrder`] while a message sent in pieces is not
    /// complete.
    pub fn send(&mut self, kind: Kind, data: impl Into<Bytes>) -> Result<(), Misuse> {
        if self.sending.is_some() {
            return Err(Misuse::OutOfOrder);
        }
        self.send_piece(kind, data, End::Yes)
    }

    /// Sends the next piece of a message, as one frame; [`End::Yes`] completes it. All the text together must
    /// be UTF-8.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] after a close frame, [`Misuse::OutOfOrder`] while a message of the other kind is not
    /// complete.
    pub fn send_piece(
        &mut self,
        kind: Kind,
        data: impl Into<Bytes>,
        end: End,
    ) -> Result<(), Misuse> {
        if self.close_sent {
            return Err(Misuse::Closed);
        }
        let data = data.into();
        let is_first = self.sending.is_none();
        let (opcode, compressed) = match (self.sending, kind) {
            (Some((begun, compressed)), kind) if begun == kind => {
                (Opcode::Continuation, compressed)
            }
            (Some(_), _) => return Err(Misuse::OutOfOrder),
            (None, kind) => {
                let worth_it = end == End::No || data.len() >= COMPRESS_FROM_BYTES;
                let opcode = match kind {
                    Kind::Text => Opcode::Text,
                    Kind::Binary => Opcode::Binary,
                };
                (opcode, self.deflater.is_some() && worth_it)
            }
        };
        let (data, compressed) = match &mut self.deflater {
            Some(deflater) if compressed => (deflater.piece(&data, end).into(), true),
            _ => (data, false),
        };
        self.sending = (end == End::No).then_some((kind, compressed));
        self.frame(opcode, data, end == End::Yes, compressed && is_first);
        Ok(())
    }

    /// Sends a ping, which the peer answers with a pong of the same content.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooLong`] beyond 125 bytes, [`Misuse::Closed`] after a close frame.
    pub fn send_ping(&mut self, content: impl Into<Bytes>) -> Result<(), Misuse> {
        self.control(Opcode::Ping, content.into())
    }

    /// Sends an unsolicited pong: a sign of life that isn't answered.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooLong`] beyond 125 bytes, [`Misuse::Closed`] after a close frame.
    pub fn send_pong(&mut self, content: impl Into<Bytes>) -> Result<(), Misuse> {
        self.control(Opcode::Pong, content.into())
    }

    /// Closes the connection: no message can be sent after it, and what the peer still sends is not reported.
    /// [`CloseCode::NONE`] sends a close frame without a code, and no reason.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`] when a close frame was sent before, [`Misuse::InvalidCode`] for a code that may not
    /// be sent, [`Misuse::TooLong`] when the reason has more than 123 bytes.
    pub fn send_close(&mut self, code: CloseCode, reason: &str) -> Result<(), Misuse> {
        let mut content = Vec::new();
        if code != CloseCode::NONE {
            if !code.is_sendable() {
                return Err(Misuse::InvalidCode);
            }
            content.extend_from_slice(&code.0.to_be_bytes());
            content.extend_from_slice(reason.as_bytes());
        }
        self.flush_pong();
        self.control(Opcode::Close, content.into())?;
        self.close_sent = true;
        Ok(())
    }

    /// RFC 6455 §5.5.1: the peer's code goes back.
    pub(crate) fn answer_close(&mut self, code: CloseCode) {
        // Nothing to do when ours was sent first.
        let _ = self.send_close(code, "");
    }

    /// Tells the peer what it did wrong.
    pub(crate) fn send_failure(&mut self, failure: &Failure) {
        let _ = self.send_close(failure.code, failure.what);
    }

    /// RFC 6455 §5.5.3: a pong goes out as soon as is practical: in its place among the messages, unless the
    /// peer doesn't read; then only the newest ping gets one.
    pub(crate) fn answer_ping(&mut self, content: Bytes) {
        if self.close_sent {
            return;
        }
        let is_read = self.pong.is_none() && self.outbox.len() < PONGS_BYTES;
        self.pong = Some(content);
        if is_read {
            self.flush_pong();
        }
    }

    /// Queues the pong that is due.
    pub(crate) fn flush_pong(&mut self) {
        if let Some(content) = self.pong.take()
            && !self.close_sent
        {
            self.frame(Opcode::Pong, content, true, false);
        }
    }

    fn control(&mut self, opcode: Opcode, content: Bytes) -> Result<(), Misuse> {
        if self.close_sent {
            return Err(Misuse::Closed);
        }
        if content.len() > CONTROL_BYTES_MAX {
            return Err(Misuse::TooLong);
        }
        self.frame(opcode, content, true, false);
        Ok(())
    }

    fn frame(&mut self, opcode: Opcode, data: Bytes, fin: bool, compressed: bool) {
        let key = self.next_key();
        let head = FrameHead { fin, compressed, opcode, key, length: data.len() as u64 };
        let copied = if key.is_some() || is_copied(&data) { data.len() } else { 0 };
        let (head, head_bytes) = head.encoded();
        let tail = self.outbox.tail(head_bytes + copied);
        tail.extend_from_slice(&head[..head_bytes]);
        match key {
            // A server's content keeps its memory.
            None => self.outbox.push(data),
            Some(key) => key.append(&data, tail),
        }
    }
}
