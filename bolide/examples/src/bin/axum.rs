//! An axum application: routes, extractors, a request body that goes back.
//!
//! `curl localhost:8080/hello/you`

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::routing::{get, post};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(async || "Hello\n"))
        .route("/hello/{name}", get(async |Path(name): Path<String>| format!("Hello, {name}\n")))
        .route("/ping", get(async || "pong"))
        .route("/echo", post(async |body: Bytes| body));
    let listener = bolide_examples::listen().await?;
    bolide::tower::serve(listener, app).await
}
