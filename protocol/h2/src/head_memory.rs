//! RFC 7541 §2.3, §6.1: the head that was sent last, as it was given and as it was encoded. A request's
//! head is given as a name that its caller chose, which stands in the status's place.
//!
//! Most servers send the same few heads again and again. Comparing one with the one before takes a
//! tenth of the steps of checking and encoding it.

use bolide_semantics::{FieldName, FieldRef, HeadName};

use crate::limits::REMEMBERED_HEAD_BYTES;
use crate::stream::LENGTH_UNKNOWN;

/// After so many other heads in a row a remembered one makes place for another.
const OTHERS_COUNT: u8 = 8;

/// Marks a line whose name is not interned.
const NAMED: u8 = u8::MAX;

/// One remembered head.
#[derive(Debug, Default)]
pub(crate) struct HeadMemory {
    /// Zero when nothing is remembered.
    status: u16,
    /// Heads since that were others.
    others: u8,
    /// Whether it has a Priority field (RFC 9218 §5).
    has_priority: bool,
    /// The encoder's count of changes, for which `encoded` holds.
    generation: u32,
    /// Its Content-Length.
    length: u64,
    /// By what its caller names it, when it does so: the number of its lines (else 0) and the second of its date.
    lines: u32,
    second: u32,
    /// How many octets of `bytes` are the head as it was given; the rest is its block.
    given: u16,
    bytes: Vec<u8>,
}

impl HeadMemory {
    /// The Content-Length of the remembered head, if these are its fields.
    #[inline]
    pub(crate) fn recognise<'a>(
        &mut self,
        status: u16,
        generation: u32,
        fields: impl Iterator<Item = FieldRef<'a>>,
    ) -> Option<u64> {
        if self.status != status || self.generation != generation {
            self.status = 0;
            return None;
        }
        if self.is_given(fields) {
            self.others = 0;
            return Some(self.length);
        }
        self.others += 1;
        if self.others == OTHERS_COUNT {
            self.status = 0;
        }
        None
    }

    /// The same by the name that was given to it.
    #[inline]
    pub(crate) fn recognise_named(&mut self, name: &HeadName, generation: u32) -> Option<u64> {
        let is_it = self.lines == name.lines.get()
            && self.status == name.status.as_u16()
            && self.second == name.second
            && self.length == name.length.unwrap_or(LENGTH_UNKNOWN)
            && self.generation == generation;
        if is_it {
            self.others = 0;
        }
        is_it.then_some(self.length)
    }

    /// Names the head that was given last, if that is the remembered one.
    #[inline]
    pub(crate) fn name(&mut self, name: HeadName) {
        let length = name.length.unwrap_or(LENGTH_UNKNOWN);
        if self.status == name.status.as_u16() && self.others == 0 && self.length == length {
            (self.lines, self.second) = (name.lines.get(), name.second);
        }
    }

    #[inline]
    fn is_given<'a>(&self, fields: impl Iterator<Item = FieldRef<'a>>) -> bool {
        let mut rest = &self.bytes[..usize::from(self.given)];
        for field in fields {
            let Some((start, after)) = rest.split_first_chunk() else { return false };
            if u64::from_ne_bytes(*start) != line_start(&field) {
                return false;
            }
            let Some((value, after)) = after.split_at_checked(field.value.len()) else {
                return false;
            };
            if value != field.value {
                return false;
            }
            rest = after;
            if field.known.is_none() {
                let Some(after) = rest.strip_prefix(field.name.as_bytes()) else { return false };
                rest = after;
            }
        }
        rest.is_empty()
    }

    /// The block of the remembered head.
    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        &self.bytes[usize::from(self.given)..]
    }

    /// Whether the remembered head has a Priority field.
    #[inline]
    pub(crate) fn has_priority(&self) -> bool {
        self.has_priority
    }

    /// Whether another head should be remembered.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.status == 0
    }

    /// Remembers a head whose block changed nothing in the encoder.
    pub(crate) fn remember<'a>(
        &mut self,
        status: u16,
        generation: u32,
        length: u64,
        fields: impl Iterator<Item = FieldRef<'a>>,
        block: &[u8],
    ) {
        self.bytes.clear();
        self.has_priority = false;
        for field in fields {
            self.has_priority |= field.known == Some(FieldName::Priority);
            self.bytes.extend_from_slice(&line_start(&field).to_ne_bytes());
            self.bytes.extend_from_slice(field.value);
            if field.known.is_none() {
                self.bytes.extend_from_slice(field.name.as_bytes());
            }
            if self.bytes.len() > REMEMBERED_HEAD_BYTES {
                return;
            }
        }
        self.given = self.bytes.len() as u16;
        self.bytes.extend_from_slice(block);
        if self.bytes.len() <= REMEMBERED_HEAD_BYTES {
            self.status = status;
            self.others = 0;
            self.generation = generation;
            self.length = length;
            self.lines = 0;
        }
    }

    /// Forgets what is remembered.
    pub(crate) fn forget(&mut self) {
        self.status = 0;
    }

    pub(crate) fn trim(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// What a remembered line begins with: the interned name, sensitivity, and the lengths of value and
/// name.
#[inline]
fn line_start(field: &FieldRef<'_>) -> u64 {
    let name = field.known.map_or(NAMED, |name| name as u8);
    let named = if field.known.is_some() { 0 } else { field.name.len().min(0xffff) };
    let sensitive = u64::from(field.sensitive) << 8;
    let value = (field.value.len() as u64).min(0xffff_ffff) << 32;
    u64::from(name) | sensitive | (named as u64) << 16 | value
}

#[cfg(test)]
mod tests {
    use bolide_semantics::FieldName;

    use super::*;

    fn known(value: &'static [u8]) -> FieldRef<'static> {
        FieldRef::known(FieldName::Server, value)
    }

    fn named(name: &'static str, value: &'static [u8]) -> FieldRef<'static> {
        FieldRef { known: None, name, value, sensitive: false }
    }

    fn remembered(fields: &[FieldRef<'static>]) -> HeadMemory {
        let mut memory = HeadMemory::default();
        memory.remember(200, 7, 5, fields.iter().copied(), b"block");
        memory
    }

    #[test]
    fn the_same_head_is_recognised_and_no_other() {
        let fields = [known(b"a"), named("x", b"bc"), known(b"")];
        let mut memory = remembered(&fields);
        assert_eq!(memory.recognise(200, 7, fields.into_iter()), Some(5));
        assert_eq!(memory.block(), b"block");
        for other in [
            &[][..],
            &[known(b"a")],
            &[known(b"a"), named("x", b"bc")],
            &[known(b"a"), named("x", b"bc"), known(b"d")],
            &[known(b"b"), named("x", b"bc"), known(b"")],
            &[known(b"a"), named("xb", b"c"), known(b"")],
            &[known(b"a"), named("y", b"bc"), known(b"")],
            &[known(b"a"), named("x", b"bc"), FieldRef { sensitive: true, ..known(b"") }],
            &[known(b"a"), named("x", b"bc"), FieldRef::known(FieldName::Via, b"")],
            &[known(b"a"), named("x", b"bc"), known(b""), known(b"")],
        ] {
            memory = remembered(&fields);
            assert_eq!(memory.recognise(200, 7, other.iter().copied()), None, "{other:?}");
        }
    }

    #[test]
    fn another_status_or_generation_is_another_head() {
        let mut memory = remembered(&[]);
        assert_eq!(memory.recognise(200, 7, [].into_iter()), Some(5));
        assert_eq!(memory.recognise(201, 7, [].into_iter()), None);
        assert!(memory.is_free());
        memory = remembered(&[]);
        assert_eq!(memory.recognise(200, 8, [].into_iter()), None);
        assert!(memory.is_free());
        memory = remembered(&[]);
        memory.forget();
        assert_eq!(memory.recognise(200, 7, [].into_iter()), None);
    }

    #[test]
    fn others_take_its_place_after_a_while() {
        let mut memory = remembered(&[known(b"a")]);
        for _ in 1..OTHERS_COUNT {
            assert_eq!(memory.recognise(200, 7, [].into_iter()), None);
            assert!(!memory.is_free());
        }
        assert_eq!(memory.recognise(200, 7, [].into_iter()), None);
        assert!(memory.is_free());
    }

    #[test]
    fn a_name_stands_for_the_head_it_was_given_to() {
        let ok = http::StatusCode::OK;
        let lines = |number| std::num::NonZeroU32::new(number).unwrap();
        let name = HeadName { status: ok, lines: lines(1), length: Some(5), second: 9 };
        let mut memory = remembered(&[known(b"a")]);
        assert_eq!(memory.recognise_named(&name, 7), None);
        assert_eq!(memory.recognise(200, 7, [known(b"a")].into_iter()), Some(5));
        memory.name(name);
        assert_eq!(memory.recognise_named(&name, 7), Some(5));
        for other in [
            HeadName { status: http::StatusCode::NOT_FOUND, ..name },
            HeadName { lines: lines(2), ..name },
            HeadName { length: None, ..name },
            HeadName { second: 10, ..name },
        ] {
            assert_eq!(memory.recognise_named(&other, 7), None, "{other:?}");
        }
        assert_eq!(memory.recognise_named(&name, 8), None, "the encoder has changed");
        // Another head was given last: the name is that one's, which is not remembered.
        assert_eq!(memory.recognise(200, 7, [known(b"b")].into_iter()), None);
        let third = HeadName { lines: lines(3), ..name };
        memory.name(third);
        assert_eq!(memory.recognise_named(&third, 7), None);
        assert_eq!(memory.recognise_named(&name, 7), Some(5));
        memory.forget();
        assert_eq!(memory.recognise_named(&name, 7), None);
    }

    #[test]
    fn large_heads_are_not_remembered() {
        static LONG: [u8; 60_000] = [b'x'; 60_000];
        let memory = remembered(&[known(&LONG), known(&LONG)]);
        assert!(memory.is_free());
    }
}
