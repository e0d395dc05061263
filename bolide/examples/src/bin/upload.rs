//! File uploads of any size: read piece by piece, so that memory holds one piece of each.
//!
//! `curl -F file=@README.md localhost:8080/form` and `curl -T README.md localhost:8080/raw`

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::{get, put};
use futures_util::StreamExt;

const PAGE: &str = "<!doctype html><title>Upload</title>
<form action=/form method=post enctype=multipart/form-data>
<input type=file name=file multiple><button>Send</button></form>";

/// Facts about a file: its length and a sum that depends on every byte.
#[derive(Default)]
struct Seen {
    bytes: u64,
    sum: u32,
}

impl Seen {
    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        for byte in piece {
            self.sum = self.sum.rotate_left(5) ^ u32::from(*byte);
        }
    }
}

async fn form(mut parts: Multipart) -> Result<String, StatusCode> {
    let mut told = String::new();
    while let Some(mut field) = parts.next_field().await.map_err(|_| StatusCode::BAD_REQUEST)? {
        let name = field.file_name().unwrap_or("no file").to_owned();
        let mut seen = Seen::default();
        while let Some(piece) = field.chunk().await.map_err(|_| StatusCode::BAD_REQUEST)? {
            seen.add(&piece);
        }
        told.push_str(&format!("{name}: {} bytes, sum {:08x}\n", seen.bytes, seen.sum));
    }
    Ok(told)
}

async fn raw(body: Body) -> Result<String, StatusCode> {
    let mut seen = Seen::default();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        seen.add(&piece.map_err(|_| StatusCode::BAD_REQUEST)?);
    }
    Ok(format!("{} bytes, sum {:08x}\n", seen.bytes, seen.sum))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/form", axum::routing::post(form))
        .route("/raw", put(raw))
        .layer(DefaultBodyLimit::disable());
    let listener = bolide_examples::listen().await?;
    bolide::tower::serve(listener, app).await
}
