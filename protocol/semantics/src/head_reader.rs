//! RFC 9113 §8.2, §8.3, RFC 9114 §4.2, §4.3: the section of fields that field lines are decoded into, and what it must be.

use http::{Method, StatusCode, Version};

use crate::{
    FieldName, FieldSection, Head, HeadKind, Line, NameKind, Note, Priority, Pseudo, Span, Text,
    is_connection_specific, is_token, is_valid_authority, is_valid_scheme, is_valid_target,
    parse_content_length,
};

/// A body's length that was not announced.
pub const LENGTH_UNKNOWN: u64 = u64::MAX;

/// The kind of exchange on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// A request and a response.
    Message,
    /// The same for gRPC: the body may be slow, and pause for longer.
    Call,
    /// CONNECT that has not succeeded.
    Connect,
    /// CONNECT succeeded: bytes both ways, no message.
    Tunnel,
}

/// How large a received head may be.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// Decoded size: names, values and 32 for each field, in bytes.
    pub list_bytes: u32,
    /// How many times that size a head is only refused; above it is [`HeadSize::Absurd`].
    pub list_excess_count: u32,
    /// Field lines.
    pub fields_count: u32,
}

/// The kind of head that a header block on a stream must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedHead {
    /// The head of a request.
    Request,
    /// The head of a response, interim or final.
    Response,
    /// Trailers.
    Trailers,
    /// The block belongs to no stream: it is decoded for the table's sake.
    Nothing,
}

/// How large a head turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadSize {
    /// Within the limits.
    Fine,
    /// Above a limit: the stream is answered with 431.
    Excessive,
    /// Far above it: the connection ends.
    Absurd,
}

/// Summary of a block: facts that are not in the head.
#[derive(Debug, Clone, Copy)]
pub struct HeadSummary {
    /// Why the message is malformed (RFC 9113 §8.1.1).
    pub malformed: Option<&'static str>,
    /// Size compared with the limits.
    pub size: HeadSize,
    /// [`LENGTH_UNKNOWN`] without a Content-Length.
    pub content_length: u64,
    /// By the method and the type of the content.
    pub kind: ExchangeKind,
    /// Priority that a request asks for (RFC 9218 §5).
    pub priority: Option<Priority>,
}

/// A head that takes one field after the other.
#[derive(Debug)]
pub struct HeadReader<'a> {
    head: &'a mut Head,
    expected: ExpectedHead,
    summary: HeadSummary,
    /// A bit for each pseudo-field that came.
    seen: u8,
    /// A bit for each pseudo-field that may still come.
    open: u8,
    authority: Option<Span>,
    host: Option<Span>,
    list_bytes: usize,
    /// Fields that take more than that together are not kept; none is, once the section is malformed.
    list_bytes_max: usize,
    limits: HeadLimits,
}

const fn bit(pseudo: Pseudo) -> u8 {
    1 << pseudo as u8
}

const METHOD: u8 = bit(Pseudo::Method);
const SCHEME: u8 = bit(Pseudo::Scheme);
const PATH: u8 = bit(Pseudo::Path);
const AUTHORITY: u8 = bit(Pseudo::Authority);
const PROTOCOL: u8 = bit(Pseudo::Protocol);
const STATUS: u8 = bit(Pseudo::Status);

impl<'a> HeadReader<'a> {
    /// Begins a head of this version in `head`.
    #[inline]
    #[must_use]
    pub fn new(
        head: &'a mut Head,
        version: Version,
        expected: ExpectedHead,
        limits: HeadLimits,
    ) -> Self {
        let kind = match expected {
            ExpectedHead::Request => HeadKind::Request,
            ExpectedHead::Response => HeadKind::Response,
            ExpectedHead::Trailers | ExpectedHead::Nothing => HeadKind::Trailers,
        };
        head.clear(kind, version);
        Self {
            head,
            expected,
            summary: HeadSummary {
                malformed: None,
                size: HeadSize::Fine,
                content_length: LENGTH_UNKNOWN,
                kind: ExchangeKind::Message,
                priority: None,
            },
            seen: 0,
            open: match expected {
                ExpectedHead::Request => METHOD | SCHEME | PATH | AUTHORITY | PROTOCOL,
                ExpectedHead::Response => STATUS,
                ExpectedHead::Trailers => 0,
                ExpectedHead::Nothing => u8::MAX,
            },
            authority: None,
            host: None,
            list_bytes: 0,
            list_bytes_max: limits.list_bytes as usize,
            limits,
        }
    }

    /// Why a field is not to be kept: what came before it was malformed, or too much. Pseudo-fields are not among the
    /// fields that are limited, but clients don't send them last.
    #[cold]
    fn declines(&mut self, bytes: usize, fields: usize) -> bool {
        if fields == 1 {
            self.list_bytes += bytes;
            let most = self.limits.list_bytes as usize;
            let absurd = most.saturating_mul(self.limits.list_excess_count as usize);
            if self.list_bytes > absurd {
                self.summary.size = HeadSize::Absurd;
            } else if self.list_bytes > most || self.list_bytes_max > 0 {
                self.summary.size = HeadSize::Excessive;
            }
        }
        false
    }

    /// The section is malformed: nothing more of it is kept.
    #[cold]
    fn refuse(&mut self, what: &'static str) {
        self.summary.malformed.get_or_insert(what);
        self.list_bytes_max = 0;
    }

    /// A field that is there to be kept and nothing else.
    #[inline]
    fn keep(&mut self, line: Line) {
        self.open = 0;
        let known = if let NameKind::Known(name) = line.kind { Some(name) } else { None };
        self.head.push_line(known, line.start, line.value, line.end);
    }

    /// A field that is invalid, or means something to the version.
    #[inline(never)]
    fn special(&mut self, line: Line) {
        let Line { kind, note, value, end, .. } = line;
        if !note.is_valid() {
            return self.refuse("a field name or value that is not allowed");
        }
        let taken = match kind {
            NameKind::Pseudo(pseudo) if !note.has(Note::CHECKED) => Err(wrong(pseudo)),
            NameKind::Pseudo(pseudo) => return self.pseudo(pseudo, value, end),
            NameKind::Known(name) => self.known(name, self.head.span(value, end)),
            NameKind::Other => Ok(()),
        };
        if let Err(what) = taken {
            return self.refuse(what);
        }
        self.keep(line);
        if note.has(Note::NEVER_INDEXED) {
            self.head.mark_sensitive();
        }
    }

    fn known(&mut self, name: FieldName, span: Span) -> Result<(), &'static str> {
        let value = self.head.bytes(span);
        if is_connection_specific(name) {
            return Err("a connection-specific field");
        }
        match name {
            FieldName::ContentLength => return self.content_length(span),
            FieldName::Te if !is_te_of_trailers(value) => {
                return Err("a te field other than trailers");
            }
            FieldName::Host if self.expected == ExpectedHead::Request => {
                if self.host.is_some_and(|host| self.head.bytes(host) != value) {
                    return Err("two host fields that differ");
                }
                self.host = Some(span);
            }
            FieldName::Priority if self.expected == ExpectedHead::Request => {
                self.summary.priority = Some(Priority::parse(value));
            }
            FieldName::ContentType if self.summary.kind != ExchangeKind::Connect => {
                let is_call = value.starts_with(GRPC);
                self.summary.kind =
                    if is_call { ExchangeKind::Call } else { ExchangeKind::Message };
            }
            _ => {}
        }
        Ok(())
    }

    fn content_length(&mut self, value: Span) -> Result<(), &'static str> {
        let value = self.head.bytes(value);
        let length = parse_content_length(value).ok_or("an invalid content-length")?;
        if self.expected == ExpectedHead::Trailers {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.summary.content_length, length);
        if before != LENGTH_UNKNOWN && before != length {
            return Err("two content-length fields that differ");
        }
        Ok(())
    }

    /// A pseudo-field with a value that is right for it.
    #[inline(never)]
    fn pseudo(&mut self, pseudo: Pseudo, value: usize, end: usize) {
        let bit = bit(pseudo);
        if self.open & bit == 0 {
            let what = "a pseudo-field that comes twice, too late, or does not belong here";
            return self.refuse(what);
        }
        self.open &= !bit;
        self.seen |= bit;
        let span = self.head.span(value, end);
        match pseudo {
            Pseudo::Method => self.method(span),
            Pseudo::Scheme => self.head.set_scheme(span),
            Pseudo::Path => self.head.set_path(span),
            Pseudo::Authority => {
                self.authority = Some(span);
                self.head.set_authority(span);
            }
            Pseudo::Protocol => self.head.set_protocol(span),
            Pseudo::Status => self.status(span),
        }
    }

    #[inline]
    fn method(&mut self, value: Span) {
        let value = self.head.bytes(value);
        if value == b"GET" {
            return; // What an empty head begins with.
        }
        let Ok(method) = Method::from_bytes(value) else {
            return self.refuse(wrong(Pseudo::Method));
        };
        if method == Method::CONNECT {
            self.summary.kind = ExchangeKind::Connect;
        }
        self.head.set_method(method);
    }

    fn status(&mut self, value: Span) {
        match StatusCode::from_bytes(self.head.bytes(value)) {
            Ok(StatusCode::SWITCHING_PROTOCOLS) => {
                self.refuse("a :status that only HTTP/1.1 has");
            }
            Ok(status) if status.as_u16() < 600 => self.head.set_status(status),
            _ => self.refuse(wrong(Pseudo::Status)),
        }
    }

    /// The block is complete.
    #[inline]
    #[must_use]
    pub fn finish(mut self) -> HeadSummary {
        if self.summary.malformed.is_none() && self.summary.size == HeadSize::Fine {
            let complete = match self.expected {
                ExpectedHead::Request => self.request(),
                ExpectedHead::Response if self.seen != STATUS => Err("a response without :status"),
                _ => Ok(()),
            };
            self.summary.malformed = complete.err();
        }
        self.summary
    }

    #[inline]
    fn request(&mut self) -> Result<(), &'static str> {
        if let Some(host) = self.host {
            self.host_agrees(host)?;
        }
        if self.summary.kind == ExchangeKind::Connect {
            return self.connect();
        }
        if self.seen & (METHOD | SCHEME | PATH) != METHOD | SCHEME | PATH {
            return Err("a request without :method, :scheme or :path");
        }
        if self.seen & PROTOCOL != 0 {
            return Err("a :protocol without CONNECT");
        }
        if self.authority.is_none() {
            return Err("a request without :authority and host");
        }
        let path = self.head.path_and_query_bytes();
        if path[0] != b'/' && !(path == b"*" && self.head.method() == Method::OPTIONS) {
            return Err("a :path that does not begin with a slash");
        }
        Ok(())
    }

    /// RFC 9113 §8.5, RFC 8441 §4.
    fn connect(&self) -> Result<(), &'static str> {
        let whole = METHOD | SCHEME | PATH | AUTHORITY | PROTOCOL;
        if self.seen != METHOD | AUTHORITY && self.seen != whole {
            return Err("a CONNECT request with pseudo-fields that do not belong together");
        }
        let authority = self.head.authority().unwrap_or_default();
        if self.seen != whole && !authority.bytes().rev().any(|byte| byte == b':') {
            return Err("a CONNECT request without a port");
        }
        Ok(())
    }

    fn host_agrees(&mut self, host: Span) -> Result<(), &'static str> {
        match self.authority {
            Some(authority) => {
                let authority = self.head.bytes(authority);
                if !authority.eq_ignore_ascii_case(self.head.bytes(host)) {
                    return Err("host and :authority differ");
                }
            }
            None => {
                if !is_valid_authority(self.head.bytes(host)) {
                    return Err("an invalid host");
                }
                self.authority = Some(host);
                self.head.set_authority(host);
            }
        }
        Ok(())
    }
}

impl FieldSection for HeadReader<'_> {
    #[inline]
    fn note(kind: NameKind, value: &[u8]) -> Note {
        match kind {
            NameKind::Known(name) if IS_SPECIAL[name as usize] => Note::SPECIAL.when(match name {
                FieldName::ContentType => value.starts_with(GRPC),
                FieldName::Te => !is_te_of_trailers(value),
                _ => true,
            }),
            NameKind::Known(_) | NameKind::Other => Note::PLAIN,
            NameKind::Pseudo(pseudo) => Note::SPECIAL.and(Note::CHECKED.when(match pseudo {
                Pseudo::Path => is_valid_target(value),
                Pseudo::Authority => is_valid_authority(value),
                Pseudo::Scheme => is_valid_scheme(value),
                Pseudo::Method | Pseudo::Protocol => is_token(value),
                Pseudo::Status => value.len() == 3 && value.iter().all(u8::is_ascii_digit),
            })),
        }
    }

    #[inline]
    fn text(&mut self) -> &mut Text {
        self.head.text_mut()
    }

    #[inline]
    fn counts(&mut self, bytes: usize, fields: usize) -> bool {
        let list_bytes = self.list_bytes + bytes;
        let count = self.head.field_count() + fields;
        if list_bytes > self.list_bytes_max || count > self.limits.fields_count as usize {
            return self.declines(bytes, fields);
        }
        self.list_bytes = list_bytes;
        true
    }

    #[inline]
    fn take(&mut self, line: Line) {
        if line.note == Note::PLAIN {
            return self.keep(line);
        }
        if let NameKind::Pseudo(pseudo) = line.kind
            && line.note == Note::SPECIAL.and(Note::CHECKED)
        {
            return self.pseudo(pseudo, line.value, line.end);
        }
        self.special(line);
    }
}

/// RFC 9113 §8.2.2: the only value that `te` may have.
fn is_te_of_trailers(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"trailers")
}

/// Start of the type of a gRPC call's bodies.
const GRPC: &[u8] = b"application/grpc";

/// The fields that mean something to HTTP/2 and HTTP/3, or are not allowed in it.
static IS_SPECIAL: [bool; FieldName::ALL.len()] = {
    let mut special = [false; FieldName::ALL.len()];
    let mut at = 0;
    while at < special.len() {
        let name = FieldName::ALL[at];
        special[at] = is_connection_specific(name)
            || matches!(
                name,
                FieldName::ContentLength
                    | FieldName::Te
                    | FieldName::Host
                    | FieldName::Priority
                    | FieldName::ContentType
            );
        at += 1;
    }
    special
};

/// Returns what is said of a pseudo-field whose value is not right for it.
#[cold]
fn wrong(pseudo: Pseudo) -> &'static str {
    match pseudo {
        Pseudo::Method => "an invalid :method",
        Pseudo::Scheme => "an invalid :scheme",
        Pseudo::Path => "an invalid :path",
        Pseudo::Authority => "an invalid :authority",
        Pseudo::Protocol => "an invalid :protocol",
        Pseudo::Status => "an invalid :status",
    }
}
