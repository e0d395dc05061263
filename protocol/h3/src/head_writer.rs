//! RFC 9114 §4.2, §4.3, §7.2.2: from a head that is to be sent to a HEADERS frame.

use bolide_qpack::{Encoder, SectionWriter};
use bolide_semantics::{FieldRef, Pseudo, RequestHead, ResponseHead, travels};
use http::Method;

use crate::SharedFields;
use crate::frame::kind;
use crate::varint;

/// Room for the type and a length of two bytes.
const HEADER_BYTES: usize = 3;

/// Appends a HEADERS frame whose section `write` fills.
#[inline]
fn frame(
    encoder: &mut Encoder,
    stream: u64,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut SectionWriter<'_>, &mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[kind::HEADERS as u8, 0, 0]);
    let mut section = encoder.begin(out);
    write(&mut section, out);
    section.end(stream, out);
    let length = out.len() - start - HEADER_BYTES;
    if length < 0x4000 {
        out[start + 1..start + HEADER_BYTES]
            .copy_from_slice(&(length as u16 | 0x4000).to_be_bytes());
    } else {
        let mut long = Vec::new();
        varint::write(length as u64, &mut long);
        out.splice(start + 1..start + HEADER_BYTES, long);
    }
}

/// Appends the head of a request.
pub(crate) fn request(
    encoder: &mut Encoder,
    stream: u64,
    head: &RequestHead<'_>,
    out: &mut Vec<u8>,
) {
    let RequestHead { method, scheme, authority, path, protocol, fields } = *head;
    frame(encoder, stream, out, |section, out| {
        section.pseudo(Pseudo::Method, method.as_str().as_bytes(), out);
        if method != Method::CONNECT || protocol.is_some() {
            section.pseudo(Pseudo::Scheme, scheme.as_bytes(), out);
            section.pseudo(Pseudo::Path, path.as_bytes(), out);
        }
        section.pseudo(Pseudo::Authority, authority.as_bytes(), out);
        if let Some(protocol) = protocol {
            section.pseudo(Pseudo::Protocol, protocol.as_bytes(), out);
        }
        for field in fields.iter().filter(|field| travels(field, true)) {
            section.field(field, out);
        }
    });
}

/// Appends the head of a response, interim or final.
#[inline]
pub(crate) fn response(
    encoder: &mut Encoder,
    stream: u64,
    head: &ResponseHead<'_, SharedFields>,
    out: &mut Vec<u8>,
) {
    frame(encoder, stream, out, |section, out| {
        Encoder::response_start(head.status.as_u16(), head.length, head.date, out);
        if let Some(shared) = head.shared {
            out.extend_from_slice(shared.lines());
        }
        for field in head.own.iter().filter(|field| travels(field, false)) {
            section.field(field, out);
        }
    });
}

/// Appends trailers.
pub(crate) fn trailers<'a>(
    encoder: &mut Encoder,
    stream: u64,
    fields: impl Iterator<Item = FieldRef<'a>>,
    out: &mut Vec<u8>,
) {
    frame(encoder, stream, out, |section, out| {
        for field in fields.filter(|field| travels(field, false)) {
            section.field(&field, out);
        }
    });
}
