//! RFC 9112 §6.3: where the body of a received message ends.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::End;

use crate::chunked::{Chunked, Step};
use crate::error::Failure;

/// How a body ends, and how far it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// After so many more bytes.
    Length(u64),
    /// With its last chunk.
    Chunked(Chunked),
    /// With the connection.
    UntilClose,
    /// Not a body: everything that comes, until the peer ends.
    Tunnel,
}

impl Body {
    /// Finds what comes next, and consumes framing on the way.
    #[inline]
    pub(crate) fn next(
        &mut self,
        input: &mut ReceiveBuffer,
        extension_bytes_max: u32,
    ) -> Result<Step, &'static Failure> {
        match self {
            Self::Length(left) => {
                if input.is_empty() {
                    return Ok(Step::Starved);
                }
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= length as u64;
                Ok(Step::Content(length, if *left == 0 { End::Yes } else { End::No }))
            }
            Self::Chunked(chunked) => chunked.next(input, extension_bytes_max),
            Self::UntilClose | Self::Tunnel => match input.len() {
                0 => Ok(Step::Starved),
                length => Ok(Step::Content(length, End::No)),
            },
        }
    }

    /// How many more bytes there certainly are.
    pub(crate) fn known_left(&self) -> u64 {
        match self {
            Self::Length(left) => *left,
            Self::Chunked(_) | Self::UntilClose | Self::Tunnel => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_body_ends_with_its_last_byte() {
        let mut input = ReceiveBuffer::new(64);
        let mut body = Body::Length(5);
        assert_eq!(body.next(&mut input, 0), Ok(Step::Starved));
        input.extend(b"abc");
        assert_eq!(body.next(&mut input, 0), Ok(Step::Content(3, End::No)));
        input.consume(3);
        assert_eq!(body.known_left(), 2);
        input.extend(b"deGET");
        assert_eq!(body.next(&mut input, 0), Ok(Step::Content(2, End::Yes)));
    }

    #[test]
    fn a_tunnel_never_ends_by_itself() {
        let mut input = ReceiveBuffer::new(64);
        input.extend(b"0\r\n\r\n");
        assert_eq!(Body::Tunnel.next(&mut input, 0), Ok(Step::Content(5, End::No)));
        assert_eq!(Body::UntilClose.next(&mut input, 0), Ok(Step::Content(5, End::No)));
    }
}
