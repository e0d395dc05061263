//! The same over HTTP/2 in cleartext.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app;
use crate::pair::Pair;

async fn connect<B>(address: SocketAddr) -> SendRequest<B>
where
    B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let socket = TcpStream::connect(address).await.unwrap();
    let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
    let (sender, connection) = made.await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Status, fields but for the date and the length, and body.
async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut sender = connect(address).await;
    let request = http::Request::builder()
        .method(method)
        .uri(format!("http://a.example{path}"))
        .header("x-a", "1")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let mut fields: Vec<_> = response
        .headers()
        .iter()
        .filter(|(name, _)| *name != "date" && *name != "content-length")
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    fields.sort();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    format!("{status} {fields:?} {:?}", String::from_utf8_lossy(&body))
}

#[tokio::test]
async fn responses_are_the_same_over_http2() {
    let pair = Pair::of(app::app()).await;
    for (method, path, body) in [
        ("GET", "/", ""),
        ("HEAD", "/", ""),
        ("GET", "/show?a=b", ""),
        ("POST", "/show", "body"),
        ("GET", "/nothing", ""),
        ("GET", "/events", ""),
        ("GET", "/pieces/20", ""),
        ("GET", "/wait", ""),
        ("GET", "/empty", ""),
        ("GET", "/no-content", ""),
        ("GET", "/twice", ""),
        ("POST", "/text", "a text"),
        ("POST", "/back", "comes back"),
        ("POST", "/ignore", "not read"),
        ("DELETE", "/", ""),
    ] {
        let hyper = ask(pair.hyper, method, path, body).await;
        // Each worker remembers what has come twice.
        for times in 1..6 {
            let bolide = ask(pair.bolide, method, path, body).await;
            assert_eq!(bolide, hyper, "{method} {path}, time {times}");
        }
    }
}

/// Sends every frame back, trailers and all.
async fn frames(request: Request) -> Response {
    let body = request.into_body();
    Response::new(axum::body::Body::new(body))
}

#[tokio::test]
async fn trailers_go_both_ways() {
    let pair = Pair::of(Router::new().route("/frames", any(frames))).await;
    for address in [pair.hyper, pair.bolide] {
        let mut sender = connect(address).await;
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        let frames = [Ok(Frame::data(Bytes::from("data"))), Ok(Frame::trailers(trailers.clone()))];
        let frames = frames as [Result<_, std::convert::Infallible>; 2];
        let body = StreamBody::new(futures_util::stream::iter(frames));
        let request = http::Request::post("http://a.example/frames").body(body).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers), "{address}");
        assert_eq!(collected.to_bytes(), "data");
    }
}

#[tokio::test]
async fn both_directions_of_one_exchange_are_open_at_once() {
    let pair = Pair::of(Router::new().route("/frames", any(frames))).await;
    for address in [pair.hyper, pair.bolide] {
        let mut sender = connect(address).await;
        let (mut input, body) =
            http_body_util::channel::Channel::<Bytes, std::convert::Infallible>::new(1);
        let request = http::Request::post("http://a.example/frames").body(body).unwrap();
        let mut response = sender.send_request(request).await.unwrap().into_body();
        for number in 0..100 {
            let piece = Bytes::from(format!("piece {number}"));
            input.send_data(piece.clone()).await.unwrap();
            let frame = response.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), piece, "{address}");
        }
        drop(input);
        let rest = response.collect().await.unwrap();
        assert_eq!(rest.to_bytes(), "", "{address}");
    }
}

#[tokio::test]
async fn websockets_open_by_extended_connect() {
    let switch = async |upgrade: WebSocketUpgrade| {
        upgrade.on_upgrade(async |mut socket| {
            socket.send(Message::text("over http2")).await.unwrap();
        })
    };
    let socket = TcpStream::connect(Pair::of(Router::new().route("/ws", any(switch))).await.bolide);
    let made = hyper::client::conn::http2::handshake(
        TokioExecutor::new(),
        TokioIo::new(socket.await.unwrap()),
    );
    let (mut sender, connection) = made.await.unwrap();
    tokio::spawn(connection);
    // The server's settings, which allow it, come with its first response.
    let first = http::Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    sender.send_request(first).await.unwrap();
    let request = http::Request::connect("http://a.example/ws")
        .extension(hyper::ext::Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(Empty::new())
        .unwrap();
    let mut response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    let mut frame = [0; 12];
    io.read_exact(&mut frame).await.unwrap();
    assert_eq!(&frame, b"\x81\x0aover http2");
    io.shutdown().await.unwrap();
}
