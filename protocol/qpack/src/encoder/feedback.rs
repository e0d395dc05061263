//! RFC 9204 §4.4: the instructions of the peer's decoder, in pieces of any size.

use bolide_hpack::{Error as Fault, integer};

use super::{Dynamic, Encoder, place};
use crate::Error;

/// The longest instruction, in bytes: 62 bits after a prefix, with what zeros are tolerated.
const LONGEST: usize = 11;

/// An incomplete instruction.
#[derive(Debug, Default)]
pub(super) struct Partial {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Encoder {
    /// Reads what came on the peer's decoder stream, in pieces of any size.
    ///
    /// # Errors
    ///
    /// Of kind [`DecoderStream`](crate::ErrorKind::DecoderStream).
    pub fn read_feedback(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.partial.length == 0 {
                match self.instruction(bytes)? {
                    Some(length) => bytes = &bytes[length..],
                    None => self.keep(&mut bytes)?,
                }
                continue;
            }
            // One byte more at a time: the instruction ends with one of them.
            let (next, rest) = bytes.split_at(1);
            bytes = rest;
            self.keep(&mut &*next)?;
            let Partial { bytes: kept, length } = self.partial;
            if self.instruction(&kept[..usize::from(length)])?.is_some() {
                self.partial.length = 0;
            }
        }
        Ok(())
    }

    /// Keeps the beginning of an instruction.
    fn keep(&mut self, bytes: &mut &[u8]) -> Result<(), Error> {
        let Partial { bytes: kept, length } = &mut self.partial;
        let start = usize::from(*length);
        let room = kept.get_mut(start..start + bytes.len());
        room.ok_or_else(|| Error::decoder_stream("an integer that is too long"))?
            .copy_from_slice(bytes);
        *length += bytes.len() as u8;
        *bytes = &[];
        Ok(())
    }

    /// Deals with one instruction and returns its length, or `None` if it is not all there.
    fn instruction(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let Some(first) = bytes.first() else { return Ok(None) };
        let mut at = 0;
        let value =
            match integer::decode_wide(bytes, &mut at, if first & 0x80 != 0 { 7 } else { 6 }) {
                Ok(value) => value,
                Err(Fault::Truncated) => return Ok(None),
                Err(_) => return Err(Error::decoder_stream("an integer that is too large")),
            };
        match first >> 6 {
            0b10.. => self.acknowledged(value)?,
            0b01 => self.cancelled(value),
            _ => self.incremented(value)?,
        }
        Ok(Some(at))
    }

    /// RFC 9204 §4.4.1: the stream's oldest section that refers to the table has been decoded.
    fn acknowledged(&mut self, stream: u64) -> Result<(), Error> {
        let table = self.table.as_mut();
        let released = table.is_some_and(|table| table.release(stream));
        if released {
            return Ok(());
        }
        Err(Error::decoder_stream("an acknowledgement of a section that needs none"))
    }

    /// RFC 9204 §4.4.2: no section of the stream will be decoded.
    fn cancelled(&mut self, stream: u64) {
        if let Some(table) = &mut self.table {
            while table.release(stream) {}
        }
    }

    /// RFC 9204 §4.4.3
    fn incremented(&mut self, count: u64) -> Result<(), Error> {
        let wrong = || Error::decoder_stream("an insert count increment that can't be right");
        let table = self.table.as_mut().ok_or_else(wrong)?;
        let known = table.known.checked_add(count).filter(|known| *known <= table.inserted);
        table.known = known.filter(|_| count > 0).ok_or_else(wrong)?;
        Ok(())
    }
}

impl Dynamic {
    /// Forgets the oldest outstanding section of a stream. Whether there was one.
    fn release(&mut self, stream: u64) -> bool {
        let at = self.outstanding.iter().position(|section| section.stream == stream);
        let Some(section) = at.and_then(|at| self.outstanding.remove(at)) else { return false };
        self.marks.pins[place(section.oldest)] -= 1;
        true
    }
}
