//! A side that does not take what is sent holds the other one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::start::{get as request, http2, in_time, start};

const PIECE: usize = 64 * 1024;
const PIECES: usize = 1024;
/// Bytes that the buffers of two kernels and one client may hold.
const HELD: usize = 32 * 1024 * 1024;

/// Waits until a count stands still.
async fn at_rest(count: &AtomicUsize) -> usize {
    let mut last = usize::MAX;
    loop {
        let now = count.load(Ordering::SeqCst);
        if now == last && now > 0 {
            return now;
        }
        last = now;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

fn fills() -> (Router, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let fill = async move || {
        let counter = Arc::clone(&counter);
        Body::from_stream(stream::iter((0..PIECES).map(move |_| {
            counter.fetch_add(PIECE, Ordering::SeqCst);
            Ok::<_, Infallible>(Bytes::from(vec![b'f'; PIECE]))
        })))
    };
    (Router::new().route("/fill", get(fill)), made)
}

#[tokio::test]
async fn a_slow_reader_holds_the_handler() {
    let (app, made) = fills();
    let address = start(app, |serve| serve).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /fill HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let held = at_rest(&made).await;
    assert!(held < HELD, "{held} bytes were made for a client that reads none");
    let mut all = Vec::new();
    in_time(socket.read_to_end(&mut all)).await.unwrap();
    assert!(all.len() > PIECES * PIECE);
    assert_eq!(made.load(Ordering::SeqCst), PIECES * PIECE);
}

#[tokio::test]
async fn a_slow_reader_of_one_stream_holds_that_stream() {
    let (app, made) = fills();
    let app = app.route("/small", get(async || "small"));
    let address = start(app, |serve| serve).await;
    let mut client = http2(address).await;
    let mut large = in_time(client.send_request(request("/fill"))).await.unwrap().into_body();
    let held = at_rest(&made).await;
    assert!(held < HELD, "{held} bytes were made for a stream that is not read");
    let small = in_time(client.send_request(request("/small"))).await.unwrap();
    assert_eq!(small.into_body().collect().await.unwrap().to_bytes(), "small");
    let mut received = 0;
    while let Some(frame) = in_time(large.frame()).await {
        received += frame.unwrap().data_ref().map_or(0, Bytes::len);
    }
    assert_eq!(received, PIECES * PIECE);
}

/// A server whose handler begins to read when it is released, on its worker or in a task.
async fn reads_late(release: &Arc<Notify>, in_task: bool) -> SocketAddr {
    let release = Arc::clone(release);
    let sum = async move |request: Request| {
        release.notified().await;
        let count = async move {
            let mut body = request.into_body();
            let mut bytes = 0;
            while let Some(Ok(frame)) = body.frame().await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
            }
            bytes.to_string()
        };
        if in_task { tokio::spawn(count).await.unwrap() } else { count.await }
    };
    let app = Router::new().route("/sum", post(sum)).layer(DefaultBodyLimit::disable());
    start(app, |serve| serve).await
}

#[tokio::test]
async fn a_handler_that_does_not_read_holds_the_client() {
    for in_task in [false, true] {
        let release = Arc::new(Notify::new());
        let address = reads_late(&release, in_task).await;
        let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let total = PIECES * PIECE;
        let sending = tokio::spawn(async move {
            let head = format!("POST /sum HTTP/1.1\r\nhost: a\r\ncontent-length: {total}\r\n\r\n");
            writer.write_all(head.as_bytes()).await.unwrap();
            for _ in 0..PIECES {
                writer.write_all(&[1; PIECE]).await.unwrap();
                counter.fetch_add(PIECE, Ordering::SeqCst);
            }
            writer
        });
        let held = at_rest(&written).await;
        assert!(held < HELD, "{held} bytes were taken for a handler that reads none");
        release.notify_one();
        let _writer = in_time(sending).await.unwrap();
        let mut response = Vec::new();
        while !response.ends_with(total.to_string().as_bytes()) {
            let count = in_time(reader.read_buf(&mut response)).await.unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&response));
        }
    }
}
