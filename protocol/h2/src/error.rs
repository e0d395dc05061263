//! Error codes, and what becomes of an error: it ends a stream or the connection.

use bolide_semantics::{Blame, CloseReason};

/// An error code as it travels in RST_STREAM and GOAWAY (RFC 9113 §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// Not an error: an orderly end.
    NoError = 0x0,
    /// The peer violated the protocol.
    ProtocolError = 0x1,
    /// Something went wrong on this side.
    InternalError = 0x2,
    /// The peer sent more than a window allows, or opened one too far.
    FlowControlError = 0x3,
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout = 0x4,
    /// A frame for a stream that has ended.
    StreamClosed = 0x5,
    /// A frame of a size that its type does not allow.
    FrameSizeError = 0x6,
    /// The stream was not acted on.
    RefusedStream = 0x7,
    /// The stream is not wanted any more.
    Cancel = 0x8,
    /// A header block that can't be decoded.
    CompressionError = 0x9,
    /// The connection of a CONNECT request failed.
    ConnectError = 0xa,
    /// The peer causes more work than it is worth.
    EnhanceYourCalm = 0xb,
}

/// An error of the connection: it ends with a GOAWAY that carries the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) blame: Option<Blame>,
    /// For counters.
    pub(crate) name: &'static str,
    /// For a log, and for the peer in the GOAWAY's debug data.
    pub(crate) what: &'static str,
}

impl Fault {
    #[cold]
    pub(crate) fn protocol(what: &'static str) -> Self {
        Self::peer(ErrorCode::ProtocolError, "protocol-error", what)
    }

    #[cold]
    pub(crate) fn frame_size(what: &'static str) -> Self {
        Self::peer(ErrorCode::FrameSizeError, "frame-size-error", what)
    }

    #[cold]
    pub(crate) fn flow_control(what: &'static str) -> Self {
        Self::peer(ErrorCode::FlowControlError, "flow-control-error", what)
    }

    #[cold]
    pub(crate) fn closed(what: &'static str) -> Self {
        Self::peer(ErrorCode::StreamClosed, "stream-closed", what)
    }

    /// An abuse budget is spent; `name` is the attack that it answers.
    #[cold]
    pub(crate) fn abuse(name: &'static str, what: &'static str) -> Self {
        Self::peer(ErrorCode::EnhanceYourCalm, name, what)
    }

    #[cold]
    pub(crate) fn peer(code: ErrorCode, name: &'static str, what: &'static str) -> Self {
        Self { code, blame: Some(Blame::Peer), name, what }
    }

    #[cold]
    pub(crate) fn circumstance(code: ErrorCode, name: &'static str, what: &'static str) -> Self {
        Self { code, blame: Some(Blame::Circumstance), name, what }
    }

    pub(crate) fn reason(self) -> CloseReason {
        CloseReason { blame: self.blame, name: self.name, what: self.what, reset: false }
    }
}
