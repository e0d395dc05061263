//! WebSocket by axum's own extractor, and other tunnels.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message as Sent;

use crate::pair::{Client, Pair};

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let is_data = matches!(message, Message::Text(_) | Message::Binary(_));
        if matches!(&message, Message::Text(text) if text.as_str() == "bye")
            || (is_data && socket.send(message).await.is_err())
        {
            break;
        }
    }
}

/// Takes the tunnel by hyper's own means, and turns every byte.
async fn raw(mut request: Request) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let mut io = TokioIo::new(upgraded);
        let mut block = [0; 1000];
        while let Ok(count) = io.read(&mut block).await {
            if count == 0 {
                let _ = io.write_all(b"the end").await;
                break;
            }
            block[..count].iter_mut().for_each(|byte| *byte = !*byte);
            if io.write_all(&block[..count]).await.is_err() {
                break;
            }
        }
    });
    let fields = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "raw")];
    (StatusCode::SWITCHING_PROTOCOLS, fields).into_response()
}

fn app() -> Router {
    let switch = async |upgrade: WebSocketUpgrade| upgrade.protocols(["chat"]).on_upgrade(echo);
    Router::new()
        .route("/ws", any(switch))
        .route("/raw", get(raw))
        .route("/plain", get(async || "no upgrade here"))
}

async fn chat(address: SocketAddr) {
    let (mut socket, response) =
        tokio_tungstenite::connect_async(format!("ws://{address}/ws")).await.expect("a socket");
    assert_eq!(response.status(), 101);
    for length in [0, 1, 125, 126, 65_536, 300_000] {
        let text = "x".repeat(length);
        socket.send(Sent::text(text.clone())).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Sent::text(text));
    }
    socket.send(Sent::Ping(vec![1, 2].into())).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Sent::Pong(vec![1, 2].into()));
    socket.send(Sent::text("bye")).await.unwrap();
    assert!(!matches!(socket.next().await, Some(Ok(Sent::Text(_)))));
}

#[tokio::test]
async fn axums_websockets_work_unmodified() {
    let pair = Pair::of(app()).await;
    chat(pair.hyper).await;
    chat(pair.bolide).await;
    let all: Vec<_> = (0..50).map(|_| tokio::spawn(chat(pair.bolide))).collect();
    for one in all {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_upgrade_is_refused_alike() {
    let pair = Pair::of(app()).await;
    let whole = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(pair.get("/ws", "").await.status, 400);
    assert_eq!(pair.get("/ws", &whole.replace("13", "12")).await.status, 400);
    assert_eq!(pair.get("/ws", &whole.replace("connection: upgrade\r\n", "")).await.status, 400);
    assert_eq!(pair.get("/plain", whole).await.text(), "no upgrade here");
    let response = pair.get("/ws", &format!("{whole}sec-websocket-protocol: chat\r\n")).await;
    assert_eq!(response.status, 101);
    assert_eq!(response.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(response.field("sec-websocket-protocol"), Some("chat"));
}

#[tokio::test]
async fn a_raw_tunnel_carries_what_came_early_and_ends_by_halves() {
    let pair = Pair::of(app()).await;
    for address in [pair.hyper, pair.bolide] {
        let mut client = Client::connect(address).await;
        client
            .send(
                b"GET /raw HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\nearly",
            )
            .await;
        assert_eq!(client.answer(false).await.expect("a response").status, 101, "{address}");
        let turned: Vec<u8> = b"early".iter().map(|byte| !byte).collect();
        assert_eq!(client.until(&turned).await, Some(turned), "{address}");
        client.socket.shutdown().await.unwrap();
        assert_eq!(client.until(b"the end").await.as_deref(), Some(&b"the end"[..]), "{address}");
        assert_eq!(client.until(b"more").await, None, "{address}");
    }
}
