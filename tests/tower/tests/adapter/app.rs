//! The application that is compared.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{
    ConnectInfo, DefaultBodyLimit, Form, FromRequestParts, Json, Multipart, Path, Query, Request,
    State,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get, post};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Person {
    name: String,
    age: u8,
}

/// Key that the extractor of a test refuses.
struct Key(String);

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let key = parts.headers.get("x-key").and_then(|key| key.to_str().ok());
        key.map(|key| Self(key.to_owned())).ok_or((StatusCode::UNAUTHORIZED, "no key"))
    }
}

/// Notes its name on the way in and on the way out.
async fn note(name: &'static str, mut request: Request, next: Next) -> Response {
    let before = request.headers().get("x-order").map_or("", |order| order.to_str().unwrap());
    let order = HeaderValue::from_str(&format!("{before}{name}")).unwrap();
    request.headers_mut().insert("x-order", order);
    let mut response = next.run(request).await;
    response.headers_mut().append("x-order", HeaderValue::from_static(name));
    response
}

async fn show(request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mut fields: Vec<_> =
        parts.headers.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    fields.sort();
    format!("{} {} {:?} {fields:?} {}", parts.method, parts.uri, parts.version, body.len())
}

async fn upload(mut parts: Multipart) -> Result<String, StatusCode> {
    let mut told = String::new();
    while let Some(field) = parts.next_field().await.map_err(|_| StatusCode::BAD_REQUEST)? {
        let name = field.name().unwrap_or("?").to_owned();
        let bytes = field.bytes().await.map_err(|_| StatusCode::BAD_REQUEST)?;
        told.push_str(&format!("{name}: {} ", bytes.len()));
    }
    Ok(told)
}

async fn events() -> Sse<impl futures_util::Stream<Item = Result<Event, Infallible>>> {
    let events = stream::iter(0..3).then(|number| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(Event::default().id(number.to_string()).data(format!("event {number}")))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

async fn pieces(Path(count): Path<usize>) -> Body {
    Body::from_stream(stream::iter(0..count).then(|number| async move {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(format!("piece {number};"))
    }))
}

async fn breaks_off() -> Body {
    let pieces = [Ok("a beginning"), Err("an error")];
    Body::from_stream(stream::iter(pieces).then(|piece| async move {
        if piece.is_err() {
            // The beginning has left by then.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        piece
    }))
}

fn extractors() -> Router<&'static str> {
    Router::new()
        .route(
            "/path/{name}/{number}",
            get(async |Path((name, number)): Path<(String, u32)>| format!("{name} {number}")),
        )
        .route("/query", get(async |Query(person): Query<Person>| person.name))
        .route(
            "/json",
            post(async |Json(person): Json<Person>| Json(Person { age: person.age + 1, ..person })),
        )
        .route("/form", post(async |Form(person): Form<Person>| format!("{person:?}")))
        .route("/text", post(async |text: String| text))
        .route("/bytes", post(async |bytes: Bytes| bytes))
        .route("/key", get(async |Key(key): Key| key))
        .route("/state", get(async |State(state): State<&'static str>| state))
        .route("/headers", get(async |headers: HeaderMap| format!("{:?}", headers.get("x-a"))))
        .route(
            "/peer",
            get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string()),
        )
        .route("/upload", post(upload).layer(DefaultBodyLimit::disable()))
}

fn streams() -> Router<&'static str> {
    Router::new()
        .route("/events", get(events))
        .route("/pieces/{count}", get(pieces))
        .route("/breaks", get(breaks_off))
        .route("/back", post(async |request: Request| Response::new(request.into_body())))
        .route("/ignore", post(async || "not read"))
        .route(
            "/wait",
            get(async || {
                tokio::time::sleep(Duration::from_millis(20)).await;
                "waited"
            }),
        )
        .route("/spawned", get(async || tokio::spawn(async { "from a task" }).await.unwrap()))
        .route(
            "/blocking",
            get(async || tokio::task::spawn_blocking(|| "from a thread").await.unwrap()),
        )
}

/// Routes of every kind.
pub(crate) fn app() -> Router {
    let inner = Router::new()
        .route("/", get(async || "inner root"))
        .route("/deep/{name}", get(async |Path(name): Path<String>| name))
        .fallback(async || (StatusCode::NOT_FOUND, "inner fallback"));
    let ordered = Router::new()
        .route(
            "/order",
            get(async |headers: HeaderMap| headers["x-order"].clone().to_str().unwrap().to_owned()),
        )
        .layer(from_fn(async |request, next| note("c", request, next).await))
        .layer(from_fn(async |request, next| note("b", request, next).await))
        .layer(from_fn(async |request, next| note("a", request, next).await));
    Router::new()
        .route("/", get(async || "root"))
        .route("/show", any(show))
        .route("/empty", get(async || ()))
        .route("/no-content", get(async || StatusCode::NO_CONTENT))
        .route("/not-modified", get(async || (StatusCode::NOT_MODIFIED, [(header::ETAG, "\"a\"")])))
        .route("/away", get(async || Redirect::temporary("/elsewhere")))
        .route(
            "/twice",
            get(async || {
                let mut response = "twice".into_response();
                response.headers_mut().append(header::SET_COOKIE, HeaderValue::from_static("a=1"));
                response.headers_mut().append(header::SET_COOKIE, HeaderValue::from_static("b=2"));
                response
            }),
        )
        .route("/close", get(async || ([(header::CONNECTION, "close")], "the last")))
        .route("/large", get(async || vec![b'x'; 3 << 20]))
        .nest("/inner", inner)
        .merge(ordered)
        .merge(extractors())
        .merge(streams())
        .fallback(async |request: Request| (StatusCode::NOT_FOUND, format!("no {}", request.uri())))
        .with_state("the state")
}
