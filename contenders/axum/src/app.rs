//! The application: a router as any user of axum writes it.

use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};
use tower_http::services::ServeDir;

/// The largest `size` of `GET /echo`, in bytes.
const ECHO_BYTES_MAX: u64 = 1 << 30;

const BYTES: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/octet-stream")];

static FILL: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// All routes; what is none of them is a file of `www`.
pub(crate) fn router(www: &Path) -> Router {
    Router::new()
        .route("/ping", get(ping))
        .route("/echo", get(fill).post(echo))
        .route("/events", get(events))
        .fallback_service(ServeDir::new(www))
}

async fn ping() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain")], "pong")
}

#[derive(Deserialize)]
struct Size {
    size: Option<u64>,
}

async fn fill(Query(Size { size }): Query<Size>) -> Response {
    let size = size.unwrap_or(64);
    if size > ECHO_BYTES_MAX {
        return (StatusCode::BAD_REQUEST, "size is too large\n").into_response();
    }
    match usize::try_from(size).ok().and_then(|size| FILL.get(..size)) {
        Some(whole) => (BYTES, Bytes::from_static(whole)).into_response(),
        None => (BYTES, [(CONTENT_LENGTH, size)], many(size)).into_response(),
    }
}

/// `size` times `x`, in pieces.
fn many(size: u64) -> Body {
    let pieces = std::iter::successors(Some(size), |left| left.checked_sub(FILL.len() as u64))
        .filter(|left| *left > 0)
        .map(|left| {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(FILL.len());
            Ok::<_, std::convert::Infallible>(Bytes::from_static(&FILL[..count]))
        });
    Body::from_stream(stream::iter(pieces))
}

#[derive(Deserialize)]
struct Events {
    n: u32,
    gap: u64,
    size: usize,
}

/// `n` events, `gap` milliseconds apart, of `size` bytes each.
async fn events(Query(Events { n, gap, size }): Query<Events>) -> impl IntoResponse {
    let (began, data) = (Instant::now(), "x".repeat(size));
    let events = stream::unfold(0, move |event| {
        let data = data.clone();
        async move {
            if event == n {
                return None;
            }
            sleep_until(began + Duration::from_millis(gap) * event).await;
            let sent = Event::default().id(event.to_string()).data(data);
            Some((Ok::<_, std::convert::Infallible>(sent), event + 1))
        }
    });
    Sse::new(events)
}

/// The body goes back as it comes; its length, if it is known, goes along with it.
async fn echo(request: Request) -> impl IntoResponse {
    (BYTES, request.into_body())
}
