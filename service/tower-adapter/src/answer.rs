//! From `http::Response` to the engine's response.

use std::task::{Context, Poll};

use bolide_server::{Bytes, HeaderMap, Response, StatusCode};
use bytes::Buf;
use http::header::CONTENT_LENGTH;
use http_body::Body;

use crate::spare::{Place, Spare};

/// After a first piece of at most so many bytes the next one is asked for before that is sent: it may be the
/// last.
const AHEAD_BYTES_MAX: usize = 16 * 1024;

/// An answer of a service.
pub(crate) enum Answer<B> {
    /// All of it.
    Whole(Response),
    /// A head, and a body that goes on.
    Stream(Stream<B>),
    /// A head after which the exchange is a tunnel.
    Switch(Response),
}

/// A response whose body was not complete at once.
pub(crate) struct Stream<B> {
    pub(crate) head: Response,
    pub(crate) length: Option<u64>,
    pub(crate) body: Place<B>,
    /// What was read of the body already.
    pub(crate) front: Piece,
    /// What was read after that.
    pub(crate) second: Option<Box<Piece>>,
}

/// What a body had when it was asked.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Nothing yet.
    Pending,
    Data(Bytes),
    Last(Bytes),
    Trailers(HeaderMap),
    End,
    Failed,
}

/// How the request bears on its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) is_head: bool,
    pub(crate) is_connect: bool,
    /// The service was offered a tunnel.
    pub(crate) has_offer: bool,
}

/// Translates what a service returned.
pub(crate) fn translate<B: Body>(
    response: http::Response<B>,
    asked: Asked,
    cx: &mut Context<'_>,
    places: &Spare<Place<B>>,
) -> Answer<B> {
    let (parts, body) = response.into_parts();
    let status = parts.status;
    let switches =
        status == StatusCode::SWITCHING_PROTOCOLS || (asked.is_connect && status.is_success());
    let mut head = Response::new(status);
    if switches && asked.has_offer {
        return Answer::Switch(head.fields(parts.headers));
    }
    if status.is_informational() {
        // There is nothing that such a response could be the answer to.
        return Answer::Whole(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
    }
    let has_no_body = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    let length = body.size_hint().exact();
    if asked.is_head && !has_no_body && !parts.headers.contains_key(CONTENT_LENGTH) {
        // What a GET would have got, where it is known.
        if let Some(length) = length.filter(|length| *length > 0) {
            head = head.header(CONTENT_LENGTH, length);
        }
    }
    let mut fields = parts.headers;
    if has_no_body && fields.get(CONTENT_LENGTH).is_some_and(|length| length == "0") {
        // Frameworks measure the body that they send; RFC 9110 §8.6 means that of a 200.
        fields.remove(CONTENT_LENGTH);
    }
    head = head.fields(fields);
    if has_no_body || asked.is_head || body.is_end_stream() {
        return Answer::Whole(head);
    }
    let mut place = places.take().unwrap_or_else(Place::new);
    place.put(body);
    let whole = match next(&mut place, cx) {
        Piece::Last(data) => head.body(data),
        Piece::End => head,
        Piece::Data(data) if data.len() <= AHEAD_BYTES_MAX => match next(&mut place, cx) {
            // An answer of gRPC: one message and the status.
            Piece::Trailers(trailers) => head.body(data).trailers(length, trailers),
            second => {
                let front = Piece::Data(data);
                let second = match second {
                    Piece::Pending => None,
                    second => Some(Box::new(second)),
                };
                return Answer::Stream(Stream { head, length, body: place, front, second });
            }
        },
        front => {
            return Answer::Stream(Stream { head, length, body: place, front, second: None });
        }
    };
    place.clear();
    places.give(place);
    Answer::Whole(whole)
}

/// The next piece of a body. An empty one is passed over.
pub(crate) fn next<B: Body>(body: &mut Place<B>, cx: &mut Context<'_>) -> Piece {
    loop {
        let Some(mut pinned) = body.get() else { return Piece::End };
        let frame = match pinned.as_mut().poll_frame(cx) {
            Poll::Pending => return Piece::Pending,
            Poll::Ready(None) => return Piece::End,
            Poll::Ready(Some(Err(_))) => return Piece::Failed,
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        match frame.into_data() {
            Ok(mut data) => {
                let data = data.copy_to_bytes(data.remaining());
                if pinned.is_end_stream() {
                    return Piece::Last(data);
                }
                if !data.is_empty() {
                    return Piece::Data(data);
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return Piece::Trailers(trailers);
                }
            }
        }
    }
}
