//! RFC 7541 §2.3: the header blocks of requests that came before, and what they came to.
//!
//! The same octets mean the same as long as the decoder's table is the same. The worker's head remembers what they
//! came to, for all connections whose tables are equal: those whose peers have inserted the same lines in the same
//! order, as all connections of one program do.

use bolide_hpack::Decoder;
use bolide_semantics::{CodingState, Head, HeadNote};

use crate::error::Fault;
use crate::head_reader::{Expected, Size, Summary};
use crate::limits::Limits;
use crate::priority::Priority;
use crate::receive_headers::decode;

/// Changes of its table after which a connection shares no states with others: its peer changes it again and again.
const SHARED_CHANGES_COUNT: u64 = 64;

/// What the meaning of the peer's blocks depends on.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    state: CodingState,
    /// The decoder's count of changes, for which that holds.
    changes: u64,
}

impl RequestMemory {
    /// For a decoder that has decoded nothing.
    pub(crate) fn new() -> Self {
        Self { state: CodingState::START, changes: 0 }
    }

    /// Reads the block of a request into the head, which may know it already.
    #[inline]
    pub(crate) fn read(
        &mut self,
        decoder: &mut Decoder,
        scratch: &mut Vec<u8>,
        block: &[u8],
        head: &mut Head,
        limits: &Limits,
    ) -> Result<Summary, Fault> {
        let changes = decoder.changes();
        if changes == self.changes
            && let Some(note) = head.recall(self.state, block)
            && let Some(summary) = Summary::of_note(note, limits)
        {
            return Ok(summary);
        }
        if changes != self.changes {
            // Our settings have changed what the decoder takes.
            (self.state, self.changes) = (head.another_state(), changes);
        }
        let summary = decode(decoder, scratch, block, head, Expected::Request, limits)?;
        if decoder.changes() != changes {
            self.has_changed(decoder, block, head);
        } else if let Some(note) = summary.note() {
            head.keep(self.state, block, note);
        }
        Ok(summary)
    }

    /// A block has changed the table.
    #[cold]
    fn has_changed(&mut self, decoder: &Decoder, block: &[u8], head: &mut Head) {
        let count = (decoder.changes() - self.changes) as usize;
        self.changes = decoder.changes();
        let lines = decoder.newest();
        let resizes = block.first().is_some_and(|first| first & 0xe0 == 0x20);
        // What has left already, or a new size, is not among the lines.
        if self.changes > SHARED_CHANGES_COUNT || resizes || count > lines.len() {
            self.state = head.another_state();
            return;
        }
        let mut change = Vec::new();
        for (name, value) in lines.take(count) {
            for part in [name, value] {
                change.extend_from_slice(&(part.len() as u32).to_le_bytes());
                change.extend_from_slice(part);
            }
        }
        self.state = head.state_after(self.state, &change);
    }
}

/// The bits of a note.
const CONNECT: u64 = 1;
const PATIENT: u64 = 1 << 1;
const INCREMENTAL: u64 = 1 << 2;
const PRIORITY: u64 = 1 << 3;
const URGENCY: u32 = 4;
const FIELDS: u32 = 16;
const LIST_BYTES: u32 = 32;

impl Summary {
    /// What to note beside a head that can be served as it is.
    fn note(&self) -> Option<HeadNote> {
        let fields = u16::try_from(self.fields).ok()?;
        if self.malformed.is_some() || self.size != Size::Fine {
            return None;
        }
        let mut bits = u64::from(self.list_bytes) << LIST_BYTES | u64::from(fields) << FIELDS;
        bits |= if self.connect { CONNECT } else { 0 } | if self.patient { PATIENT } else { 0 };
        if let Some(Priority { urgency, incremental }) = self.priority {
            bits |= PRIORITY | u64::from(urgency) << URGENCY;
            bits |= if incremental { INCREMENTAL } else { 0 };
        }
        Some(HeadNote([self.content_length, bits]))
    }

    /// The same back from the note, if the head is within the limits, which may be others than those by which it
    /// was read.
    #[inline]
    fn of_note(note: HeadNote, limits: &Limits) -> Option<Self> {
        let HeadNote([content_length, bits]) = note;
        let (list_bytes, fields) =
            ((bits >> LIST_BYTES) as u32, u32::from((bits >> FIELDS) as u16));
        if list_bytes > limits.header_list_bytes || fields > limits.header_fields_count {
            return None;
        }
        let priority = (bits & PRIORITY != 0).then_some(Priority {
            urgency: (bits >> URGENCY) as u8 & 7,
            incremental: bits & INCREMENTAL != 0,
        });
        Some(Self {
            malformed: None,
            size: Size::Fine,
            content_length,
            connect: bits & CONNECT != 0,
            patient: bits & PATIENT != 0,
            priority,
            list_bytes,
            fields,
        })
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
            let (decoder, memory) = (Decoder::default(), RequestMemory::new());
            Self { decoder, memory, limits: Limits::default() }
        }

        fn read(&mut self, block: &[u8], head: &mut Head) -> Result<Summary, Fault> {
            let mut scratch = Vec::new();
            self.memory.read(&mut self.decoder, &mut scratch, block, head, &self.limits)
        }
    }

    #[test]
    fn a_block_that_comes_a_third_time_is_not_decoded_again() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        reader.read(&block(b'x'), &mut head).unwrap();
        assert_eq!(head.mark(), None, "it may never come again");
        reader.read(&block(b'x'), &mut head).unwrap();
        let (mark, text) = (head.mark().unwrap(), head.text().as_ptr());
        for _ in 0..2 {
            reader.read(&block(b'y'), &mut head).unwrap();
            assert_ne!(head.mark(), Some(mark));
            assert_eq!(head.path_and_query(), "/y");
            reader.read(&block(b'x'), &mut head).unwrap();
            assert_eq!((head.mark(), head.text().as_ptr()), (Some(mark), text));
            assert_eq!(head.path_and_query(), "/x");
        }
    }

    #[test]
    fn connections_whose_peers_made_the_same_changes_share_what_is_known() {
        let inserts = |name| [&[0x82, 0x86, 0x44, 2, b'/', name, 0x01, 1][..], b"a"].concat();
        // The path is the newest entry.
        let newest = [0x82, 0x86, 0xbe, 0x01, 1, b'a'];
        let mut head = Head::default();
        let mut mark_of = |name| {
            let mut reader = Reader::new();
            reader.read(&inserts(name), &mut head).unwrap();
            for _ in 0..2 {
                reader.read(&newest, &mut head).unwrap();
                assert_eq!(head.path_and_query().as_bytes(), [b'/', name]);
            }
            head.mark()
        };
        let (one, other) = (mark_of(b'x'), mark_of(b'y'));
        assert!(one.is_some() && other.is_some() && one != other);
        assert_eq!((mark_of(b'x'), mark_of(b'y')), (one, other));
    }

    #[test]
    fn a_change_that_has_left_again_is_shared_with_nobody() {
        let long = |octet| {
            let value = [octet; 127 + 1000];
            [&[0x82, 0x86, 0x44, 127, 0xe8, 7][..], b"/", &value[1..], &[0x01, 1, b'a']].concat()
        };
        // Four such lines: the first has left the table when the last is in it.
        let four = |octet: u8| {
            let field = |octet| {
                let value = [octet; 127 + 1000];
                [&[0x40, 1, b'n', 127, 0xe8, 7][..], &value].concat()
            };
            [long(octet), field(octet), field(b'b'), field(b'c')].concat()
        };
        let mut head = Head::default();
        let (mut one, mut other) = (Reader::new(), Reader::new());
        one.read(&four(b'x'), &mut head).unwrap();
        other.read(&four(b'x'), &mut head).unwrap();
        assert_ne!(one.memory.state, other.memory.state);
        let mut third = Reader::new();
        third.read(&long(b'x'), &mut head).unwrap();
        let mut fourth = Reader::new();
        fourth.read(&long(b'x'), &mut head).unwrap();
        assert_ne!(third.memory.state, fourth.memory.state, "above what is remembered of a change");
    }

    #[test]
    fn a_peer_that_changes_its_table_again_and_again_shares_nothing_in_the_end() {
        let inserts = |name| [&[0x82, 0x86, 0x44, 2, b'/', name, 0x01, 1][..], b"a"].concat();
        let (mut one, mut other, mut head) = (Reader::new(), Reader::new(), Head::default());
        for round in 0..=SHARED_CHANGES_COUNT {
            for reader in [&mut one, &mut other] {
                reader.read(&inserts(b'x'), &mut head).unwrap();
            }
            let are_equal = one.memory.state == other.memory.state;
            assert_eq!(are_equal, round < SHARED_CHANGES_COUNT, "{round}");
        }
    }

    #[test]
    fn our_settings_are_enforced_on_a_block_that_is_known() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        for _ in 0..3 {
            reader.read(&block(b'x'), &mut head).unwrap();
        }
        reader.decoder.set_table_bytes_max(4096);
        reader.read(&block(b'x'), &mut head).unwrap();
        assert!(head.mark().is_some(), "nothing has changed");
        reader.decoder.set_table_bytes_max(0);
        assert!(reader.read(&block(b'x'), &mut head).is_err(), "a size update is missing");
    }

    #[test]
    fn what_is_malformed_or_long_is_not_known() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        for _ in 0..3 {
            let summary = reader.read(&[0x82, 0x86], &mut head).unwrap();
            assert!(summary.malformed.is_some());
            assert_eq!(head.mark(), None);
        }
        let long = [&[0x82, 0x86, 0x04, 127, 73, b'/'][..], &[b'x'; 199], &[1, 1, b'a']].concat();
        for _ in 0..3 {
            reader.read(&long, &mut head).unwrap();
            assert_eq!((head.path_and_query().len(), head.mark()), (200, None));
        }
    }

    #[test]
    fn a_head_that_is_known_is_held_to_the_limits_of_whoever_asks() {
        let (mut reader, mut head) = (Reader::new(), Head::default());
        for _ in 0..3 {
            assert_eq!(reader.read(&block(b'x'), &mut head).unwrap().size, Size::Fine);
        }
        let mut strict = Reader::new();
        strict.limits.header_list_bytes = 100;
        assert_eq!(strict.read(&block(b'x'), &mut head).unwrap().size, Size::Excessive);
    }

    #[test]
    fn what_is_noted_of_a_head_is_read_back() {
        let summary = Summary {
            malformed: None,
            size: Size::Fine,
            content_length: 7,
            connect: true,
            patient: false,
            priority: Some(Priority { urgency: 7, incremental: false }),
            list_bytes: 300,
            fields: 5,
        };
        for summary in [
            summary,
            Summary { connect: false, patient: true, priority: None, ..summary },
            Summary { priority: Some(Priority { urgency: 0, incremental: true }), ..summary },
        ] {
            let back = Summary::of_note(summary.note().unwrap(), &Limits::default()).unwrap();
            assert_eq!(format!("{back:?}"), format!("{summary:?}"));
        }
    }
}
