//! The application, and both servers of it.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;

use crate::content::are_at;

/// Takes the parts piece by piece, and says of each its name, its length and whether its content is right.
async fn upload(mut parts: Multipart) -> Result<String, StatusCode> {
    let mut told = String::new();
    while let Some(mut field) = parts.next_field().await.map_err(|_| StatusCode::BAD_REQUEST)? {
        let (mut length, mut is_right) = (0, true);
        while let Some(piece) = field.chunk().await.map_err(|_| StatusCode::BAD_REQUEST)? {
            is_right &= are_at(length, &piece);
            length += piece.len() as u64;
        }
        told.push_str(&format!("{} {:?} ", field.name().unwrap_or("?"), field.file_name()));
        told.push_str(&format!("{length} {is_right};"));
    }
    Ok(told)
}

/// The addresses of the application behind hyper, by `axum::serve`, and behind Bolide. They end with the runtime.
pub(crate) async fn start() -> [(&'static str, SocketAddr); 2] {
    let app = Router::new().route("/upload", post(upload).layer(DefaultBodyLimit::disable()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hyper = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app.clone()).into_future());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let bolide = listener.local_addr().unwrap();
    tokio::spawn(bolide::tower::serve(listener, app).workers(1).into_future());
    [("hyper", hyper), ("Bolide", bolide)]
}
