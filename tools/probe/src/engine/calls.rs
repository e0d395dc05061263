//! gRPC over HTTP/2: the messages of a response, and the status that ends a call.

use bolide_semantics::Head;

/// A flag for compression, and a length of four bytes.
const PREFIX_BYTES: usize = 5;

/// The statuses in the order of their codes, and what stands for none.
pub(super) const STATUSES: [&str; 18] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
    "missing",
];

/// Code for one that has no name, as clients of gRPC take it.
const UNKNOWN: usize = 2;

/// The place in [`STATUSES`] of what trailers, or the head of a response without content, say.
pub(super) fn status(head: &Head) -> usize {
    let missing = STATUSES.len() - 1;
    let Some(value) = head.get_named("grpc-status") else { return missing };
    let code = std::str::from_utf8(value).ok().and_then(|text| text.parse::<usize>().ok());
    code.filter(|code| *code < missing).unwrap_or(UNKNOWN)
}

/// Counts messages; none is kept.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    prefix: [u8; PREFIX_BYTES],
    /// How much of the prefix has come.
    prefix_bytes: usize,
    /// Size that is missing of the message after it.
    left: usize,
}

impl MessageReader {
    /// Returns whether another message has come whole; `Err`: it is compressed, which was not offered.
    pub(super) fn next(&mut self, data: &mut &[u8]) -> Result<bool, ()> {
        if self.prefix_bytes < PREFIX_BYTES {
            let (piece, rest) = data.split_at(data.len().min(PREFIX_BYTES - self.prefix_bytes));
            self.prefix[self.prefix_bytes..][..piece.len()].copy_from_slice(piece);
            self.prefix_bytes += piece.len();
            *data = rest;
            if self.prefix_bytes < PREFIX_BYTES {
                return Ok(false);
            }
            let [flag, length @ ..] = self.prefix;
            if flag != 0 {
                return Err(());
            }
            self.left = u32::from_be_bytes(length) as usize;
        }
        let length = data.len().min(self.left);
        *data = &data[length..];
        self.left -= length;
        if self.left > 0 {
            return Ok(false);
        }
        self.prefix_bytes = 0;
        Ok(true)
    }

    /// Returns whether a message has begun and is not complete.
    pub(super) fn is_within(&self) -> bool {
        self.prefix_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_may_come_in_any_pieces() {
        let text = b"\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x01d";
        for length in 1..=text.len() {
            let (mut reader, mut count) = (MessageReader::default(), 0);
            for mut piece in text.chunks(length) {
                while reader.next(&mut piece).unwrap() {
                    count += 1;
                }
                assert!(piece.is_empty());
            }
            assert_eq!((count, reader.is_within()), (3, false), "{length}");
        }
    }
}
