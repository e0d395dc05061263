//! RFC 9113 §8.2, §8.3: from a head that is to be sent to HEADERS and CONTINUATION frames.

use bolide_hpack::{Encoder, Pseudo};
use bolide_semantics::{FieldRef, RequestHead, ResponseHead, travels};

use crate::frame::{HEADER_BYTES, continuation, headers};
use crate::shared_fields::SharedFields;

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
    use bolide_semantics::FieldName;
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
}
