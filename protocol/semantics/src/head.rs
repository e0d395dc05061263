//! RFC 9110 §6.2, §6.3, §6.5: the head of a message, or its trailers, as it was received.

use http::{Method, StatusCode, Version};

use crate::{FieldName, Text};

/// A part of a [`Head`]'s text: start and end, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

/// The kind of a [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    /// Method, target and version.
    Request,
    /// Status and version.
    Response,
    /// Nothing: fields after a body.
    Trailers,
}

/// Name and value, one after the other in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// The name, unless it is known: then it is empty.
    start: u32,
    value: u32,
    end: u32,
    known: Option<FieldName>,
    sensitive: bool,
}

impl Line {
    /// Puts the name, in lower case, before the value.
    #[inline(never)]
    fn settle_name(&mut self, text: &mut Text) {
        let before = &mut text.bytes_mut()[self.start as usize..self.value as usize];
        let length = before.iter().position(|byte| *byte == b':').unwrap_or(before.len());
        let gap = before.len() - length;
        before.copy_within(..length, gap);
        before[gap..].make_ascii_lowercase();
        self.start += gap as u32;
    }
}

/// One field line of a [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The interned name, when it has one.
    pub known: Option<FieldName>,
    /// The name in lower case.
    pub name: &'a str,
    /// The value without white space around it. Opaque bytes: not always UTF-8.
    pub value: &'a [u8],
    /// True if the peer said that the value must enter no compression table (RFC 7541 §6.2.3).
    pub sensitive: bool,
}

/// A received message head: start line or pseudo-fields, and fields, in one block of text.
///
/// A worker has one and reuses it for every request, so that reading a head allocates nothing in
/// the steady state; a caller that needs it for longer takes it with [`std::mem::take`] or clones it.
/// Names are in lower case; fields keep their order; nothing is joined.
#[derive(Debug, Clone)]
pub struct Head {
    kind: HeadKind,
    version: Version,
    method: Method,
    status: StatusCode,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Span,
    protocol: Option<Span>,
    wire_bytes: u32,
    text: Text,
    lines: Vec<Line>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            kind: HeadKind::Request,
            version: Version::HTTP_11,
            method: Method::GET,
            status: StatusCode::OK,
            scheme: None,
            authority: None,
            path: Span::default(),
            protocol: None,
            wire_bytes: 0,
            text: Text::default(),
            lines: Vec::new(),
        }
    }
}

impl Head {
    /// Empties the head and says what it will hold.
    #[inline]
    pub fn clear(&mut self, kind: HeadKind, version: Version) {
        self.kind = kind;
        self.version = version;
        self.method = Method::GET;
        self.status = StatusCode::OK;
        self.scheme = None;
        self.authority = None;
        self.path = Span::default();
        self.protocol = None;
        self.wire_bytes = 0;
        self.text.truncate(0);
        self.lines.clear();
    }

    /// Returns what the head begins with.
    #[must_use]
    pub fn kind(&self) -> HeadKind {
        self.kind
    }

    /// The version that the peer named, or HTTP/2.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The request method (RFC 9110 §9).
    #[inline]
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The status code (RFC 9110 §15).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The scheme, when the request named one: always in HTTP/2 but for CONNECT, and in HTTP/1.1's
    /// absolute form.
    #[must_use]
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.map(|span| self.str(span))
    }

    /// The authority: `:authority`, the authority of an absolute target, or the `Host` field.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.map(|span| self.str(span))
    }

    /// Path and query as sent, undecoded; `*` for a server-wide OPTIONS; empty for CONNECT.
    #[inline]
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        self.str(self.path)
    }

    /// The same as bytes, for who copies them: empty where [`authority`](Self::authority) is none.
    #[inline]
    #[must_use]
    pub fn authority_bytes(&self) -> &[u8] {
        self.authority.map_or(&[], |span| self.bytes(span))
    }

    /// [`path_and_query`](Self::path_and_query) as bytes, for who copies them.
    #[inline]
    #[must_use]
    pub fn path_and_query_bytes(&self) -> &[u8] {
        self.bytes(self.path)
    }

    /// The `:protocol` of an extended CONNECT (RFC 8441).
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.map(|span| self.str(span))
    }

    /// The field lines in the order in which they came.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Field<'_>> + Clone {
        self.lines.iter().map(|line| self.field(line))
    }

    /// The number of field lines.
    #[inline]
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.lines.len()
    }

    /// The value of the first line with this name.
    #[inline]
    #[must_use]
    pub fn get(&self, name: FieldName) -> Option<&[u8]> {
        self.lines.iter().find(|line| line.known == Some(name)).map(|line| self.value_of(line))
    }

    /// The values of every line with this name.
    pub fn get_all(&self, name: FieldName) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(move |line| line.known == Some(name))
            .map(|line| self.value_of(line))
    }

    /// The value of the first line with this name, which may be one that is not interned. `name` is
    /// in lower case.
    #[must_use]
    pub fn get_named(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|field| field.name == name).map(|field| field.value)
    }

    /// The value of the first line with this name, which is not an interned one, in lower case.
    #[inline]
    #[must_use]
    pub fn get_uncommon(&self, name: &str) -> Option<&[u8]> {
        let is_it = |line: &&Line| line.known.is_none() && self.name_of(line) == name.as_bytes();
        self.lines.iter().find(is_it).map(|line| self.value_of(line))
    }

    /// Takes over what another head says of the target of its request.
    pub(crate) fn copy_target(&mut self, from: &Self) {
        let mut copy = |span| self.push_text(from.bytes(span));
        let path = copy(from.path);
        let (scheme, authority) = (from.scheme.map(&mut copy), from.authority.map(&mut copy));
        let protocol = from.protocol.map(copy);
        (self.path, self.scheme, self.authority, self.protocol) =
            (path, scheme, authority, protocol);
    }

    /// Makes room for another head, so many more field lines, and so many more bytes of text.
    pub(crate) fn reserve(&mut self, other: &Self, lines: usize, text: usize) {
        self.lines.reserve(other.lines.len() + lines);
        self.text.reserve(other.text.len() + text);
    }

    /// The text that holds the fields and the parts of the start line: to keep many of them, copy it once.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.text.bytes()
    }

    /// The memory that the head holds, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.text.allocated_bytes() + self.lines.capacity() * size_of::<Line>()
    }

    /// How many bytes the head took on the wire, as its version encodes it.
    #[inline]
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.wire_bytes as usize
    }

    /// The bytes of all names and values, decoded; a response's status counts as `:status` does.
    #[must_use]
    pub fn decoded_bytes(&self) -> usize {
        let status = if self.kind == HeadKind::Response { ":status200".len() } else { 0 };
        let line = |line: &Line| {
            let uncommon = (line.value - line.start) as usize;
            let name = line.known.map_or(uncommon, |name| name.as_str().len());
            name + (line.end - line.value) as usize
        };
        status + self.lines.iter().map(line).sum::<usize>()
    }

    /// For parsers: sets what the head took on the wire.
    #[inline]
    pub fn set_wire_bytes(&mut self, bytes: usize) {
        self.wire_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// For parsers: sets the method.
    #[inline]
    pub fn set_method(&mut self, method: Method) {
        self.method = method;
    }

    /// For parsers: sets the status.
    pub fn set_status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// For parsers: sets the scheme. The span must be UTF-8.
    pub fn set_scheme(&mut self, span: Span) {
        self.scheme = Some(span);
    }

    /// For parsers: sets the authority. The span must be UTF-8.
    #[inline]
    pub fn set_authority(&mut self, span: Span) {
        self.authority = Some(span);
    }

    /// For parsers: sets path and query. The span must be UTF-8.
    #[inline]
    pub fn set_path(&mut self, span: Span) {
        self.path = span;
    }

    /// For parsers: sets `:protocol`. The span must be UTF-8.
    pub fn set_protocol(&mut self, span: Span) {
        self.protocol = Some(span);
    }

    /// For parsers: the text, to which bytes may only be added.
    #[inline]
    pub fn text_mut(&mut self) -> &mut Text {
        &mut self.text
    }

    /// For parsers: appends to the text and says where.
    #[inline]
    pub fn push_text(&mut self, bytes: &[u8]) -> Span {
        let start = self.text.len();
        self.text.push(bytes);
        self.span_from(start)
    }

    /// For parsers: the part of the text from `start` on.
    #[inline]
    #[must_use]
    pub fn span_from(&self, start: usize) -> Span {
        self.span(start, self.text.len())
    }

    /// For parsers: the part of the text from `start` to `end`.
    #[inline]
    #[must_use]
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        debug_assert!(start <= end && end <= self.text.len(), "a span outside the text");
        Span { start: start as u32, end: end as u32 }
    }

    /// The bytes of a span of this head.
    #[inline]
    #[must_use]
    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.text.bytes()[span.start as usize..span.end as usize]
    }

    /// For parsers: appends a field with an interned name. Its value is the text from `value` on.
    #[inline]
    pub fn push_known(&mut self, name: FieldName, value: usize) {
        self.push_line(Some(name), value, value, self.text.len());
    }

    /// For parsers: appends a field whose name, unless it is known, is the text from `start` to `value`, a token in lower case, and
    /// whose value ends at `end`. The text may be appended later.
    #[inline]
    pub fn push_line(&mut self, known: Option<FieldName>, start: usize, value: usize, end: usize) {
        debug_assert!(start <= value && value <= end, "a line that ends before it begins");
        let (start, value, end) = (start as u32, value as u32, end as u32);
        self.lines.push(Line { start, value, end, known, sensitive: false });
    }

    /// For parsers: appends the text of lines of HTTP/1.1 that were appended before it. A name there is as it was sent, and a
    /// colon and blanks are between it and its value.
    #[inline]
    pub fn push_section(&mut self, section: &[u8]) {
        let from = self.text.len() as u32;
        self.text.push(section);
        let is_uncommon = |line: &&mut Line| line.known.is_none() && line.start >= from;
        for line in self.lines.iter_mut().filter(is_uncommon) {
            line.settle_name(&mut self.text);
        }
    }

    /// Appends a field with an interned name.
    pub fn push_field(&mut self, name: FieldName, value: &[u8]) {
        let start = self.text.len();
        self.text.push(value);
        self.push_known(name, start);
    }

    /// Appends a field whose name, in lower case, may be an interned one.
    pub fn append(&mut self, name: &str, value: &[u8]) {
        if let Some(known) = FieldName::lookup(name.as_bytes()) {
            return self.push_field(known, value);
        }
        let start = self.text.len();
        self.text.push(name.as_bytes());
        let middle = self.text.len();
        self.text.push(value);
        self.push_line(None, start, middle, self.text.len());
    }

    /// Keeps the lines whose name is agreed to. The text of the others stays until the head is cleared.
    pub fn retain_fields(&mut self, keeps: impl Fn(&str) -> bool) {
        let text = &self.text;
        self.lines.retain(|line| {
            let uncommon = || &text.bytes()[line.start as usize..line.value as usize];
            let name = line.known.map_or_else(uncommon, |name| name.as_str().as_bytes());
            std::str::from_utf8(name).is_ok_and(&keeps)
        });
    }

    /// For parsers: the line appended last must enter no compression table.
    pub fn mark_sensitive(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.sensitive = true;
        }
    }

    /// For parsers: the authority is the `Host` field unless the target named one (RFC 9112 §3.3).
    pub fn authority_from_host(&mut self) {
        if self.authority.is_none() {
            let host = self.lines.iter().find(|line| line.known == Some(FieldName::Host));
            self.authority = host.map(|line| Span { start: line.value, end: line.end });
        }
    }

    #[inline]
    fn str(&self, span: Span) -> &str {
        std::str::from_utf8(self.bytes(span)).unwrap_or_default()
    }

    #[inline]
    fn field<'a>(&'a self, line: &Line) -> Field<'a> {
        let name = match line.known {
            Some(name) => name.as_str(),
            None => self.uncommon_name(line),
        };
        let sensitive = line.sensitive;
        Field { known: line.known, name, value: self.value_of(line), sensitive }
    }

    // Not inlined, so that what iterates over fields is.
    #[inline(never)]
    fn uncommon_name(&self, line: &Line) -> &str {
        std::str::from_utf8(self.name_of(line)).unwrap_or_default()
    }

    #[inline]
    fn name_of(&self, line: &Line) -> &[u8] {
        &self.text.bytes()[line.start as usize..line.value as usize]
    }

    #[inline]
    fn value_of(&self, line: &Line) -> &[u8] {
        &self.text.bytes()[line.value as usize..line.end as usize]
    }
}

impl Span {
    /// The length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns whether the span is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_as_it_was_written() {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        head.set_method(Method::POST);
        let path = head.push_text(b"/a?b");
        head.set_path(path);
        head.append("host", b"example:80");
        head.append("x-a", b"\xff");
        head.authority_from_host();

        assert_eq!(head.method(), Method::POST);
        assert_eq!(head.path_and_query(), "/a?b");
        assert_eq!(head.authority(), Some("example:80"));
        assert_eq!(head.scheme(), None);
        assert_eq!(head.get(FieldName::Host), Some(&b"example:80"[..]));
        assert_eq!(head.get_named("x-a"), Some(&b"\xff"[..]));
        assert_eq!(head.get_uncommon("x-a"), Some(&b"\xff"[..]));
        assert_eq!((head.get_uncommon("x"), head.get_uncommon("host")), (None, None));
        assert_eq!(head.fields().map(|field| field.name).collect::<Vec<_>>(), ["host", "x-a"]);
        assert_eq!(head.decoded_bytes(), "hostexample:80x-a?".len());

        let mut copy = head.clone();
        copy.retain_fields(|name| name != "host");
        assert_eq!(copy.fields().map(|field| field.name).collect::<Vec<_>>(), ["x-a"]);
        let copy = head.clone();
        head.clear(HeadKind::Trailers, Version::HTTP_2);
        assert_eq!(head.field_count(), 0);
        assert_eq!(head.path_and_query(), "");
        assert_eq!(head.authority(), None);
        assert_eq!((copy.authority(), copy.field_count()), (Some("example:80"), 2));
    }

    #[test]
    fn lines_of_a_section_have_their_names_in_lower_case() {
        let mut head = Head::default();
        head.append("x-before", b"0");
        let before = head.text().len();
        let section = b"Host: a\r\nX-B:\t c \r\n";
        head.push_line(Some(FieldName::Host), before, before + 6, before + 7);
        head.push_line(None, before + 9, before + 15, before + 16);
        head.push_section(section);
        let fields: Vec<_> = head.fields().map(|field| (field.name, field.value)).collect();
        assert_eq!(fields, [("x-before", &b"0"[..]), ("host", b"a"), ("x-b", b"c")]);
        assert_eq!(head.decoded_bytes(), "x-before0hostax-bc".len());
    }

    #[test]
    fn a_line_is_small() {
        assert!(size_of::<Line>() <= 16, "{}", size_of::<Line>());
    }
}
