//! A chat by WebSocket: what one says, all hear.
//!
//! Open `http://localhost:8080` in two windows.

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::{Html, Response};
use axum::routing::{any, get};
use tokio::sync::broadcast::{self, error::RecvError};

/// How many messages may wait for a slow listener before it misses some.
const WAITING_COUNT: usize = 100;

const PAGE: &str = r#"<!doctype html><title>Chat</title>
<form><input id=say autofocus></form><pre id=all></pre>
<script>
const socket = new WebSocket(location.origin.replace("http", "ws") + "/chat");
socket.onmessage = event => all.append(event.data + "\n");
document.forms[0].onsubmit = event => {
  event.preventDefault();
  socket.send(say.value);
  say.value = "";
};
</script>"#;

type Room = broadcast::Sender<String>;

async fn enter(State(room): State<Room>, upgrade: WebSocketUpgrade) -> Response {
    // Heard from here on: nothing is missed while the connection switches.
    let heard = room.subscribe();
    upgrade.on_upgrade(move |socket| talk(socket, room, heard))
}

async fn talk(mut socket: WebSocket, room: Room, mut heard: broadcast::Receiver<String>) {
    loop {
        tokio::select! {
            said = socket.recv() => match said {
                Some(Ok(Message::Text(text))) => {
                    // This listener is one itself, so there is always one.
                    let _ = room.send(text.to_string());
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            message = heard.recv() => match message {
                Ok(text) => {
                    if socket.send(Message::text(text)).await.is_err() {
                        return;
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let room = broadcast::Sender::new(WAITING_COUNT);
    let app = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/chat", any(enter))
        .with_state(room);
    let listener = bolide_examples::listen().await?;
    bolide::tower::serve(listener, app).await
}
