//! RFC 9112 §7.1: the chunked transfer coding, as it is received.

use bolide_buffers::ReceiveBuffer;
use bolide_semantics::{End, TOKEN_LOWER};

use crate::error::{
    BAD_CHUNK_END, BAD_CHUNK_EXTENSION, BAD_CHUNK_SIZE, BARE_LF, CHUNK_EXTENSIONS_TOO_LARGE,
    Failure,
};
use crate::limits::CHUNK_SIZE_DIGITS_COUNT;

/// Next part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes at the beginning of the input are content; the caller consumes them.
    Content(usize, End),
    /// The body has ended.
    End,
    /// A trailer section begins at the beginning of the input.
    Trailers,
    /// Nothing until more bytes come.
    Starved,
}

/// How far a chunked body has been read. Everything but trailers is consumed as it comes, byte by
/// byte, so that no line is ever looked at twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunked {
    at: At,
    /// The digits of the size so far.
    digits: u8,
    /// The bytes of chunk extensions so far.
    extension_bytes: u32,
    /// The size so far, or what is left of the chunk's data, in bytes.
    left: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    /// Behind the semicolon, before the extension's name.
    ExtensionName,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
}

impl Chunked {
    /// Consumes framing up to the next thing there is.
    pub(crate) fn next(
        &mut self,
        input: &mut ReceiveBuffer,
        extension_bytes_max: u32,
    ) -> Result<Step, &'static Failure> {
        if self.at != At::Data {
            let unread = input.unread();
            let mut used = 0;
            for byte in unread {
                if !matches!(self.at, At::Data | At::Trailers) {
                    used += 1;
                    self.byte(*byte)?;
                    if self.extension_bytes > extension_bytes_max {
                        return Err(&CHUNK_EXTENSIONS_TOO_LARGE);
                    }
                    continue;
                }
                break;
            }
            input.consume(used);
        }
        match (self.at, input.unread()) {
            (At::Data, [_, ..]) => {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
                self.left -= length as u64;
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                Ok(Step::Content(length, End::No))
            }
            (At::Trailers, [b'\r', b'\n', ..]) => {
                input.consume(2);
                Ok(Step::End)
            }
            (At::Trailers, [b'\r']) => Ok(Step::Starved),
            (At::Trailers, [_, ..]) => Ok(Step::Trailers),
            _ => Ok(Step::Starved),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), &'static Failure> {
        self.at = match (self.at, byte) {
            (At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.digits == CHUNK_SIZE_DIGITS_COUNT {
                    return Err(&BAD_CHUNK_SIZE);
                }
                self.digits += 1;
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    _ => (byte | 0x20) - b'a' + 10,
                };
                self.left = self.left << 4 | u64::from(digit);
                At::Size
            }
            (At::Size, b'\r') if self.digits > 0 => At::SizeLf,
            (At::Size, b';') if self.digits > 0 => At::ExtensionName,
            (At::Size, b'\n') => return Err(&BARE_LF),
            (At::Size, _) => return Err(&BAD_CHUNK_SIZE),
            (At::ExtensionName, b' ' | b'\t') => {
                self.extension_bytes += 1;
                At::ExtensionName
            }
            (At::ExtensionName, _) if TOKEN_LOWER[usize::from(byte)] == 0 => {
                return Err(&BAD_CHUNK_EXTENSION);
            }
            (At::Extension, b'\r') => At::SizeLf,
            (At::Extension, b'\n') => return Err(&BARE_LF),
            (At::Extension, b'\t') => {
                self.extension_bytes += 1;
                At::Extension
            }
            (At::Extension, 0..0x20 | 0x7f) => return Err(&BAD_CHUNK_EXTENSION),
            (At::ExtensionName | At::Extension, _) => {
                self.extension_bytes += 1;
                At::Extension
            }
            (At::SizeLf, b'\n') => {
                self.digits = 0;
                if self.left == 0 { At::Trailers } else { At::Data }
            }
            (At::SizeLf, _) => return Err(&BAD_CHUNK_SIZE),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            (At::DataCr | At::DataLf, _) => return Err(&BAD_CHUNK_END),
            (At::Data | At::Trailers, _) => self.at,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content and whether the body ended, reading `piece` bytes at a time; or the failure.
    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, Step), &'static Failure> {
        let mut chunked = Chunked::default();
        let mut input = ReceiveBuffer::new(1024);
        let mut content = Vec::new();
        let mut last = Step::Starved;
        for piece in bytes.chunks(piece) {
            input.extend(piece);
            loop {
                last = chunked.next(&mut input, 20)?;
                let Step::Content(length, _) = last else { break };
                content.extend_from_slice(&input.unread()[..length]);
                input.consume(length);
            }
        }
        Ok((content, last))
    }

    fn in_any_pieces(bytes: &[u8]) -> Result<(Vec<u8>, Step), &'static Failure> {
        let whole = decode(bytes, bytes.len());
        for piece in 1..bytes.len() {
            assert_eq!(decode(bytes, piece), whole, "{piece}");
        }
        whole
    }

    #[test]
    fn chunks_become_content() {
        let bytes = b"3\r\nabc\r\n00A;a; b=\"c\"\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(in_any_pieces(bytes), Ok((b"abc0123456789".to_vec(), Step::End)));
        assert_eq!(in_any_pieces(b"0000000000000000\r\n\r\n"), Ok((Vec::new(), Step::End)));
        assert_eq!(decode(b"0\r\na: b\r\n", 100), Ok((Vec::new(), Step::Trailers)));
    }

    #[test]
    fn chunk_sizes_are_digits_and_nothing_else() {
        for bad in [
            "\r\n",
            ";a\r\n",
            "g\r\n",
            "0x5\r\n",
            "+5\r\n",
            "-5\r\n",
            " 5\r\n",
            "5 \r\n",
            "5_0\r\n",
            "5\t;a\r\n",
            "5.\r\n",
            "5\rX",
        ] {
            assert_eq!(in_any_pieces(bad.as_bytes()), Err(&BAD_CHUNK_SIZE), "{bad:?}");
        }
        assert_eq!(in_any_pieces(b"5\nabcde\r\n"), Err(&BARE_LF));
        assert_eq!(in_any_pieces(b"5;a\nabcde\r\n"), Err(&BARE_LF));
    }

    #[test]
    fn chunk_size_overflow() {
        assert_eq!(in_any_pieces(b"00000000000000005\r\n"), Err(&BAD_CHUNK_SIZE));
        assert_eq!(in_any_pieces(b"10000000000000000\r\n"), Err(&BAD_CHUNK_SIZE));
        let (content, _) = in_any_pieces(b"ffffffffffffffff\r\nabc").unwrap();
        assert_eq!(content, b"abc");
    }

    #[test]
    fn chunks_end_in_crlf() {
        for bad in ["3\r\nabc\n0\r\n\r\n", "3\r\nabc\rX", "3\r\nabcd\r\n"] {
            assert_eq!(in_any_pieces(bad.as_bytes()), Err(&BAD_CHUNK_END), "{bad:?}");
        }
    }

    #[test]
    fn chunk_extensions() {
        for bad in ["1;\r\na", "1; \r\na", "1;=b\r\n", "1;a\0\r\n", "1;a\x7f\r\n"] {
            assert_eq!(in_any_pieces(bad.as_bytes()), Err(&BAD_CHUNK_EXTENSION), "{bad:?}");
        }
        let small = "1;aaaaaaaaaa\r\nx\r\n".repeat(2);
        assert!(in_any_pieces(small.as_bytes()).is_ok());
        let large = "1;aaaaaaaaaa\r\nx\r\n".repeat(3);
        assert_eq!(in_any_pieces(large.as_bytes()), Err(&CHUNK_EXTENSIONS_TOO_LARGE));
    }
}
