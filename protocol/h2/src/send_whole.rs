//! RFC 9113 §8.1: answers of which a part is encoded already: that of each alone once for all connections, that
//! which many have in common by the connection that has sent it before.

use bolide_semantics::{
    Context, End, ExchangeId, FieldName, FieldRef, HeadName, Misuse, Role, Start, has_no_body,
};
use http::Method;

use crate::OwnLines;
use crate::connection::{Compression, Connection};
use crate::frame::{HEADER_BYTES, data};
use crate::head_writer::{self, Target};
use crate::limits::{FRAME_BYTES, WHOLE_BODY_BYTES};
use crate::stream::{LENGTH_UNKNOWN, Place, Progress};

impl Connection {
    /// Sends the head of a final response (server only): `common` lines, with no Content-Length among them, and
    /// `own` ones. `name` stands for the status and the common lines, which need no look when they are those that
    /// the connection remembers.
    ///
    /// # Errors
    ///
    /// As [`send_head`](Self::send_head).
    pub fn send_common_head<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        (name, common): (&HeadName, I),
        own: &OwnLines,
        end: End,
    ) -> Result<(), Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        let slot = self.ordered(cx, id)?;
        let stream = self.streams.get_mut(slot);
        let is_first = stream.sending == Progress::Head && self.role == Role::Server;
        if !is_first || name.status.is_informational() {
            return Err(Misuse::OutOfOrder);
        }
        let Compression { encoder, memory, .. } = &mut self.compression;
        let generation = encoder.generation();
        let mut known = memory.recognise_named(name, generation);
        if known.is_none() {
            known = memory.recognise(name.status.as_u16(), generation, common.clone());
        }
        let length = match known {
            Some(length) => length,
            None => head_writer::check(common.clone())?,
        };
        if length != LENGTH_UNKNOWN || name.length.is_some() {
            return Err(Misuse::InvalidHead);
        }
        let end_stream = end == End::Yes;
        stream.announce(name.status, own.length().unwrap_or(LENGTH_UNKNOWN), end)?;
        let frame_bytes_max = self.settings.peer_frame_bytes;
        let target = Target { stream: id.0, end_stream, frame_bytes_max };
        let is_again = known.is_some() && {
            let parts = [memory.block(), own.block()];
            head_writer::write_again(encoder, cx.output.tail(), target, parts)
        };
        if !is_again {
            self.write_common(cx, target, name, common.clone(), own);
        }
        self.compression.memory.name(*name);
        if end_stream {
            self.finish_sending(cx, slot);
        } else if (known.is_none() || self.compression.memory.has_priority())
            && let Some(field) = { common }.find(|field| field.known == Some(FieldName::Priority))
        {
            let priority = self.streams.get(slot).priority.merge(field.value);
            self.reprioritise(slot, priority);
        }
        Ok(())
    }

    /// Writes such a head, and remembers its common part if it may be sent again as it is.
    fn write_common<'a>(
        &mut self,
        cx: &mut Context<'_>,
        target: Target,
        name: &HeadName,
        common: impl Iterator<Item = FieldRef<'a>> + Clone,
        own: &OwnLines,
    ) {
        let out = cx.output.tail();
        let before = out.len();
        let Compression { encoder, memory, .. } = &mut self.compression;
        let counted = (encoder.generation(), encoder.withheld());
        let start = Some(Start::Response { status: name.status });
        head_writer::write(encoder, out, target, start, common.clone(), own.block());
        if memory.is_free() && (encoder.generation(), encoder.withheld()) == counted {
            let block = &out[before + HEADER_BYTES..out.len() - own.block().len()];
            let status = name.status.as_u16();
            memory.remember(status, encoder.generation(), LENGTH_UNKNOWN, common, block);
        }
    }

    /// Sends a head whose common lines have this name, and a body of `WHOLE_BODY_BYTES` at most, which is copied,
    /// and ends the answer: the same as [`send_common_head`](Self::send_common_head) and then
    /// [`send_data`](Self::send_data), with one look at the exchange. `None`: the lines aren't remembered, the
    /// body is not as long as it says, something would have to wait, or this answer has no content; nothing has
    /// happened.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownExchange`].
    #[inline]
    pub fn send_whole_again(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        name: &HeadName,
        own: &OwnLines,
        body: &[u8],
    ) -> Option<Result<(), Misuse>> {
        let Compression { encoder, memory, .. } = &mut self.compression;
        let length = memory.recognise_named(name, encoder.generation())?;
        let fits_length = length == LENGTH_UNKNOWN && own.length() == Some(body.len() as u64);
        if !fits_length || memory.has_priority() || body.is_empty() || body.len() > WHOLE_BODY_BYTES
        {
            return None;
        }
        let slot = match self.ordered(cx, id) {
            Ok(slot) => slot,
            Err(misuse) => return Some(Err(misuse)),
        };
        let stream = self.streams.get_mut(slot);
        let frame_bytes_max = self.settings.peer_frame_bytes.min(self.limits.data_frame_bytes);
        let windows = stream.send_window.min(self.scheduler.window);
        let begins = stream.sending == Progress::Head && stream.place == Place::Nowhere;
        let has_content =
            !stream.connect && !stream.head_request && !has_no_body(&Method::GET, name.status);
        let fits = body.len() as i64 <= i64::from(windows)
            && body.len() <= frame_bytes_max as usize
            && self.scheduler.is_empty()
            && cx.output_room() > 0;
        if !(begins && has_content && fits) {
            return None;
        }
        let out = cx.output.tail();
        let Compression { encoder, memory, .. } = &mut self.compression;
        let frame_bytes_max = self.settings.peer_frame_bytes;
        let target = Target { stream: id.0, end_stream: false, frame_bytes_max };
        let parts = [memory.block(), own.block()];
        out.reserve(2 * HEADER_BYTES + parts[0].len() + parts[1].len() + body.len());
        if !head_writer::write_again(encoder, out, target, parts) {
            return None;
        }
        data::write_header(out, id.0, body.len() as u32, true);
        out.extend_from_slice(body);
        stream.sending = Progress::Body;
        stream.send_left = 0;
        self.scheduler.sent(stream, body.len() as u32);
        self.finish_sending(cx, slot);
        Some(Ok(()))
    }
}

// What is small fits into any frame.
const _: () = assert!(WHOLE_BODY_BYTES <= FRAME_BYTES as usize);
