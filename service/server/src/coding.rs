//! RFC 9110 §8.4: content codings that a policy has applied to responses.

use std::fmt;
use std::io;

use bolide_eventloop::Offload;

use crate::limits::ENCODED_INLINE_BYTES;

/// Encoding of a response's content, as a [`Policy`](crate::Policy) says.
#[derive(Debug, Clone, Copy)]
pub enum Coding {
    /// It is sent as it is.
    Plain,
    /// It is sent as it is to this client; others get another representation, which `Vary` says.
    Varies,
    /// It is encoded.
    By(&'static dyn Codec, &'static Offload),
}

/// A content coding.
pub trait Codec: fmt::Debug + Send + Sync {
    /// Its name in `Content-Encoding`.
    fn name(&self) -> &'static str;

    /// How much it encodes on the event loop at a time, in bytes: more is encoded by other threads. Default:
    /// [`ENCODED_INLINE_BYTES`](crate::limits::ENCODED_INLINE_BYTES).
    fn inline_bytes(&self) -> usize {
        ENCODED_INLINE_BYTES
    }

    /// Encodes a whole body, which is small.
    ///
    /// # Errors
    ///
    /// That of the encoder.
    fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>>;

    /// Encoder of one body.
    ///
    /// # Errors
    ///
    /// That of the encoder.
    fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>>;
}

/// Encoder of one body, which comes in pieces. What it has made is [taken](Self::take) after each call.
pub trait BodyEncoder: fmt::Debug + Send {
    /// Encodes a piece.
    ///
    /// # Errors
    ///
    /// That of the encoder: the body can't be completed.
    fn write(&mut self, data: &[u8]) -> io::Result<()>;

    /// Has the receiver be able to decode everything so far.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    fn flush(&mut self) -> io::Result<()>;

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    fn finish(&mut self) -> io::Result<()>;

    /// Returns what was made since it was taken last.
    fn take(&mut self) -> Vec<u8>;

    /// The memory that it keeps, in bytes, but for what is taken.
    fn held_bytes(&self) -> usize;
}
