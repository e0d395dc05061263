//! RFC 9110 §6.2, §6.3, §6.5: the head of a message, or its trailers, as it was received.

use http::{Method, StatusCode, Version};

use crate::head_source::{Source, SourceNote};
use crate::known_heads::KnownHeads;
use crate::{FieldName, HeadMark};

/// A part of a [`Head`]'s text: start and end, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

/// What a [`Head`] begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    /// Method, target and version.
    Request,
    /// Status and version.
    Response,
    /// Nothing: fields after a body.
    Trailers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    known: Option<FieldName>,
    /// Empty when `known`.
    name: Span,
    value: Span,
    sensitive: bool,
}

/// One field line of a [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The interned name, when it has one.
    pub known: Option<FieldName>,
    /// The name in lower case.
    pub name: &'a str,
    /// The value without white space around it. Opaque octets: not always UTF-8.
    pub value: &'a [u8],
    /// Whether the peer said that the value must enter no compression table (RFC 7541 §6.2.3).
    pub sensitive: bool,
}

/// A received message head: start line or pseudo-fields, and fields, in one block of text.
///
/// A worker has one and reuses it for every request, so that reading a head allocates nothing in
/// the steady state; whoever needs it for longer takes it with [`std::mem::take`] or clones it. It
/// remembers what came before, for parsers that ask; what takes its place begins without that.
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
    /// Taken away by every change.
    mark: Option<HeadMark>,
    /// What the marked head was read from, where that is kept.
    source: Source,
    text: Vec<u8>,
    lines: Vec<Line>,
    pub(crate) known: KnownHeads,
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
            mark: None,
            source: Source::default(),
            text: Vec::new(),
            lines: Vec::new(),
            known: KnownHeads::default(),
        }
    }
}

impl Head {
    /// Empties the head and says what it will hold.
    #[inline]
    pub fn clear(&mut self, kind: HeadKind, version: Version) {
        if self.known.is_used() {
            self.put_known_back();
        }
        self.kind = kind;
        self.version = version;
        self.method = Method::GET;
        self.status = StatusCode::OK;
        self.scheme = None;
        self.authority = None;
        self.path = Span::default();
        self.protocol = None;
        self.wire_bytes = 0;
        self.mark = None;
        self.source.clear();
        self.text.clear();
        self.lines.clear();
    }

    /// Whether another head says the same, octet by octet, but for its method and what it took on the wire.
    #[inline]
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.text == other.text
            && self.lines == other.lines
            && self.kind == other.kind
            && self.version == other.version
            && self.status == other.status
            && self.path == other.path
            && self.authority == other.authority
            && self.scheme == other.scheme
            && self.protocol == other.protocol
    }

    /// Becomes what another head is, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.put_known_back();
        let (mut text, mut lines) =
            (std::mem::take(&mut self.text), std::mem::take(&mut self.lines));
        text.clone_from(&other.text);
        lines.clone_from(&other.lines);
        let (method, known) = (other.method.clone(), std::mem::take(&mut self.known));
        let mut source = std::mem::take(&mut self.source);
        source.clear();
        *self = Self { method, source, text, lines, known, ..*other };
    }

    /// What the head begins with.
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

    /// The same as octets, for who copies them: empty where [`authority`](Self::authority) is none.
    #[inline]
    #[must_use]
    pub fn authority_bytes(&self) -> &[u8] {
        self.authority.map_or(&[], |span| self.bytes(span))
    }

    /// [`path_and_query`](Self::path_and_query) as octets, for who copies them.
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
        self.lines.iter().find(|line| line.known == Some(name)).map(|line| self.bytes(line.value))
    }

    /// The values of every line with this name.
    pub fn get_all(&self, name: FieldName) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(move |line| line.known == Some(name))
            .map(|line| self.bytes(line.value))
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
        let is_it = |line: &&Line| line.known.is_none() && self.bytes(line.name) == name.as_bytes();
        self.lines.iter().find(is_it).map(|line| self.bytes(line.value))
    }

    /// The text that the fields and the parts of the start line stand in: whoever keeps many of them
    /// copies it once.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The memory that the head holds, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let lines = self.lines.capacity() * size_of::<Line>();
        self.text.capacity() + lines + self.source.allocated_bytes()
    }

    /// The bytes of its text and its lines.
    pub(crate) fn held_bytes(&self) -> usize {
        self.text.len() + self.lines.len() * size_of::<Line>()
    }

    /// Gives back the memory that it doesn't need.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.lines.shrink_to_fit();
        self.source = Source::default();
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
            line.known.map_or(line.name.len(), |name| name.as_str().len()) + line.value.len()
        };
        status + self.lines.iter().map(line).sum::<usize>()
    }

    /// What stands for this content, if its parser has marked it: of two heads with the same mark, which may
    /// have come at different times and by different connections, everything is equal.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Option<HeadMark> {
        self.mark
    }

    /// For parsers: marks the head, which is complete. Any change takes the mark away.
    #[inline]
    pub fn set_mark(&mut self, mark: HeadMark) {
        self.source.clear();
        self.mark = Some(mark);
    }

    /// For parsers: whether `unread` begins with the very octets that this head was read from, as it stands: how
    /// many they are, and what was noted with them.
    #[inline]
    #[must_use]
    pub fn source(&mut self, unread: &[u8]) -> Option<(usize, SourceNote)> {
        if self.mark.is_some() { self.source.begins(unread) } else { None }
    }

    /// For parsers: the head, which is complete, was read from these octets. They are kept, and the head is marked,
    /// unless heads hardly ever come again.
    #[inline]
    pub fn keep_source(&mut self, octets: &[u8], note: SourceNote) {
        self.mark = self.source.keep(octets, note);
    }

    /// For parsers: sets what the head took on the wire.
    #[inline]
    pub fn set_wire_bytes(&mut self, bytes: usize) {
        self.mark = None;
        self.wire_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// For parsers: sets the method.
    #[inline]
    pub fn set_method(&mut self, method: Method) {
        self.mark = None;
        self.method = method;
    }

    /// For parsers: sets the status.
    pub fn set_status(&mut self, status: StatusCode) {
        self.mark = None;
        self.status = status;
    }

    /// For parsers: sets the scheme. The span must be UTF-8.
    pub fn set_scheme(&mut self, span: Span) {
        self.mark = None;
        self.scheme = Some(span);
    }

    /// For parsers: sets the authority. The span must be UTF-8.
    #[inline]
    pub fn set_authority(&mut self, span: Span) {
        self.mark = None;
        self.authority = Some(span);
    }

    /// For parsers: sets path and query. The span must be UTF-8.
    #[inline]
    pub fn set_path(&mut self, span: Span) {
        self.mark = None;
        self.path = span;
    }

    /// For parsers: sets `:protocol`. The span must be UTF-8.
    pub fn set_protocol(&mut self, span: Span) {
        self.mark = None;
        self.protocol = Some(span);
    }

    /// For parsers: appends to the text and says where.
    #[inline]
    pub fn push_text(&mut self, bytes: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(bytes);
        Span { start: start as u32, end: self.text.len() as u32 }
    }

    /// For parsers: the text itself, to which bytes may only be added.
    #[inline]
    pub fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// For parsers: the part of the text from `start` to `end`.
    #[inline]
    #[must_use]
    pub fn span(&self, start: usize, end: usize) -> Span {
        debug_assert!(start <= end && end <= self.text.len(), "a span outside the text");
        Span { start: start as u32, end: end as u32 }
    }

    /// The bytes of a span of this head.
    #[inline]
    #[must_use]
    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.text[span.start as usize..span.end as usize]
    }

    /// For parsers: appends a field line with an interned name.
    #[inline]
    pub fn push_known(&mut self, name: FieldName, value: Span) {
        self.mark = None;
        self.lines.push(Line { known: Some(name), name: Span::default(), value, sensitive: false });
    }

    /// For parsers: appends a field line whose name is text: a token in lower case.
    #[inline]
    pub fn push_named(&mut self, name: Span, value: Span) {
        self.mark = None;
        self.lines.push(Line { known: None, name, value, sensitive: false });
    }

    /// For parsers: the line appended last must enter no compression table.
    pub fn mark_sensitive(&mut self) {
        self.mark = None;
        if let Some(line) = self.lines.last_mut() {
            line.sensitive = true;
        }
    }

    /// For parsers: the authority is the `Host` field unless the target named one (RFC 9112 §3.3).
    pub fn authority_from_host(&mut self) {
        if self.authority.is_none() {
            self.mark = None;
            let host = self.lines.iter().find(|line| line.known == Some(FieldName::Host));
            self.authority = host.map(|line| line.value);
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
            None => self.str(line.name),
        };
        let sensitive = line.sensitive;
        Field { known: line.known, name, value: self.bytes(line.value), sensitive }
    }
}

impl Span {
    /// The length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the span is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeadMarks;

    #[test]
    fn a_head_is_read_back_as_it_was_written() {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        head.set_method(Method::POST);
        let path = head.push_text(b"/a?b");
        head.set_path(path);
        let host = head.push_text(b"example:80");
        head.push_known(FieldName::Host, host);
        let name = head.push_text(b"x-a");
        let value = head.push_text(b"\xff");
        head.push_named(name, value);
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

        let mut copy = Head::default();
        assert!(!copy.says_the_same(&head));
        copy.copy_from(&head);
        assert!(copy.says_the_same(&head));
        assert_eq!(copy.method(), Method::POST);
        head.mark_sensitive();
        assert!(!copy.says_the_same(&head), "what may be kept is a part of what is said");

        head.clear(HeadKind::Trailers, Version::HTTP_2);
        assert_eq!(head.field_count(), 0);
        assert_eq!(head.path_and_query(), "");
        assert_eq!(head.authority(), None);
    }

    #[test]
    fn a_mark_goes_with_every_change_and_stays_with_a_copy() {
        let mut head = Head::default();
        let mark = HeadMarks::default().make();
        let name = head.push_text(b"x-a");
        let changes: [fn(&mut Head, Span); 12] = [
            |head, _| head.clear(HeadKind::Request, Version::HTTP_2),
            |head, _| head.set_method(Method::PUT),
            |head, _| head.set_status(StatusCode::CREATED),
            |head, span| head.set_scheme(span),
            |head, span| head.set_authority(span),
            |head, span| head.set_path(span),
            |head, span| head.set_protocol(span),
            |head, span| head.push_known(FieldName::Host, span),
            |head, span| head.push_named(span, span),
            |head, _| head.mark_sensitive(),
            |head, _| head.set_wire_bytes(1),
            |head, _| {
                head.authority = None;
                head.authority_from_host();
            },
        ];
        for (index, change) in changes.into_iter().enumerate() {
            head.set_mark(mark);
            assert_eq!(head.clone().mark(), Some(mark));
            change(&mut head, name);
            assert_eq!(head.mark(), None, "change {index}");
        }
    }
    #[test]
    fn octets_stand_for_a_head_until_it_changes() {
        let mut head = Head::default();
        let note = SourceNote([1, 2]);
        assert_eq!(head.source(b"GET"), None);
        head.keep_source(b"GET", note);
        let mark = head.mark();
        assert!(mark.is_some());
        assert_eq!(head.source(b"GE"), None);
        assert_eq!(head.source(b"GET / HTTP"), Some((3, note)));
        assert_eq!(head.clone().source(b"GET"), None, "who has a copy reads nothing into it");
        head.keep_source(b"PUT", note);
        assert_ne!(head.mark(), mark);
        let path = head.push_text(b"/");
        head.set_path(path);
        assert_eq!(head.source(b"PUT"), None);
        head.keep_source(b"PUT", note);
        head.clear(HeadKind::Request, Version::HTTP_2);
        head.set_mark(mark.unwrap());
        assert_eq!(head.source(b"PUT"), None);
    }

    #[test]
    fn heads_that_never_come_again_are_hardly_ever_kept() {
        let mut head = Head::default();
        let mut kept = 0;
        for number in 0..800_u32 {
            head.clear(HeadKind::Request, Version::HTTP_11);
            head.keep_source(&number.to_le_bytes(), SourceNote::default());
            kept += u32::from(head.mark().is_some());
        }
        assert_eq!(kept, 8 + 99);
        head.keep_source(b"again", SourceNote::default());
        while head.source(b"again").is_none() {
            head.keep_source(b"again", SourceNote::default());
        }
        head.keep_source(b"other", SourceNote::default());
        assert!(head.source(b"other").is_some(), "what repeats is kept at once");
    }
}
