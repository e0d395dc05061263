//! From a file and a request's conditions to a response (RFC 9110 §13, §14, §15).

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use bolide_semantics::{
    ByteRange, Conditions, Precondition, RangeRequest, parse_range, preferred_coding,
    unsatisfied_content_range,
};
use bolide_server::{Method, Response, StatusCode};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_RANGE, CONTENT_TYPE};

use crate::body::{FileBody, Reader, Segment};
use crate::entry::{Content, Entry, Variant};

/// The response. `reader` is asked for when a file has to be read.
#[inline]
pub(crate) fn respond(
    entry: &Entry,
    conditions: &Conditions<'_>,
    method: &Method,
    reader: impl FnOnce() -> Reader,
) -> Response {
    let variant = select(entry, conditions);
    match conditions.evaluate(method, &entry.validators(variant)) {
        Precondition::NotModified => {
            Response::new(StatusCode::NOT_MODIFIED).with_fields(&variant.not_modified)
        }
        Precondition::Failed => Response::error(StatusCode::PRECONDITION_FAILED),
        // §14.2: a range is defined for GET alone.
        Precondition::Perform { range: true } if *method == Method::GET => {
            match conditions.range().map(|range| parse_range(range, variant.length)) {
                Some(RangeRequest::Parts(parts)) => partial(variant, &parts, reader),
                Some(RangeRequest::Unsatisfiable) => {
                    Response::error(StatusCode::RANGE_NOT_SATISFIABLE)
                        .header(CONTENT_RANGE, unsatisfied_content_range(variant.length))
                }
                Some(RangeRequest::Whole) | None => whole(variant, reader),
            }
        }
        Precondition::Perform { .. } => whole(variant, reader),
    }
}

/// The variant that the client likes best.
#[inline]
fn select<'a>(entry: &'a Entry, conditions: &Conditions<'_>) -> &'a Variant {
    let preferred = if entry.offered.is_empty() {
        None
    } else {
        preferred_coding(conditions.accept_encoding(), &entry.offered)
    };
    // The first variant is the file as it is; one for each coding follows.
    &entry.variants[preferred.map_or(0, |index| index + 1)]
}

/// The response to a request without conditions.
#[inline]
pub(crate) fn whole(variant: &Variant, reader: impl FnOnce() -> Reader) -> Response {
    match &variant.content {
        Content::Memory(bytes) => {
            Response::new(StatusCode::OK).with_fields(&variant.fields).own_body(bytes.clone())
        }
        Content::File(version) => {
            let all = Segment::File(ByteRange { start: 0, end: variant.length });
            let body = FileBody::new(vec![all], version.clone(), reader());
            Response::stream(body).with_fields(&variant.fields)
        }
    }
}

/// One part as it is, several as `multipart/byteranges` (§14.6).
fn partial(variant: &Variant, parts: &[ByteRange], reader: impl FnOnce() -> Reader) -> Response {
    let (segments, boundary) = match parts {
        [part] => (vec![segment(variant, *part)], None),
        _ => {
            let boundary = boundary();
            (multipart(variant, parts, &boundary), Some(boundary))
        }
    };
    let response = match &variant.content {
        Content::Memory(_) => Response::new(StatusCode::OK).own_body(joined(segments)),
        Content::File(version) => {
            Response::stream(FileBody::new(segments, version.clone(), reader()))
        }
    };
    let response = response.with_status(StatusCode::PARTIAL_CONTENT);
    match (boundary, parts) {
        (None, [part, ..]) => response
            .with_fields(&variant.fields)
            .header(CONTENT_RANGE, part.content_range(variant.length)),
        (boundary, _) => {
            let boundary = boundary.unwrap_or_default();
            let own = variant.fields.iter().filter(|(name, _)| **name != CONTENT_TYPE);
            own.fold(response, |response, (name, value)| response.header(name, value))
                .header(CONTENT_TYPE, format!("multipart/byteranges; boundary={boundary}"))
        }
    }
}

fn segment(variant: &Variant, part: ByteRange) -> Segment {
    match &variant.content {
        Content::Memory(bytes) => {
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            Segment::Bytes(bytes.slice(index(part.start)..index(part.end)))
        }
        Content::File(_) => Segment::File(part),
    }
}

fn multipart(variant: &Variant, parts: &[ByteRange], boundary: &str) -> Vec<Segment> {
    let media_type = variant.fields.iter().find(|(name, _)| **name == CONTENT_TYPE);
    let media_type = media_type.and_then(|(_, value)| value.to_str().ok()).unwrap_or_default();
    let mut segments = Vec::with_capacity(2 * parts.len() + 1);
    for part in parts {
        let range = part.content_range(variant.length);
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: {media_type}\r\nContent-Range: {range}\r\n\r\n"
        );
        segments.push(Segment::Bytes(head.into()));
        segments.push(segment(variant, *part));
    }
    segments.push(Segment::Bytes(format!("\r\n--{boundary}--\r\n").into()));
    segments
}

fn joined(segments: Vec<Segment>) -> Bytes {
    let mut pieces = segments.into_iter().filter_map(|segment| match segment {
        Segment::Bytes(bytes) => Some(bytes),
        Segment::File(_) => None,
    });
    let first = pieces.next().unwrap_or_default();
    let Some(second) = pieces.next() else { return first };
    let mut all = BytesMut::from(first.as_ref());
    all.extend_from_slice(&second);
    for piece in pieces {
        all.extend_from_slice(&piece);
    }
    all.freeze()
}

/// A line that no content can know beforehand, and so can't contain on purpose.
fn boundary() -> String {
    static SEED: OnceLock<(RandomState, std::sync::atomic::AtomicU64)> = OnceLock::new();
    let (state, count) = SEED.get_or_init(Default::default);
    let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{:016x}{:016x}", state.hash_one(number), state.hash_one(!number))
}

/// The page that goes with a 404, if the entry is small enough to be one.
pub(crate) fn not_found(page: Option<&Entry>) -> Response {
    let page = page.and_then(|entry| entry.variants.first());
    match page.map(|variant| (variant, &variant.content)) {
        Some((variant, Content::Memory(bytes))) => {
            let mut fields = variant.fields.iter();
            let media_type = fields.find(|(name, _)| **name == CONTENT_TYPE);
            let response = Response::new(StatusCode::NOT_FOUND).own_body(bytes.clone());
            media_type
                .into_iter()
                .fold(response, |response, (name, value)| response.header(name, value))
        }
        _ => Response::error(StatusCode::NOT_FOUND),
    }
}

/// A response that has nothing to do with one file.
pub(crate) fn unavailable() -> Response {
    Response::error(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "1")
}
