//! RFC 9114 §8.1: error codes, and what becomes of an error: it ends a stream or the connection.

use bolide_semantics::{Blame, CloseReason};

/// An error code as it travels in RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum ErrorCode {
    /// RFC 9297 §2.1: a datagram or capsule that can't be right.
    DatagramError = 0x33,
    /// Not an error: an orderly end.
    NoError = 0x100,
    /// A violation of the protocol that no other code names.
    GeneralProtocolError = 0x101,
    /// Something went wrong on this side.
    InternalError = 0x102,
    /// A stream that the peer must not open.
    StreamCreationError = 0x103,
    /// A stream that the connection needs was closed or reset.
    ClosedCriticalStream = 0x104,
    /// A frame that is not permitted where it came.
    FrameUnexpected = 0x105,
    /// A frame whose layout or size is wrong.
    FrameError = 0x106,
    /// The peer causes more work than it is worth.
    ExcessiveLoad = 0x107,
    /// A stream or push identifier that is wrong.
    IdError = 0x108,
    /// A setting that is wrong.
    SettingsError = 0x109,
    /// The control stream does not begin with SETTINGS.
    MissingSettings = 0x10a,
    /// The request was not acted on.
    RequestRejected = 0x10b,
    /// The request or its response is not wanted any more.
    RequestCancelled = 0x10c,
    /// The request ended before it was complete.
    RequestIncomplete = 0x10d,
    /// A malformed message.
    MessageError = 0x10e,
    /// The connection of a CONNECT request failed.
    ConnectError = 0x10f,
    /// The request can be served over HTTP/1.1 only.
    VersionFallback = 0x110,
    /// RFC 9204 §6: a field section that can't be decoded.
    QpackDecompressionFailed = 0x200,
    /// RFC 9204 §6: a wrong instruction of the peer's encoder.
    QpackEncoderStreamError = 0x201,
    /// RFC 9204 §6: a wrong instruction of the peer's decoder.
    QpackDecoderStreamError = 0x202,
}

/// An error of the connection: it ends with the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) blame: Blame,
    /// For counters.
    pub(crate) name: &'static str,
    /// For a log, and for the peer.
    pub(crate) what: &'static str,
}

impl Fault {
    #[cold]
    pub(crate) fn new(code: ErrorCode, what: &'static str) -> Self {
        let name = match code {
            ErrorCode::FrameUnexpected => "frame-unexpected",
            ErrorCode::FrameError => "frame-error",
            ErrorCode::SettingsError | ErrorCode::MissingSettings => "settings-error",
            ErrorCode::IdError => "id-error",
            ErrorCode::ClosedCriticalStream => "closed-critical-stream",
            ErrorCode::StreamCreationError => "stream-creation-error",
            _ => "protocol-error",
        };
        Self { code, blame: Blame::Peer, name, what }
    }

    #[cold]
    pub(crate) fn unexpected(what: &'static str) -> Self {
        Self::new(ErrorCode::FrameUnexpected, what)
    }

    /// A budget is spent; `name` is the attack that it answers.
    #[cold]
    pub(crate) fn abuse(name: &'static str, what: &'static str) -> Self {
        Self { code: ErrorCode::ExcessiveLoad, blame: Blame::Peer, name, what }
    }

    pub(crate) fn reason(self) -> CloseReason {
        CloseReason { blame: Some(self.blame), name: self.name, what: self.what, reset: false }
    }
}

impl From<bolide_qpack::Error> for Fault {
    #[cold]
    fn from(error: bolide_qpack::Error) -> Self {
        use bolide_qpack::ErrorKind;
        let code = match error.kind {
            ErrorKind::DecompressionFailed => ErrorCode::QpackDecompressionFailed,
            ErrorKind::EncoderStream => ErrorCode::QpackEncoderStreamError,
            ErrorKind::DecoderStream => ErrorCode::QpackDecoderStreamError,
        };
        Self { code, blame: Blame::Peer, name: "compression-error", what: error.what }
    }
}
