//! From `http::Response` to the engine's response.

use std::task::{Context, Poll};

use bolide_server::{Bytes, HeaderMap, Reply, Response, StatusCode};
use bytes::Buf;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http_body::Body;
use tower_service::Service;

use crate::body::Body as RequestBody;
use crate::spare::Place;
use crate::worker::Worker;

/// After a first piece of at most so many bytes the next one is asked for before that is sent: it may be the
/// last.
const AHEAD_BYTES_MAX: usize = 16 * 1024;

/// A response of a service.
pub(crate) enum Translated<B> {
    /// All of it: [`Reply::Now`].
    Whole(Reply),
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
    /// Piece of the body that was read already.
    pub(crate) front: Piece,
    /// Piece that was read after that.
    pub(crate) second: Option<Box<Piece>>,
}

impl<B> Stream<B> {
    /// The memory of what was read of the body and not given to the connection, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let second = self.second.as_deref().map_or(0, Piece::held_bytes);
        self.front.held_bytes() + second
    }
}

/// Result of polling a body.
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

impl Piece {
    fn held_bytes(&self) -> usize {
        if let Self::Data(data) | Self::Last(data) = self { data.len() } else { 0 }
    }
}

/// How the request bears on its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) is_head: bool,
    pub(crate) is_connect: bool,
    /// The service was offered a tunnel.
    pub(crate) has_offer: bool,
}

/// Translates what a service returned: `None` when it is all in `whole` then.
#[inline]
pub(crate) fn translate<S, B>(
    result: Result<http::Response<B>, S::Error>,
    asked: Asked,
    cx: &mut Context<'_>,
    worker: &Worker<S, B>,
    whole: &mut Reply,
) -> Option<Translated<B>>
where
    S: Service<http::Request<RequestBody>>,
    B: Body,
{
    let Ok(response) = result else {
        *whole = Response::error(StatusCode::INTERNAL_SERVER_ERROR).into();
        return None;
    };
    let (Parts { status, headers: fields, .. }, body) = response.into_parts();
    let switches =
        status == StatusCode::SWITCHING_PROTOCOLS || (asked.is_connect && status.is_success());
    if switches && asked.has_offer {
        return Some(Translated::Switch(Response::new(status).fields(fields)));
    }
    if status.is_informational() {
        // No request has such a response as its last one.
        *whole = Response::error(StatusCode::INTERNAL_SERVER_ERROR).into();
        return None;
    }
    let has_no_body = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    let length = body.size_hint().exact();
    if has_no_body || asked.is_head {
        let length = if has_no_body { None } else { length };
        *whole = bodiless(status, fields, length).into();
        return None;
    }
    if body.is_end_stream() {
        *whole = head(worker, asked, (status, fields), Some(0), Bytes::new()).into();
        return None;
    }
    let mut place = worker.bodies.take().unwrap_or_else(Place::new);
    place.put(body);
    let (front, second) = match next(&mut place, cx) {
        Piece::Last(data) => {
            let length = Some(data.len() as u64);
            *whole = head(worker, asked, (status, fields), length, data).into();
            worker.bodies.give(place.emptied());
            return None;
        }
        Piece::End => {
            *whole = head(worker, asked, (status, fields), Some(0), Bytes::new()).into();
            worker.bodies.give(place.emptied());
            return None;
        }
        Piece::Data(data) if data.len() <= AHEAD_BYTES_MAX => match next(&mut place, cx) {
            // A response of gRPC: one message and the status.
            Piece::Trailers(trailers) => {
                let head = head(worker, asked, (status, fields), length, data);
                *whole = head.trailers(length, trailers).into();
                worker.bodies.give(place.emptied());
                return None;
            }
            Piece::Pending => (Piece::Data(data), None),
            second => (Piece::Data(data), Some(Box::new(second))),
        },
        front => (front, None),
    };
    let head = head(worker, asked, (status, fields), length, Bytes::new());
    Some(Translated::Stream(Stream { head, length, body: place, front, second }))
}

/// A response with a body, or what has come of it, of which the engine will say the length as it is `announced`.
#[inline]
fn head<S, B>(
    worker: &Worker<S, B>,
    asked: Asked,
    (status, fields): (StatusCode, HeaderMap),
    announced: Option<u64>,
    body: Bytes,
) -> Response
where
    S: Service<http::Request<RequestBody>>,
{
    // What follows CONNECT has no length.
    let announced = announced.filter(|_| !asked.is_connect);
    match worker.heads.borrow_mut().find(&fields, announced) {
        Some(known) => Response::of_fields(status, known, body),
        None => Response::new(status).fields(fields).body(body),
    }
}

/// A response that has no body; `length` is that of the one that a GET would have got, where it is known.
fn bodiless(status: StatusCode, mut fields: HeaderMap, length: Option<u64>) -> Response {
    let mut head = Response::new(status);
    if let Some(length) = length.filter(|length| *length > 0)
        && !fields.contains_key(CONTENT_LENGTH)
    {
        head = head.header(CONTENT_LENGTH, length);
    }
    let has_no_body = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    if has_no_body && fields.get(CONTENT_LENGTH).is_some_and(|length| length == "0") {
        // Frameworks measure the body that they send; RFC 9110 §8.6 means that of a 200.
        fields.remove(CONTENT_LENGTH);
    }
    head.fields(fields)
}

/// The next piece of a body. An empty one is passed over.
#[inline]
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
