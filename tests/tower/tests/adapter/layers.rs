//! tower-http's layers around the application.

use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::services::ServeDir;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use crate::pair::Pair;

async fn panics() -> &'static str {
    panic!("on purpose: a layer catches it")
}

fn layered() -> Router {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    Router::new()
        .route("/text", get(async || "compress me ".repeat(100)))
        .route("/slow", get(async || tokio::time::sleep(Duration::from_secs(60)).await))
        .route("/panics", get(panics))
        .route("/length", post(async |body: axum::body::Bytes| body.len().to_string()))
        .nest_service("/files", ServeDir::new(sources))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            Duration::from_millis(50),
        ))
        .layer(RequestBodyLimitLayer::new(1000))
        .layer(CatchPanicLayer::new())
        .layer(CompressionLayer::new())
        .layer(
            CorsLayer::new()
                .allow_origin(HeaderValue::from_static("https://a.example"))
                .allow_methods([Method::GET, Method::POST]),
        )
        .layer(TraceLayer::new_for_http())
}

#[tokio::test]
async fn compression_cors_and_files() {
    let pair = Pair::of(layered()).await;
    let response =
        pair.get("/text", "accept-encoding: gzip\r\norigin: https://a.example\r\n").await;
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.field("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(pair.get("/text", "").await.body.len(), 1200);
    let asked = "OPTIONS /text HTTP/1.1\r\nhost: a\r\norigin: https://a.example\r\n\
        access-control-request-method: POST\r\n\r\n";
    let response = pair.same_one(asked.as_bytes()).await;
    assert_eq!(response.field("access-control-allow-methods"), Some("GET,POST"));
    let file = pair.get("/files/lib.rs", "").await;
    assert!(file.text().starts_with("//! axum"));
    assert_eq!(pair.get("/files/lib.rs", "range: bytes=0-3\r\n").await.text(), "//! ");
    let since = file.field("last-modified").expect("a date").to_owned();
    let again = pair.get("/files/lib.rs", &format!("if-modified-since: {since}\r\n")).await;
    assert_eq!(again.status, 304);
    assert_eq!(pair.get("/files/none", "").await.status, 404);
    assert_eq!(pair.get("/files/../Cargo.toml", "").await.status, 404);
}

#[tokio::test]
async fn limits_timeouts_and_panics() {
    let pair = Pair::of(layered()).await;
    assert_eq!(pair.get("/slow", "").await.status, 408);
    assert_eq!(pair.get("/panics", "").await.status, 500);
    assert_eq!(pair.post("/length", "", &[1; 1000]).await.text(), "1000");
    assert_eq!(pair.post("/length", "", &[1; 1001]).await.status, 413);
    let chunked = b"POST /length HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(pair.same_one(chunked).await.text(), "3");
}
