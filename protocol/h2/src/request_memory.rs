//! RFC 7541 §2.3: the header block of a request that came last, and what it came to.
//!
//! Clients send the same few octets again and again. As long as the decoder's table is the same they mean the
//! same, and as long as the worker's head still holds that, nothing has to be decoded, checked or written.

use bolide_hpack::Decoder;
use bolide_semantics::{Head, HeadMark, HeadMarks};

use crate::error::Fault;
use crate::head_reader::{Expected, Size, Summary};
use crate::limits::{Limits, REMEMBERED_BLOCK_BYTES};
use crate::receive_headers::decode;

/// Blocks in a row that were others, after which only one in as many is remembered.
const OTHERS_COUNT: u32 = 8;

/// No block is as long.
const FORGOTTEN: u32 = u32::MAX;

/// One remembered block.
#[derive(Debug)]
struct Remembered {
    /// The decoder's count of changes, for which the rest holds.
    changes: u32,
    length: u32,
    block: [u8; REMEMBERED_BLOCK_BYTES],
    /// Stands for the head that it came to.
    mark: HeadMark,
    summary: Summary,
    marks: HeadMarks,
    /// Blocks that were others since it came last.
    others: u32,
}

/// The last request of a connection, if it may come again as it is.
#[derive(Debug, Default)]
pub(crate) struct RequestMemory(Option<Box<Remembered>>);

impl RequestMemory {
    /// Reads the block of a request into the head, which may hold it already.
    #[inline]
    pub(crate) fn read(
        &mut self,
        decoder: &mut Decoder,
        scratch: &mut Vec<u8>,
        block: &[u8],
        head: &mut Head,
        limits: &Limits,
    ) -> Result<Summary, Fault> {
        if let Some(known) = &mut self.0
            && head.mark() == Some(known.mark)
            && known.is(block, decoder.changes())
        {
            known.others = 0;
            return Ok(known.summary);
        }
        let changes = decoder.changes();
        let summary = decode(decoder, scratch, block, head, Expected::Request, limits)?;
        if decoder.changes() != changes {
            self.forget();
        } else if block.len() <= REMEMBERED_BLOCK_BYTES && summary.is_sound() {
            let known = self.0.get_or_insert_with(|| Box::new(Remembered::nothing(summary)));
            known.remember(changes, block, head, summary);
        }
        Ok(summary)
    }

    fn forget(&mut self) {
        if let Some(known) = &mut self.0 {
            known.length = FORGOTTEN;
        }
    }

    pub(crate) fn trim(&mut self) {
        self.0 = None;
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| size_of::<Remembered>())
    }
}

impl Remembered {
    fn nothing(summary: Summary) -> Self {
        let mut marks = HeadMarks::default();
        let (mark, block) = (marks.make(), [0; REMEMBERED_BLOCK_BYTES]);
        Self { changes: 0, length: FORGOTTEN, block, mark, summary, marks, others: 0 }
    }

    /// The head holds what this block came to, which changed nothing in the decoder.
    fn remember(&mut self, changes: u32, block: &[u8], head: &mut Head, summary: Summary) {
        if self.is(block, changes) {
            self.others = 0;
            return head.set_mark(self.mark);
        }
        self.others = self.others.wrapping_add(1);
        if self.others > OTHERS_COUNT && !self.others.is_multiple_of(OTHERS_COUNT) {
            return;
        }
        self.block[..block.len()].copy_from_slice(block);
        (self.changes, self.length, self.mark) = (changes, block.len() as u32, self.marks.make());
        self.summary = summary;
        head.set_mark(self.mark);
    }

    #[inline]
    fn is(&self, block: &[u8], changes: u32) -> bool {
        self.changes == changes
            && self.length as usize == block.len()
            && self.block[..block.len()] == *block
    }
}

impl Summary {
    /// Whether the head can be served as it is.
    fn is_sound(&self) -> bool {
        self.malformed.is_none() && self.size == Size::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GET http://a/NAME, where the name is one octet and stays out of the table.
    fn block(name: u8) -> Vec<u8> {
        [&[0x82, 0x86, 0x04, 2, b'/', name, 0x01, 1][..], b"a"].concat()
    }

    struct Reader {
        decoder: Decoder,
        memory: RequestMemory,
        limits: Limits,
    }

    impl Reader {
        fn new() -> Self {
            let (decoder, memory) = (Decoder::default(), RequestMemory::default());
            Self { decoder, memory, limits: Limits::default() }
        }

        fn read(&mut self, block: &[u8], head: &mut Head) -> Result<Summary, Fault> {
            let mut scratch = Vec::new();
            self.memory.read(&mut self.decoder, &mut scratch, block, head, &self.limits)
        }
    }

    #[test]
    fn the_same_block_is_not_decoded_again() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        reader.read(&block(b'x'), &mut head).unwrap();
        let mark = head.mark().unwrap();
        let text = head.text().as_ptr();
        reader.read(&block(b'x'), &mut head).unwrap();
        assert_eq!((head.mark(), head.text().as_ptr()), (Some(mark), text));
        assert_eq!(head.path_and_query(), "/x");
        reader.read(&block(b'y'), &mut head).unwrap();
        assert_ne!(head.mark(), Some(mark));
        assert_eq!(head.path_and_query(), "/y");
    }

    #[test]
    fn a_head_that_others_have_used_is_written_again_and_has_the_same_mark() {
        let (mut reader, mut other, mut head) = (Reader::new(), Reader::new(), Head::default());
        reader.read(&block(b'x'), &mut head).unwrap();
        let mark = head.mark();
        other.read(&block(b'y'), &mut head).unwrap();
        assert_ne!(head.mark(), mark);
        reader.read(&block(b'x'), &mut head).unwrap();
        assert_eq!((head.mark(), head.path_and_query()), (mark, "/x"));
    }

    #[test]
    fn the_same_octets_after_a_change_of_the_table_are_decoded() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        // The path is the newest entry.
        let newest = [0x82, 0x86, 0xbe, 0x01, 1, b'a'];
        let inserts = |name| [&[0x82, 0x86, 0x44, 2, b'/', name, 0x01, 1][..], b"a"].concat();
        reader.read(&inserts(b'x'), &mut head).unwrap();
        assert_eq!(head.mark(), None, "a block that changes the table means something else next");
        reader.read(&newest, &mut head).unwrap();
        assert_eq!(head.path_and_query(), "/x");
        assert!(head.mark().is_some());
        let saved = head.clone();
        reader.read(&inserts(b'y'), &mut head).unwrap();
        head = saved;
        reader.read(&newest, &mut head).unwrap();
        assert_eq!(head.path_and_query(), "/y");
    }

    #[test]
    fn our_settings_are_enforced_on_a_block_that_is_remembered() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        reader.read(&block(b'x'), &mut head).unwrap();
        reader.decoder.set_table_bytes_max(0);
        assert!(reader.read(&block(b'x'), &mut head).is_err(), "a size update is missing");
    }

    #[test]
    fn what_is_malformed_is_not_remembered() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        for _ in 0..2 {
            let summary = reader.read(&[0x82, 0x86], &mut head).unwrap();
            assert!(summary.malformed.is_some());
            assert_eq!(head.mark(), None);
        }
        let long = [&[0x82, 0x86, 0x04, 127, 73, b'/'][..], &[b'x'; 199], &[1, 1, b'a']].concat();
        reader.read(&long, &mut head).unwrap();
        assert_eq!(head.path_and_query().len(), 200);
        assert_eq!((head.mark(), reader.memory.allocated_bytes()), (None, 0));
    }

    #[test]
    fn requests_that_all_differ_are_seldom_remembered() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        let mut marked = 0;
        for name in b'a'..=b'z' {
            reader.read(&block(name), &mut head).unwrap();
            marked += usize::from(head.mark().is_some());
        }
        assert!((8..=11).contains(&marked), "{marked}");
        for _ in 0..10 {
            reader.read(&block(b'z'), &mut head).unwrap();
        }
        assert!(head.mark().is_some(), "what begins to repeat is remembered");
    }
}
