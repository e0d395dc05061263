//! RFC 9113 §6.4: RST_STREAM frames, counted by the error code that they carry.

/// The names of the error codes, by their number (RFC 9113 §7); the last stands for all codes beyond.
pub const RESET_CODES: [&str; 15] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
    "other",
];

/// How many RST_STREAM frames there were, by the place of their code in [`RESET_CODES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resets {
    /// Those that were received for open streams.
    pub received: [u32; RESET_CODES.len()],
    /// Those that were sent.
    pub sent: [u32; RESET_CODES.len()],
}

/// The place of a code in [`RESET_CODES`].
pub(crate) fn place(code: u32) -> usize {
    usize::try_from(code).map_or(RESET_CODES.len() - 1, |code| code.min(RESET_CODES.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn every_code_has_its_name() {
        let name = |code: ErrorCode| RESET_CODES[place(code as u32)];
        assert_eq!(name(ErrorCode::NoError), "NO_ERROR");
        assert_eq!(name(ErrorCode::RefusedStream), "REFUSED_STREAM");
        assert_eq!(name(ErrorCode::Cancel), "CANCEL");
        assert_eq!(name(ErrorCode::EnhanceYourCalm), "ENHANCE_YOUR_CALM");
        for code in [14, 15, u32::MAX] {
            assert_eq!(RESET_CODES[place(code)], "other");
        }
    }
}
