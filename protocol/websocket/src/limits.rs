//! The limits of a WebSocket connection.

/// The length of a message, inflated; beyond it the connection is closed with 1009. Default: 16 MiB. Unit:
/// bytes. Reason: as large as the messages of ndt7 and of the Autobahn suite get. Answers: large-message.
pub const MESSAGE_BYTES: u64 = 16 * 1024 * 1024;

/// The number of frames of one message; beyond it the connection is closed with 1008. Default: 262144.
/// Unit: frames. Reason: 16 MiB in frames of 64 bytes. Answers: fragment-flood.
pub const FRAGMENTS_COUNT: u32 = 262_144;

/// The number of frames without content before the last frame of one message; beyond it the connection is
/// closed with 1008. Default: 64. Unit: frames. Reason: they carry nothing, and few encoders make any.
/// Answers: empty-fragments.
pub const EMPTY_FRAGMENTS_COUNT: u32 = 64;

/// What a message may inflate to whatever it took on the wire. Default: 1 MiB. Unit: bytes. Reason: small
/// messages that repeat themselves compress a thousandfold. Answers: none.
pub const INFLATE_FREE_BYTES: u64 = 1024 * 1024;

/// How many bytes one byte on the wire may inflate to, beyond [`INFLATE_FREE_BYTES`]; a message that does
/// more closes the connection with 1009. Default: 200. Unit: bytes for a byte. Reason: text compresses
/// tenfold, logs up to fiftyfold, and DEFLATE allows 1032. Answers: deflate-bomb.
pub const INFLATE_RATIO_COUNT: u64 = 200;

/// How much may wait to leave for a ping to get its pong at once; beyond it only the newest ping gets one, once
/// all else has left. Default: 4096. Unit: bytes. Reason: thirty pongs of the longest kind. Answers:
/// websocket-ping-flood.
pub const PONGS_BYTES: usize = 4096;

/// The limits of a WebSocket connection. Each is named after the constant that is its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// [`MESSAGE_BYTES`].
    pub message_bytes: u64,
    /// [`FRAGMENTS_COUNT`].
    pub fragments_count: u32,
    /// [`EMPTY_FRAGMENTS_COUNT`].
    pub empty_fragments_count: u32,
    /// [`INFLATE_FREE_BYTES`].
    pub inflate_free_bytes: u64,
    /// [`INFLATE_RATIO_COUNT`].
    pub inflate_ratio_count: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: MESSAGE_BYTES,
            fragments_count: FRAGMENTS_COUNT,
            empty_fragments_count: EMPTY_FRAGMENTS_COUNT,
            inflate_free_bytes: INFLATE_FREE_BYTES,
            inflate_ratio_count: INFLATE_RATIO_COUNT,
        }
    }
}
