//! Bodies that arrive together with their heads, and bodies that do not: services can't tell them apart.

use std::fmt::Write as _;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Uri};
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::start::{in_time, start};

async fn told(uri: Uri, fields: HeaderMap, body: Bytes) -> String {
    let mut text = format!("{uri} ");
    for (name, value) in &fields {
        write!(text, "{name}={} ", value.to_str().unwrap()).unwrap();
    }
    write!(text, "{} {}", body.len(), body.iter().map(|byte| u64::from(*byte)).sum::<u64>())
        .unwrap();
    text
}

#[tokio::test]
async fn a_body_is_the_same_however_it_comes() {
    let app = Router::new().route("/told", post(told)).route("/other", post(told));
    let address = start(app, |serve| serve.workers(1)).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    for (round, length) in
        [0, 1, 1000, 16_384, 16_385, 60_000].into_iter().cycle().take(30).enumerate()
    {
        let target = if round % 7 == 3 { "/other" } else { "/told" };
        let head = format!(
            "POST {target}?q HTTP/1.1\r\nhost: a\r\nx-a: {}\r\ncontent-length: {length}\r\n\r\n",
            round % 3
        );
        let body: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        if round % 2 == 0 {
            socket.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        } else {
            socket.write_all(head.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
            for piece in body.chunks(7000) {
                socket.write_all(piece).await.unwrap();
            }
        }
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        let expected =
            format!("{target}?q host=a x-a={} content-length={length} {length} {sum}", round % 3);
        let mut response = Vec::new();
        while !response.ends_with(expected.as_bytes()) {
            let mut block = [0; 4096];
            let count = in_time(socket.read(&mut block)).await.unwrap();
            assert!(count > 0, "the connection ended: {}", String::from_utf8_lossy(&response));
            response.extend_from_slice(&block[..count]);
            assert!(response.len() < 4096, "{expected}: {}", String::from_utf8_lossy(&response));
        }
    }
}
