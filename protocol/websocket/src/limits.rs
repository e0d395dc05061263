//! The limits of a WebSocket connection.

use bolide_limits::limits;

/// How much may wait to leave for a ping to get its pong at once; beyond it only the newest ping gets one, once
/// all else has left. Default: 4096. Unit: bytes. Reason: thirty pongs of the longest kind. Against:
/// websocket-ping-flood.
pub const PONGS_BYTES: usize = 4096;

limits! {
    /// The limits of a WebSocket connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        /// The length of a message, inflated; beyond it the connection is closed with 1009. Default: 16 MiB. Unit: bytes. Reason:
        /// as large as the messages of ndt7 and of the Autobahn suite get. Against: large-message.
        message_bytes: u64 = 16 * 1024 * 1024,

        /// The number of frames of one message; beyond it the connection is closed with 1008. Default: 262144. Unit: frames.
        /// Reason: 16 MiB in frames of 64 bytes. Against: fragment-flood.
        fragments_count: u32 = 262_144,

        /// The number of frames without content before the last frame of one message; beyond it the connection is closed with 1008.
        /// Default: 64. Unit: frames. Reason: they carry nothing, and few encoders make any. Against: empty-fragments.
        empty_fragments_count: u32 [from 0] = 64,

        /// Size that a message may inflate to whatever it took on the wire. Default: 1 MiB. Unit: bytes. Reason: small messages that
        /// repeat themselves compress a thousandfold. Against: none.
        inflate_free_bytes: u64 [from 0] = 1024 * 1024,

        /// How many bytes one byte on the wire may inflate to, beyond `inflate_free_bytes`; a message that does more closes the
        /// connection with 1009. Default: 200. Unit: bytes for a byte. Reason: text compresses tenfold, logs up to fiftyfold, and
        /// DEFLATE allows 1032. Against: deflate-bomb.
        inflate_ratio_count: u64 = 200,
    }
}
