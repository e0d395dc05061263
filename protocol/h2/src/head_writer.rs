//! RFC 9113 §8.2, §8.3: from a head that is to be sent to HEADERS and CONTINUATION frames.

use bolide_hpack::{Encoder, Pseudo};
use bolide_semantics::{
    FieldName, FieldRef, Misuse, RequestHead, ResponseHead, TOKEN_LOWER, is_connection_specific,
    is_field_value, parse_content_length,
};

use crate::frame::{HEADER_BYTES, continuation, headers};
use crate::shared_fields::SharedFields;
use crate::stream::LENGTH_UNKNOWN;

/// Checks the fields of a head before anything of it enters the compression table. Returns the
/// Content-Length, or [`LENGTH_UNKNOWN`].
#[inline]
pub(crate) fn check(fields: &[FieldRef<'_>]) -> Result<u64, Misuse> {
    let mut length = LENGTH_UNKNOWN;
    for field in fields {
        if !is_field_value(field.value) {
            return Err(Misuse::InvalidHead);
        }
        match field.known {
            Some(FieldName::ContentLength) => {
                let value = parse_content_length(field.value).ok_or(Misuse::InvalidHead)?;
                if length != LENGTH_UNKNOWN && length != value {
                    return Err(Misuse::InvalidHead);
                }
                length = value;
            }
            Some(_) => {}
            None => {
                let lower = |byte: u8| TOKEN_LOWER[usize::from(byte)] == byte && byte != 0;
                if field.name.is_empty() || !field.name.bytes().all(lower) {
                    return Err(Misuse::InvalidHead);
                }
            }
        }
    }
    Ok(length)
}

/// Whether HTTP/2 takes the field, from a request or from another message.
#[inline]
pub(crate) fn travels(field: &FieldRef<'_>, request: bool) -> bool {
    match field.known {
        Some(FieldName::Te) => field.value.eq_ignore_ascii_case(b"trailers"),
        // The authority says it already.
        Some(FieldName::Host) => !request,
        Some(name) => !is_connection_specific(name),
        None => true,
    }
}

/// Appends the head of a request.
pub(crate) fn request(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    target: Target,
    head: &RequestHead<'_>,
) {
    let frame = begin(encoder, out);
    let RequestHead { method, scheme, authority, path, protocol, fields } = *head;
    encoder.pseudo(Pseudo::Method, method.as_str().as_bytes(), out);
    if method != http::Method::CONNECT || protocol.is_some() {
        encoder.pseudo(Pseudo::Scheme, scheme.as_bytes(), out);
        encoder.pseudo(Pseudo::Path, path.as_bytes(), out);
    }
    encoder.pseudo(Pseudo::Authority, authority.as_bytes(), out);
    if let Some(protocol) = protocol {
        encoder.pseudo(Pseudo::Protocol, protocol.as_bytes(), out);
    }
    for field in fields.iter().filter(|field| travels(field, true)) {
        encoder.field(field, out);
    }
    end(out, frame, target);
}

/// Appends the head of a response, interim or final.
#[inline]
pub(crate) fn response(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    target: Target,
    head: &ResponseHead<'_, SharedFields>,
) {
    let frame = begin(encoder, out);
    Encoder::response_start(head.status.as_u16(), head.length, head.date, out);
    if let Some(shared) = head.shared {
        out.extend_from_slice(shared.block());
    }
    for field in head.own.iter().filter(|field| travels(field, false)) {
        encoder.field(field, out);
    }
    end(out, frame, target);
}

/// Appends trailers.
pub(crate) fn trailers<'a>(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    target: Target,
    fields: impl Iterator<Item = FieldRef<'a>>,
) {
    let frame = begin(encoder, out);
    for field in fields.filter(|field| travels(field, false)) {
        encoder.field(&field, out);
    }
    end(out, frame, target);
}

/// Leaves room for a frame's header, and says where.
#[inline]
fn begin(encoder: &mut Encoder, out: &mut Vec<u8>) -> usize {
    let frame = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    encoder.begin(out);
    frame
}

/// Frames the block at the end of `out`: one HEADERS frame if it fits.
#[inline]
fn end(out: &mut Vec<u8>, frame: usize, target: Target) {
    let block = out.len() - frame - HEADER_BYTES;
    if block <= target.frame_bytes_max as usize {
        let header = headers::header(target.stream, block as u32, target.end_stream, true);
        out[frame..frame + HEADER_BYTES].copy_from_slice(&header.to_bytes());
    } else {
        split(out, frame, target);
    }
}

/// Which stream a head is for, and how it is framed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) stream: u32,
    pub(crate) end_stream: bool,
    pub(crate) frame_bytes_max: u32,
}

/// RFC 9113 §6.10: divides the block at the end of `out`, for which a frame header was left free at
/// `frame`, among HEADERS and CONTINUATION frames.
#[cold]
fn split(out: &mut Vec<u8>, frame: usize, target: Target) {
    let block = out.split_off(frame + HEADER_BYTES);
    out.truncate(frame);
    let pieces = block.chunks(target.frame_bytes_max as usize);
    let last = pieces.len() - 1;
    for (index, piece) in pieces.enumerate() {
        let (length, ends) = (piece.len() as u32, index == last);
        let header = if index == 0 {
            headers::header(target.stream, length, target.end_stream, ends)
        } else {
            continuation::header(target.stream, length, ends)
        };
        header.write(out);
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use bolide_hpack::{Decoder, EachField};
    use http::{Method, StatusCode};

    use super::*;
    use crate::frame::{FrameHeader, flag, kind};

    const TARGET: Target = Target { stream: 1, end_stream: true, frame_bytes_max: 16_384 };

    fn decode(block: &[u8]) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let field = |field: bolide_hpack::DecodedField<'_>| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            lines.push((text(field.name), text(field.value)));
            true
        };
        Decoder::new(4096).decode(block, &mut EachField::new(field)).unwrap();
        lines
    }

    fn line(name: &'static str, value: &'static [u8]) -> FieldRef<'static> {
        let known = FieldName::lookup(name.as_bytes());
        FieldRef { known, name, value, sensitive: false }
    }

    #[test]
    fn a_request_begins_with_its_pseudo_fields() {
        let fields = &[
            line("te", b"gzip"),
            line("host", b"a"),
            line("x", b"1"),
            line("upgrade", b"h2c"),
            line("te", b"trailers"),
        ];
        let (scheme, authority, path) = ("https", "a", "/b");
        let head =
            RequestHead { method: &Method::GET, scheme, authority, path, protocol: None, fields };
        let mut out = Vec::new();
        request(&mut Encoder::new(), &mut out, TARGET, &head);
        let header = FrameHeader::parse(out[..9].try_into().unwrap());
        assert_eq!(header.length as usize, out.len() - 9);
        assert_eq!(
            (header.kind, header.flags),
            (kind::HEADERS, flag::END_STREAM | flag::END_HEADERS)
        );
        let names: Vec<_> = decode(&out[9..]).into_iter().map(|line| line.0).collect();
        assert_eq!(names, [":method", ":scheme", ":path", ":authority", "x", "te"]);
    }

    #[test]
    fn a_plain_connect_has_no_path() {
        let (method, scheme, authority, path) = (&Method::CONNECT, "https", "a:1", "");
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields: &[] };
        let mut out = Vec::new();
        request(&mut Encoder::new(), &mut out, TARGET, &head);
        let names: Vec<_> = decode(&out[9..]).into_iter().map(|line| line.0).collect();
        assert_eq!(names, [":method", ":authority"]);
    }

    #[test]
    fn a_long_block_is_continued() {
        let value = vec![b'#'; 100];
        let field = FieldRef { known: None, name: "x-long", value: &value, sensitive: true };
        let target = Target { frame_bytes_max: 40, ..TARGET };
        let mut out = b"before".to_vec();
        let own = [field];
        let head = ResponseHead::new(StatusCode::OK, &own);
        response(&mut Encoder::new(), &mut out, target, &head);
        let mut rest = &out[6..];
        let mut block = Vec::new();
        let mut seen = Vec::new();
        while !rest.is_empty() {
            let header = FrameHeader::parse(rest[..9].try_into().unwrap());
            let end = 9 + header.length as usize;
            block.extend_from_slice(&rest[9..end]);
            seen.push((header.kind, header.flags));
            rest = &rest[end..];
        }
        assert_eq!(seen[0], (kind::HEADERS, flag::END_STREAM));
        assert_eq!(seen[seen.len() - 1], (kind::CONTINUATION, flag::END_HEADERS));
        assert!(seen[1..seen.len() - 1].iter().all(|frame| *frame == (kind::CONTINUATION, 0)));
        assert_eq!(decode(&block).len(), 2);
    }

    #[test]
    fn fields_that_could_be_read_otherwise_are_refused() {
        assert_eq!(check(&[line("x", b"1"), line("content-length", b"5")]), Ok(5));
        assert_eq!(check(&[line("x", b"1")]), Ok(LENGTH_UNKNOWN));
        for bad in [
            line("X", b"1"),
            line("", b"1"),
            line("a b", b"1"),
            line(":path", b"/"),
            line("x", b"a\nb"),
            line("x", b" a"),
            line("content-length", b"x"),
        ] {
            assert_eq!(check(&[bad]), Err(Misuse::InvalidHead), "{bad:?}");
        }
    }
}
