//! RFC 9113 §6.5, RFC 8441 §3, RFC 9218 §2.1: SETTINGS.

use super::{FrameHeader, flag, kind, read_u32};

/// One parameter, in bytes.
pub(crate) const ENTRY_BYTES: u32 = 6;

/// The parameters that have a meaning here.
pub(crate) mod id {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
    pub(crate) const ENABLE_PUSH: u16 = 0x2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

/// The parameters of a SETTINGS frame, in their order.
pub(crate) fn entries(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload
        .chunks_exact(ENTRY_BYTES as usize)
        .map(|entry| (u16::from_be_bytes([entry[0], entry[1]]), read_u32(&entry[2..])))
}

/// Appends a SETTINGS frame.
pub(crate) fn write(out: &mut Vec<u8>, entries: &[(u16, u32)]) {
    let length = entries.len() as u32 * ENTRY_BYTES;
    FrameHeader { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in entries {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of a SETTINGS frame.
pub(crate) fn write_ack(out: &mut Vec<u8>) {
    FrameHeader { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_back_as_they_were_written() {
        let sent = [(id::ENABLE_PUSH, 0), (id::INITIAL_WINDOW_SIZE, 0x0102_0304)];
        let mut out = Vec::new();
        write(&mut out, &sent);
        assert_eq!(out[..9], [0, 0, 12, 4, 0, 0, 0, 0, 0]);
        assert_eq!(entries(&out[9..]).collect::<Vec<_>>(), sent);
    }
}
