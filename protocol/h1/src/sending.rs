//! RFC 9112 §6, §7: the message that is being sent.

use bolide_buffers::{Chunk, Outside, SendQueue};
use bolide_semantics::{End, Misuse};

/// How the body that is being sent is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many more bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// It ends with the connection.
    UntilClose,
    /// The message has no content: what is given goes nowhere.
    Nothing,
    /// Content that is sent as it is.
    Tunnel,
}

/// A piece of a body, in memory or not.
#[derive(Debug)]
pub(crate) enum Piece {
    Chunk(Chunk),
    Outside(Outside),
}

impl Piece {
    #[inline]
    fn len(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.bytes.len() as u64,
            Self::Outside(outside) => outside.bytes as u64,
        }
    }

    #[inline]
    fn queue(self, output: &mut SendQueue) {
        match self {
            Self::Chunk(chunk) => output.push(chunk),
            Self::Outside(outside) => output.push_outside(outside),
        }
    }
}

/// How far the message is that is being sent.
///
/// ```text
///         a head           the output is full
///  Ready ────────▶ Body ◀─────────────────────▶ Blocked
///    ▲              │         there is room
///    │              │ the message's end; by trailers from `Blocked` as well
///    ├── client ────┤
///    │              ▼ server
///    └────────── Complete
///     the request's end
/// ```
#[derive(Debug)]
pub(crate) enum Sending {
    /// The next head may be sent.
    Ready,
    /// A body follows its head.
    Body(Framing),
    /// The same, and the output was full after the last chunk: its leaving will be reported.
    Blocked(Framing),
    /// The response was sent, and its request has not been read yet; or a client has ended its side of a tunnel.
    Complete,
}

impl Sending {
    /// Returns whether a head may be sent.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// A head was sent whose body follows.
    #[inline]
    pub(crate) fn begin(&mut self, framing: Framing) {
        *self = Self::Body(framing);
    }

    /// How the body that may be continued is framed.
    #[inline]
    pub(crate) fn framing(&self) -> Result<Framing, Misuse> {
        match self {
            Self::Ready => Err(Misuse::OutOfOrder),
            Self::Body(framing) | Self::Blocked(framing) => Ok(*framing),
            Self::Complete => Err(Misuse::UnknownExchange),
        }
    }

    /// There is room in the output: more may be given.
    #[inline]
    pub(crate) fn unblock(&mut self) {
        if let Self::Blocked(framing) = *self {
            *self = Self::Body(framing);
        }
    }

    /// Returns whether a chunk waits for its report.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked(_))
    }

    /// The output is full: more may be given after a report.
    #[inline]
    pub(crate) fn block(&mut self) {
        if let Self::Body(framing) = *self {
            *self = Self::Blocked(framing);
        }
    }

    /// Frames a piece of the body.
    #[inline]
    pub(crate) fn data(
        &mut self,
        output: &mut SendQueue,
        data: Piece,
        end: End,
    ) -> Result<Framing, Misuse> {
        let framing = self.framing()?;
        if self.is_blocked() {
            return Err(Misuse::Busy);
        }
        match framing {
            Framing::Length(left) => {
                let length = data.len();
                if length > left || (end == End::Yes && length < left) {
                    return Err(Misuse::WrongLength);
                }
                *self = Self::Body(Framing::Length(left - length));
                data.queue(output);
            }
            Framing::Chunked => chunk(output, data, end),
            Framing::UntilClose | Framing::Tunnel => data.queue(output),
            Framing::Nothing => {}
        }
        Ok(framing)
    }
}

/// The longest line with a chunk's size, in bytes.
const SIZE_LINE_BYTES: usize = 18;

/// Appends one chunk, and the last one if the body ends with it.
fn chunk(output: &mut SendQueue, data: Piece, end: End) {
    if data.len() > 0 {
        let mut line = [0; SIZE_LINE_BYTES];
        let start = size_line(data.len(), &mut line);
        output.tail().extend_from_slice(&line[start..]);
        data.queue(output);
        output.tail().extend_from_slice(b"\r\n");
    }
    if end == End::Yes {
        output.tail().extend_from_slice(b"0\r\n\r\n");
    }
}

/// Writes a chunk's size and CRLF at the end of `line` and returns where they begin.
fn size_line(size: u64, line: &mut [u8; SIZE_LINE_BYTES]) -> usize {
    line[SIZE_LINE_BYTES - 2..].copy_from_slice(b"\r\n");
    let mut start = SIZE_LINE_BYTES - 2;
    let mut left = size;
    loop {
        start -= 1;
        line[start] = b"0123456789abcdef"[(left & 15) as usize];
        left >>= 4;
        if left == 0 {
            return start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn sent(queue: &mut SendQueue) -> Vec<u8> {
        let mut bytes = Vec::new();
        queue.flush(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn size_lines_are_hexadecimal() {
        for size in [0, 1, 15, 16, 0xabc, u64::from(u32::MAX), u64::MAX] {
            let mut line = [0; SIZE_LINE_BYTES];
            let start = size_line(size, &mut line);
            assert_eq!(line[start..], *format!("{size:x}\r\n").as_bytes());
        }
    }

    #[test]
    fn an_empty_piece_is_no_chunk() {
        let mut queue = SendQueue::new();
        let mut sending = Sending::Ready;
        sending.begin(Framing::Chunked);
        sending.data(&mut queue, Piece::Chunk(Bytes::new().into()), End::No).unwrap();
        assert!(queue.is_empty());
        let piece = |bytes: Bytes| Piece::Chunk(bytes.into());
        sending.data(&mut queue, piece(vec![b'x'; 3000].into()), End::No).unwrap();
        sending.data(&mut queue, piece(Bytes::from_static(b"abc")), End::Yes).unwrap();
        let expected = format!("bb8\r\n{}\r\n3\r\nabc\r\n0\r\n\r\n", "x".repeat(3000));
        assert_eq!(sent(&mut queue), expected.as_bytes());
    }

    #[test]
    fn a_piece_that_is_not_in_memory_is_framed_as_any() {
        let outside =
            |bytes| Piece::Outside(Outside { source: std::sync::Arc::new(()), offset: 7, bytes });
        let mut queue = SendQueue::new();
        let mut sending = Sending::Ready;
        sending.begin(Framing::Length(5));
        assert_eq!(sending.data(&mut queue, outside(6), End::No), Err(Misuse::WrongLength));
        assert_eq!(sending.data(&mut queue, outside(4), End::Yes), Err(Misuse::WrongLength));
        assert!(queue.is_empty());
        assert!(sending.data(&mut queue, outside(5), End::Yes).is_ok());
        assert_eq!((queue.len(), queue.outside().map(|next| next.offset)), (5, Some(7)));
        queue.advance(5);
        sending.begin(Framing::Chunked);
        assert!(sending.data(&mut queue, outside(0x1234), End::Yes).is_ok());
        let mut bytes = Vec::new();
        assert_eq!(queue.flush(&mut bytes).unwrap(), bolide_buffers::Flush::Outside);
        queue.advance(0x1234);
        queue.flush(&mut bytes).unwrap();
        assert_eq!(bytes, b"1234\r\n\r\n0\r\n\r\n");
    }

    #[test]
    fn a_counted_body_keeps_its_length() {
        let mut queue = SendQueue::new();
        let mut sending = Sending::Ready;
        let data = |length| Piece::Chunk(Bytes::from(vec![b'x'; length]).into());
        assert_eq!(sending.data(&mut queue, data(1), End::No), Err(Misuse::OutOfOrder));
        sending.begin(Framing::Length(5));
        assert_eq!(sending.data(&mut queue, data(6), End::No), Err(Misuse::WrongLength));
        assert_eq!(sending.data(&mut queue, data(4), End::Yes), Err(Misuse::WrongLength));
        assert!(queue.is_empty());
        assert!(sending.data(&mut queue, data(4), End::No).is_ok());
        sending.block();
        assert_eq!(sending.data(&mut queue, data(1), End::Yes), Err(Misuse::Busy));
        sending.unblock();
        assert!(sending.data(&mut queue, data(1), End::Yes).is_ok());
        assert_eq!(sent(&mut queue), b"xxxxx");
    }
}
