//! RFC 9113 §4.1: frames, written and read without the crate.

pub(crate) use bolide_frames::*;

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
pub(crate) const SETTINGS_TIMEOUT: u32 = 4;
pub(crate) const STREAM_CLOSED: u32 = 5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const COMPRESSION_ERROR: u32 = 9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
pub(crate) const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

/// One frame as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The big-endian number at `offset` of the payload.
    pub(crate) fn u32_at(&self, offset: usize) -> u32 {
        u32::from_be_bytes(self.payload[offset..offset + 4].try_into().unwrap())
    }
}

/// Divides bytes into frames; the last must be complete.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let stream = u32::from_be_bytes(bytes[5..9].try_into().unwrap());
        let payload = bytes[9..9 + length].to_vec();
        found.push(Frame { kind: bytes[3], flags: bytes[4], stream, payload });
        bytes = &bytes[9 + length..];
    }
    found
}

/// A GET request.
pub(crate) fn get(stream: u32) -> Vec<u8> {
    headers(stream, true, &GET)
}

/// The head of a POST request.
pub(crate) fn post(stream: u32) -> Vec<u8> {
    headers(stream, false, &POST)
}

pub(crate) fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

pub(crate) fn ping(payload: [u8; 8]) -> Vec<u8> {
    frame(PING, 0, 0, &payload)
}

pub(crate) fn goaway(last: u32, code: u32) -> Vec<u8> {
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend(code.to_be_bytes());
    frame(GOAWAY, 0, 0, &payload)
}

pub(crate) fn priority_update(stream: u32, value: &str) -> Vec<u8> {
    let mut payload = stream.to_be_bytes().to_vec();
    payload.extend(value.as_bytes());
    frame(PRIORITY_UPDATE, 0, 0, &payload)
}
