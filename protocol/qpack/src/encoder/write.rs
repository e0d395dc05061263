//! RFC 9204 §4.5: one section, line by line.

use super::{
    Dynamic, Encoder, FieldRef, Found, NameKind, OUTSTANDING_SECTIONS_COUNT, Outstanding, Pseudo,
    Rule, integer, place, policy, static_table, string,
};

/// Room for a prefix of two bytes: most need no more.
const PREFIX_BYTES: usize = 2;

/// A section that is being written.
#[derive(Debug)]
pub struct SectionWriter<'a> {
    encoder: &'a mut Encoder,
    /// Start of the section in the caller's buffer.
    start: usize,
    /// Entries before this one may be referred to: the peer has acknowledged them.
    base: u64,
    /// One more than the newest entry that the section refers to, and the oldest.
    required: u64,
    oldest: u64,
}

impl Encoder {
    /// Begins a section at the end of `out`.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) -> SectionWriter<'_> {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let may_refer = |table: &&mut Dynamic| table.outstanding.len() < OUTSTANDING_SECTIONS_COUNT;
        let base = self.table.as_deref_mut().filter(may_refer).map_or(0, |table| table.known);
        SectionWriter { encoder: self, start, base, required: 0, oldest: u64::MAX }
    }

    /// Appends a field in a form that every encoder may send at any time: by the static table, or as a literal.
    pub fn stateless(field: &FieldRef<'_>, out: &mut Vec<u8>) {
        let kind = field.known.map_or(NameKind::Other, NameKind::Known);
        let rule = rule_of(field);
        match static_table::find(kind, field.name, field.value) {
            static_table::Found::Line(index) if rule != Rule::Never => line(index, out),
            static_table::Found::Line(index) | static_table::Found::Name(index) => {
                literal(Name::Static(index), field.value, rule, out);
            }
            static_table::Found::Nothing => {
                literal(Name::Text(field.name), field.value, rule, out);
            }
        }
    }

    /// Appends what most responses begin with: `:status`, which has three digits, then `Content-Length` and `Date`
    /// where they are given.
    #[inline]
    pub fn response_start(
        status: u16,
        length: Option<u64>,
        date: Option<&[u8; 29]>,
        out: &mut Vec<u8>,
    ) {
        let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
        let digits = [digit(100), digit(10), digit(1)];
        match static_table::find(NameKind::Pseudo(Pseudo::Status), ":status", &digits) {
            static_table::Found::Line(index) => line(index, out),
            _ => literal(Name::Static(24), &digits, Rule::Once, out),
        }
        if let Some(length) = length {
            let count = length.checked_ilog10().unwrap_or(0) as usize + 1;
            let mut digits = [0; 20];
            let mut left = length;
            for place in digits[..count].iter_mut().rev() {
                *place = b'0' + (left % 10) as u8;
                left /= 10;
            }
            match length {
                0 => line(4, out),
                _ => literal(Name::Static(4), &digits[..count], Rule::Once, out),
            }
        }
        if let Some(date) = date {
            // As in HPACK: coding the date costs both sides more than the few bytes are worth.
            out.extend_from_slice(&[0x56, 29]);
            out.extend_from_slice(date);
        }
    }
}

impl SectionWriter<'_> {
    /// Appends a pseudo-field.
    pub fn pseudo(&mut self, pseudo: Pseudo, value: &[u8], out: &mut Vec<u8>) {
        self.line(NameKind::Pseudo(pseudo), pseudo.as_str(), value, Rule::Insert, out);
    }

    /// Appends a field line, whose name is in lower case.
    pub fn field(&mut self, field: &FieldRef<'_>, out: &mut Vec<u8>) {
        let kind = field.known.map_or(NameKind::Other, NameKind::Known);
        self.line(kind, field.name, field.value, rule_of(field), out);
    }

    #[inline]
    fn line(&mut self, kind: NameKind, name: &str, value: &[u8], rule: Rule, out: &mut Vec<u8>) {
        let found = static_table::find(kind, name, value);
        let index = match found {
            static_table::Found::Line(index) if rule != Rule::Never => return line(index, out),
            static_table::Found::Line(index) | static_table::Found::Name(index) => Some(index),
            static_table::Found::Nothing => None,
        };
        if rule == Rule::Insert
            && let Some(absolute) = self.repeated(kind, name, index, value)
        {
            self.required = self.required.max(absolute + 1);
            self.oldest = self.oldest.min(absolute);
            return integer::encode((self.base - 1 - absolute) as usize, 6, 0x80, out);
        }
        literal(index.map_or(Name::Text(name), Name::Static), value, rule, out);
    }

    /// A line that may come again: the entry that has it, if that may be referred to.
    fn repeated(
        &mut self,
        kind: NameKind,
        name: &str,
        index: Option<usize>,
        value: &[u8],
    ) -> Option<u64> {
        let table = self.encoder.table.as_mut()?;
        match table.lookup.find(kind, name.as_bytes(), value) {
            Found::Age(age) => {
                let absolute = table.absolute(age);
                (absolute < self.base).then_some(absolute)
            }
            Found::Hash(hash) => {
                // An entry of this very section must not leave: nothing else does before the section has ended.
                if self.required == 0 || !table.lookup.is_short_of(name.len() + value.len() + 32) {
                    table.consider(kind, name, index, value, hash);
                }
                None
            }
        }
    }

    /// Ends the section, which is for this stream: its prefix is written.
    #[inline]
    pub fn end(self, stream: u64, out: &mut Vec<u8>) {
        if self.required > 0 {
            self.end_referring(stream, out);
        }
    }

    fn end_referring(self, stream: u64, out: &mut Vec<u8>) {
        let Some(table) = self.encoder.table.as_mut() else { return };
        let end = out.len();
        integer::encode((self.required % table.range + 1) as usize, 8, 0, out);
        integer::encode((self.base - self.required) as usize, 7, 0, out);
        let prefix = self.start..self.start + PREFIX_BYTES;
        if out.len() == end + PREFIX_BYTES {
            out.copy_within(end.., self.start);
            out.truncate(end);
        } else {
            let long = out.split_off(end);
            out.splice(prefix, long);
        }
        table.outstanding.push_back(Outstanding { stream, oldest: self.oldest });
        table.marks.pins[place(self.oldest)] += 1;
    }
}

/// Returns what becomes of a line.
#[inline]
fn rule_of(field: &FieldRef<'_>) -> Rule {
    match field.known {
        Some(known) => policy::rule_of(known, field),
        None if field.sensitive => Rule::Never,
        None => Rule::Insert,
    }
}

/// Source of a literal's name.
#[derive(Clone, Copy)]
enum Name<'a> {
    Static(usize),
    Text(&'a str),
}

/// RFC 9204 §4.5.2: a line of the static table.
#[inline]
fn line(index: usize, out: &mut Vec<u8>) {
    integer::encode(index, 6, 0xc0, out);
}

/// RFC 9204 §4.5.4, §4.5.6: a literal.
fn literal(name: Name<'_>, value: &[u8], rule: Rule, out: &mut Vec<u8>) {
    let never = u8::from(rule == Rule::Never);
    match name {
        Name::Static(index) => integer::encode(index, 4, 0x50 | never << 5, out),
        Name::Text(text) => string::write(text.as_bytes(), true, 3, 0x20 | never << 4, out),
    }
    string::write(value, value.len() >= policy::CODE_ONCE_FROM, 7, 0, out);
}
