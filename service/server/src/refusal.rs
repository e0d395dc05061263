//! Responses where no handler is, or where none is to be asked.

use bolide_semantics::{FieldName, Head, parse_content_length};
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};

use crate::Response;
use crate::request::split_query;
use crate::router::Found;

/// The response to what no handler takes.
#[cold]
pub(crate) fn refuse(refusal: &Found<'_>, head: &Head) -> Response {
    let (method, path) = (head.method(), split_query(head.path_and_query()).0);
    let with_allow = |status: StatusCode, allow: &HeaderValue| {
        Response::from(status).header(ALLOW, allow.clone())
    };
    match refusal {
        // RFC 9110 §9.3.7: a ping of the server as a whole.
        Found::Nothing if path == "*" => Response::new(StatusCode::NO_CONTENT),
        Found::Options(allow) => with_allow(StatusCode::NO_CONTENT, allow),
        // RFC 9110 §9.1: an unknown method is not implemented, rather than not allowed.
        Found::MethodNotAllowed(_) if !is_standard(method) => {
            Response::error(StatusCode::NOT_IMPLEMENTED)
        }
        Found::MethodNotAllowed(allow) => with_allow(StatusCode::METHOD_NOT_ALLOWED, allow),
        Found::Disguised => Response::error(StatusCode::BAD_REQUEST),
        Found::Nothing | Found::Handler(_) if !is_standard(method) => {
            Response::error(StatusCode::NOT_IMPLEMENTED)
        }
        Found::Nothing | Found::Handler(_) => Response::error(StatusCode::NOT_FOUND),
    }
}

/// Returns whether RFC 9110 §9.3 or RFC 5789 defines the method.
fn is_standard(method: &Method) -> bool {
    [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ]
    .contains(method)
}

/// Returns whether a request whose body follows may send it, and waits to be told so (RFC 9110 §10.1.1). `arrived_bytes` of the
/// body are there already.
#[inline]
pub(crate) fn admit(
    head: &Head,
    arrived_bytes: usize,
    body_bytes_max: u64,
) -> Result<bool, StatusCode> {
    let mut waits = false;
    if let Some(expectation) = head.get(FieldName::Expect) {
        waits = expectation.eq_ignore_ascii_case(b"100-continue");
        if !waits {
            return Err(StatusCode::EXPECTATION_FAILED);
        }
    }
    let length = head.get(FieldName::ContentLength).and_then(parse_content_length);
    if length.unwrap_or(arrived_bytes as u64) > body_bytes_max {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    Ok(waits)
}
