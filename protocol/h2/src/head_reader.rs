//! RFC 9113 §8.2, §8.3: from the field lines of a header block to a head, with everything that a head
//! must be.

use bolide_hpack::{DecodedField, NameKind, Pseudo};
use bolide_semantics::{
    FieldName, Head, HeadKind, Span, is_connection_specific, is_token, is_valid_authority,
    is_valid_scheme, is_valid_target, parse_content_length,
};
use http::{Method, StatusCode, Version};

use crate::limits::Limits;
use crate::priority::Priority;
use crate::stream::LENGTH_UNKNOWN;

/// What a header block on a stream must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Request,
    Response,
    Trailers,
    /// The block belongs to no stream: it is decoded for the table's sake.
    Nothing,
}

/// How large a head turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Fine,
    /// Above a limit: the stream is answered with 431.
    Excessive,
    /// Far above it: the connection ends.
    Absurd,
}

/// What a block came to, besides what stands in the head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// Why the message is malformed (RFC 9113 §8.1.1).
    pub(crate) malformed: Option<&'static str>,
    pub(crate) size: Size,
    /// [`LENGTH_UNKNOWN`] without a Content-Length.
    pub(crate) content_length: u64,
    /// The method is CONNECT.
    pub(crate) connect: bool,
    /// Bodies of this type may pause for as long as they like.
    pub(crate) patient: bool,
    pub(crate) priority: Option<Priority>,
    /// What the head counts against the limits of a header list, in bytes, and of its fields.
    pub(crate) list_bytes: u32,
    pub(crate) fields: u32,
}

/// Takes one field line after the other.
#[derive(Debug)]
pub(crate) struct HeadReader<'a> {
    head: &'a mut Head,
    expected: Expected,
    summary: Summary,
    /// A bit for each pseudo-field that came.
    seen: u8,
    /// A bit for each pseudo-field that may still come.
    open: u8,
    authority: Option<Span>,
    path: Span,
    host: Option<Span>,
    list_bytes: usize,
    list_bytes_max: usize,
    excess_count: usize,
    fields: u32,
    fields_max: u32,
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
    #[inline]
    pub(crate) fn new(head: &'a mut Head, expected: Expected, limits: &Limits) -> Self {
        let kind = match expected {
            Expected::Request => HeadKind::Request,
            Expected::Response => HeadKind::Response,
            Expected::Trailers | Expected::Nothing => HeadKind::Trailers,
        };
        head.clear(kind, Version::HTTP_2);
        Self {
            head,
            expected,
            summary: Summary {
                malformed: None,
                size: Size::Fine,
                content_length: LENGTH_UNKNOWN,
                connect: false,
                patient: false,
                priority: None,
                list_bytes: 0,
                fields: 0,
            },
            seen: 0,
            open: match expected {
                Expected::Request => METHOD | SCHEME | PATH | AUTHORITY | PROTOCOL,
                Expected::Response => STATUS,
                Expected::Trailers => 0,
                Expected::Nothing => u8::MAX,
            },
            authority: None,
            path: Span::default(),
            host: None,
            list_bytes: 0,
            list_bytes_max: limits.header_list_bytes as usize,
            excess_count: limits.header_list_excess_count as usize,
            fields: 0,
            fields_max: limits.header_fields_count,
        }
    }

    /// Takes a line; false when no further line is wanted.
    #[inline]
    pub(crate) fn field(&mut self, field: DecodedField<'_>) -> bool {
        // RFC 9113 §6.5.2: a line counts with 32 octets on top.
        self.list_bytes += field.name.len() + field.value.len() + 32;
        if self.list_bytes > self.list_bytes_max {
            return self.excess();
        }
        let taken = match field.kind {
            NameKind::Known(name) if field.valid => self.known(name, field.value),
            NameKind::Other if field.valid => self.named(field.name, field.value),
            NameKind::Pseudo(pseudo) if field.valid => self.pseudo(pseudo, field.value),
            _ => Err("a field name or value that is not allowed"),
        };
        match taken {
            Ok(()) => {
                if field.never_indexed && !matches!(field.kind, NameKind::Pseudo(_)) {
                    self.head.mark_sensitive();
                }
                true
            }
            Err(what) => {
                self.summary.malformed.get_or_insert(what);
                false
            }
        }
    }

    #[cold]
    fn excess(&mut self) -> bool {
        if self.list_bytes > self.list_bytes_max.saturating_mul(self.excess_count) {
            self.summary.size = Size::Absurd;
            return false;
        }
        self.summary.size = Size::Excessive;
        true
    }

    /// Counts a regular field; false when there are too many to keep it.
    #[inline]
    fn counts(&mut self) -> bool {
        self.open = 0;
        self.fields += 1;
        if self.fields > self.fields_max {
            self.summary.size = Size::Excessive;
            return false;
        }
        true
    }

    #[inline]
    fn known(&mut self, name: FieldName, value: &[u8]) -> Result<(), &'static str> {
        if !self.counts() {
            return Ok(());
        }
        if is_connection_specific(name) {
            return Err("a connection-specific field");
        }
        let span = self.head.push_text(value);
        match name {
            FieldName::ContentLength => self.content_length(value)?,
            FieldName::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err("a te field other than trailers");
            }
            FieldName::Host if self.expected == Expected::Request => {
                if self.host.is_some_and(|host| self.head.bytes(host) != value) {
                    return Err("two host fields that differ");
                }
                self.host = Some(span);
            }
            FieldName::Priority if self.expected == Expected::Request => {
                self.summary.priority = Some(Priority::parse(value));
            }
            FieldName::ContentType => {
                self.summary.patient = value.starts_with(b"application/grpc");
            }
            _ => {}
        }
        self.head.push_known(name, span);
        Ok(())
    }

    fn named(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if self.counts() {
            let name = self.head.push_text(name);
            let value = self.head.push_text(value);
            self.head.push_named(name, value);
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let length = parse_content_length(value).ok_or("an invalid content-length")?;
        if self.expected == Expected::Trailers {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.summary.content_length, length);
        if before != LENGTH_UNKNOWN && before != length {
            return Err("two content-length fields that differ");
        }
        Ok(())
    }

    #[inline]
    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) -> Result<(), &'static str> {
        let bit = bit(pseudo);
        if self.open & bit == 0 {
            return Err("a pseudo-field that comes twice, too late, or does not belong here");
        }
        self.open &= !bit;
        self.seen |= bit;
        match pseudo {
            Pseudo::Method => self.method(value)?,
            Pseudo::Scheme => {
                if !is_valid_scheme(value) {
                    return Err("an invalid :scheme");
                }
                let span = self.head.push_text(value);
                self.head.set_scheme(span);
            }
            Pseudo::Path => {
                if !is_valid_target(value) {
                    return Err("an invalid :path");
                }
                self.path = self.head.push_text(value);
                self.head.set_path(self.path);
            }
            Pseudo::Authority => {
                if !is_valid_authority(value) {
                    return Err("an invalid :authority");
                }
                let span = self.head.push_text(value);
                self.authority = Some(span);
                self.head.set_authority(span);
            }
            Pseudo::Protocol => {
                if !is_token(value) {
                    return Err("an invalid :protocol");
                }
                let span = self.head.push_text(value);
                self.head.set_protocol(span);
            }
            Pseudo::Status => self.status(value)?,
        }
        Ok(())
    }

    #[inline]
    fn method(&mut self, value: &[u8]) -> Result<(), &'static str> {
        if value == b"GET" {
            return Ok(()); // What an empty head begins with.
        }
        let method = Method::from_bytes(value).map_err(|_| "an invalid :method")?;
        self.summary.connect = method == Method::CONNECT;
        self.head.set_method(method);
        Ok(())
    }

    fn status(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let status = StatusCode::from_bytes(value).map_err(|_| "an invalid :status")?;
        if !(100..600).contains(&status.as_u16()) || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("a :status that HTTP/2 does not have");
        }
        self.head.set_status(status);
        Ok(())
    }

    /// The block is complete.
    #[inline]
    pub(crate) fn finish(mut self) -> Summary {
        if self.summary.malformed.is_none() && self.summary.size == Size::Fine {
            let complete = match self.expected {
                Expected::Request => self.request(),
                Expected::Response if self.seen != STATUS => Err("a response without :status"),
                _ => Ok(()),
            };
            self.summary.malformed = complete.err();
        }
        self.summary.list_bytes = u32::try_from(self.list_bytes).unwrap_or(u32::MAX);
        self.summary.fields = self.fields;
        self.summary
    }

    #[inline]
    fn request(&mut self) -> Result<(), &'static str> {
        if let Some(host) = self.host {
            self.host_agrees(host)?;
        }
        if self.summary.connect {
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
        let path = self.head.bytes(self.path);
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

#[cfg(test)]
mod tests;
