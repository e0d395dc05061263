//! RFC 9110 §15: what a handler may return in place of a response.

use bytes::Bytes;
use http::StatusCode;

use super::{Body, Response, TEXT};

impl From<&'static str> for Response {
    #[inline]
    fn from(body: &'static str) -> Self {
        Self::of_lines(&TEXT, Body::own(Bytes::from_static(body.as_bytes())))
    }
}

impl From<String> for Response {
    fn from(body: String) -> Self {
        Self::of_lines(&TEXT, Body::own(body.into()))
    }
}

impl From<Bytes> for Response {
    fn from(body: Bytes) -> Self {
        Self::bytes(body)
    }
}

impl From<StatusCode> for Response {
    fn from(status: StatusCode) -> Self {
        if status.is_client_error() || status.is_server_error() {
            Self::error(status)
        } else {
            Self::new(status)
        }
    }
}

impl From<Vec<u8>> for Response {
    fn from(body: Vec<u8>) -> Self {
        Self::bytes(body)
    }
}

/// The response with another status.
impl<R: Into<Self>> From<(StatusCode, R)> for Response {
    fn from((status, response): (StatusCode, R)) -> Self {
        response.into().with_status(status)
    }
}

/// Makes the response of an error.
impl<R: Into<Self>, E: Into<Self>> From<Result<R, E>> for Response {
    fn from(result: Result<R, E>) -> Self {
        match result {
            Ok(response) => response.into(),
            Err(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_a_response() {
        assert_eq!(Response::from("pong").status(), StatusCode::OK);
        assert!(matches!(Response::from(StatusCode::NO_CONTENT).body, Body::Empty));
        let page = Response::from(StatusCode::NOT_FOUND);
        assert!(matches!(page.body, Body::Own(ref text) if text == "404 Not Found\n"));
        assert!(matches!(Response::text("").body, Body::Empty));
    }

    #[test]
    fn bytes_statuses_and_results_are_responses() {
        let bytes = Response::from(vec![7]);
        let (name, value) = bytes.headers().next().unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("content-type", &b"application/octet-stream"[..])
        );
        let made = Response::from((StatusCode::CREATED, "made"));
        assert!(matches!(made.body, Body::Own(ref text) if text == "made"));
        assert_eq!(made.status(), StatusCode::CREATED);
        let found = |is_there: bool| if is_there { Ok("here") } else { Err(StatusCode::NOT_FOUND) };
        assert_eq!(Response::from(found(true)).status(), StatusCode::OK);
        assert_eq!(Response::from(found(false)).status(), StatusCode::NOT_FOUND);
    }
}
