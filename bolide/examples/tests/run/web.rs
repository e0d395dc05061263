//! axum, bare handlers, events, chat and upload.

use futures_util::{SinkExt, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::program::Program;

async fn ask(program: &Program, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
    let socket = TcpStream::connect(&program.address).await.unwrap();
    let made = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
    let (mut sender, connection) = made.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

async fn text(program: &Program, method: &str, path: &str, body: &[u8]) -> String {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "a.example")
        .header("content-type", "multipart/form-data; boundary=B")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap();
    let response = ask(program, request).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn axum_says_hello_and_echoes() {
    let program = Program::start(env!("CARGO_BIN_EXE_axum"));
    assert_eq!(text(&program, "GET", "/hello/you", b"").await, "Hello, you\n");
    assert_eq!(text(&program, "GET", "/ping", b"").await, "pong");
    assert_eq!(text(&program, "POST", "/echo", b"back").await, "back");
}

#[tokio::test]
async fn bare_handlers_read_and_write_json() {
    let program = Program::start(env!("CARGO_BIN_EXE_bare"));
    assert_eq!(text(&program, "POST", "/sum", b"[1, 2, 3.5]").await, "6.5");
    let wrong = Request::post("/sum").header("host", "a.example");
    let response = ask(&program, wrong.body(Full::new(Bytes::from_static(b"[1,"))).unwrap()).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn events_tick() {
    let program = Program::start(env!("CARGO_BIN_EXE_events"));
    let request = Request::get("/time").header("host", "a.example").body(Full::default()).unwrap();
    let mut events = ask(&program, request).await.into_body();
    let mut seen = String::new();
    while seen.matches("event: tick\ndata: ").count() < 3 {
        let frame = events.frame().await.expect("it goes on").unwrap();
        seen.push_str(std::str::from_utf8(frame.data_ref().expect("data")).unwrap());
    }
}

#[tokio::test]
async fn a_chat_is_heard_by_all() {
    let program = Program::start(env!("CARGO_BIN_EXE_chat"));
    let url = format!("ws://{}/chat", program.address);
    let (mut ann, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    let (mut bob, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    for (number, text) in ["hello", "who is there?", "all of us"].into_iter().enumerate() {
        let speaker = if number % 2 == 0 { &mut ann } else { &mut bob };
        speaker.send(Message::text(text)).await.unwrap();
        assert_eq!(ann.next().await.unwrap().unwrap(), Message::text(text));
        assert_eq!(bob.next().await.unwrap().unwrap(), Message::text(text));
    }
    assert!(text(&program, "GET", "/", b"").await.contains("new WebSocket"));
}

#[tokio::test]
async fn an_upload_is_read_to_its_last_byte() {
    let program = Program::start(env!("CARGO_BIN_EXE_upload"));
    let file: Vec<u8> = (0..3_000_000_u32).map(|place| (place % 253) as u8).collect();
    let sum = file.iter().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
    let told = text(&program, "PUT", "/raw", &file).await;
    assert_eq!(told, format!("3000000 bytes, sum {sum:08x}\n"));
    let head = b"--B\r\ncontent-disposition: form-data; name=file; filename=f\r\n\r\n";
    let form = [&head[..], &file, b"\r\n--B--\r\n"].concat();
    let told = text(&program, "POST", "/form", &form).await;
    assert_eq!(told, format!("f: 3000000 bytes, sum {sum:08x}\n"));
}
