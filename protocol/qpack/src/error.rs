//! RFC 9204 §6: what can be wrong with a section or an instruction.

use thiserror::Error;

/// Which connection error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// `QPACK_DECOMPRESSION_FAILED`: an encoded field section can't be decoded.
    DecompressionFailed,
    /// `QPACK_ENCODER_STREAM_ERROR`: an instruction of the peer's encoder is wrong.
    EncoderStream,
    /// `QPACK_DECODER_STREAM_ERROR`: an instruction of the peer's decoder is wrong.
    DecoderStream,
}

impl ErrorKind {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            Self::DecompressionFailed => 0x0200,
            Self::EncoderStream => 0x0201,
            Self::DecoderStream => 0x0202,
        }
    }
}

/// An error of the connection: the tables are out of step from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct Error {
    /// Which error code it has.
    pub kind: ErrorKind,
    /// Description of the error: one fixed phrase.
    pub what: &'static str,
}

impl Error {
    #[cold]
    pub(crate) fn section(what: &'static str) -> Self {
        Self { kind: ErrorKind::DecompressionFailed, what }
    }

    #[cold]
    pub(crate) fn encoder_stream(what: &'static str) -> Self {
        Self { kind: ErrorKind::EncoderStream, what }
    }

    #[cold]
    pub(crate) fn decoder_stream(what: &'static str) -> Self {
        Self { kind: ErrorKind::DecoderStream, what }
    }
}
