//! RFC 9113 §8.1: a whole answer in one step, for the many that are like the one before and small.

use bolide_semantics::{Context, ExchangeId, HeadName, Misuse, has_no_body};
use http::Method;

use crate::connection::{Compression, Connection};
use crate::frame::{HEADER_BYTES, data};
use crate::head_writer::{self, Target};
use crate::limits::{FRAME_BYTES, WHOLE_BODY_BYTES};
use crate::stream::{Place, Progress};

impl Connection {
    /// Sends the head that has this name and a body of `WHOLE_BODY_BYTES` at most, which is copied, and ends the
    /// answer: the same as [`send_head_again`](Self::send_head_again) and then
    /// [`send_data`](Self::send_data), with one look at the exchange. `None`: the head isn't remembered, the
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
        body: &[u8],
    ) -> Option<Result<(), Misuse>> {
        let Compression { encoder, memory, .. } = &mut self.compression;
        let length = memory.recognise_named(name, encoder.generation())?;
        let is_plain = length == body.len() as u64 && !memory.has_priority();
        if !is_plain || body.is_empty() || body.len() > WHOLE_BODY_BYTES {
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
        out.reserve(2 * HEADER_BYTES + memory.block().len() + body.len());
        if !head_writer::write_again(encoder, out, target, memory.block()) {
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
