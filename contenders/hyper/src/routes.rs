//! Responses by request.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::body::Content;

/// The largest `size` of `GET /echo`, in bytes.
const ECHO_BYTES_MAX: u64 = 1 << 30;

fn response(status: StatusCode, kind: &'static str, body: Content) -> Response<Content> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn text(status: StatusCode, body: &'static str) -> Response<Content> {
    response(status, "text/plain", Content::Whole(Bytes::from_static(body.as_bytes())))
}

/// The `size` of the query: 64 if there is none, `None` if it makes no sense.
fn size(query: Option<&str>) -> Option<u64> {
    let mut pairs = query.unwrap_or_default().split('&');
    match pairs.find_map(|pair| pair.strip_prefix("size=")) {
        Some(size) => size.parse().ok().filter(|size| *size <= ECHO_BYTES_MAX),
        None => Some(64),
    }
}

/// Reads a body to its end and keeps nothing of it.
async fn discard(mut body: Incoming) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// The service.
pub(crate) async fn answer(request: Request<Incoming>) -> Result<Response<Content>, Infallible> {
    let bytes = |body| response(StatusCode::OK, "application/octet-stream", body);
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/ping") => text(StatusCode::OK, "pong"),
        (&Method::GET, "/echo") => match size(request.uri().query()) {
            Some(size) => bytes(Content::fill(size)),
            None => text(StatusCode::BAD_REQUEST, "size is no number, or too large\n"),
        },
        (&Method::POST, "/echo") => bytes(Content::Echo(request.into_body())),
        (&Method::GET, path) if path.starts_with("/bulk/") => match path[6..].parse() {
            Ok(size) => bytes(Content::Zeros(size)),
            Err(_) => text(StatusCode::BAD_REQUEST, "size is no number\n"),
        },
        (&Method::PUT, path) if path.starts_with("/bulk/") => {
            match discard(request.into_body()).await {
                Ok(()) => text(StatusCode::NO_CONTENT, ""),
                Err(_) => text(StatusCode::BAD_REQUEST, "the body broke off\n"),
            }
        }
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    })
}
