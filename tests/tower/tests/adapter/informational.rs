//! Responses ahead of the response.

use std::sync::Arc;

use axum::Router;
use axum::extract::Extension;
use axum::routing::get;
use bolide::tower::{Informational, InformationalError};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::start::{in_time, start};

const STYLE: HeaderValue = HeaderValue::from_static("</style.css>; rel=preload; as=style");

/// Hints, waits until it is released, hints again from another thread, and answers.
fn app(release: &Arc<Notify>) -> Router {
    let release = Arc::clone(release);
    let slow = async move |Extension(informational): Extension<Informational>| {
        informational.early_hints([STYLE]).unwrap();
        release.notified().await;
        let other = informational.clone();
        let sent = std::thread::spawn(move || other.send(StatusCode::PROCESSING, HeaderMap::new()));
        sent.join().unwrap().unwrap();
        tokio::task::yield_now().await;
        "response"
    };
    let fast = async |Extension(informational): Extension<Informational>| {
        informational.early_hints([STYLE]).unwrap();
        let refused = informational.send(StatusCode::OK, HeaderMap::new());
        assert_eq!(refused, Err(InformationalError::Status(StatusCode::OK)));
        "at once"
    };
    Router::new().route("/slow", get(slow)).route("/fast", get(fast))
}

/// Reads until what came ends so.
async fn read_to(socket: &mut TcpStream, end: &str) -> String {
    let mut received = Vec::new();
    while !received.ends_with(end.as_bytes()) {
        let count = in_time(socket.read_buf(&mut received)).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
    }
    String::from_utf8(received).unwrap()
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload; as=style\r\n\r\n";

#[tokio::test]
async fn hints_leave_while_the_handler_waits() {
    let release = Arc::new(Notify::new());
    let address = start(app(&release), |serve| serve.informational()).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(read_to(&mut socket, "\r\n\r\n").await, HINTS);
    release.notify_one();
    let rest = read_to(&mut socket, "response").await;
    assert!(rest.starts_with("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n"), "{rest}");
}

#[tokio::test]
async fn hints_of_a_handler_that_answers_at_once_come_first() {
    let address = start(app(&Arc::default()), |serve| serve.informational()).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        socket.write_all(b"GET /fast HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let all = read_to(&mut socket, "at once").await;
        assert!(all.starts_with(&format!("{HINTS}HTTP/1.1 200 OK\r\n")), "{all}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_hints_and_a_server_that_was_not_asked_offers_none() {
    let app = Router::new().route(
        "/",
        get(async |handle: Option<Extension<Informational>>| handle.is_some().to_string()),
    );
    let asked = start(app.clone(), |serve| serve.informational()).await;
    let not_asked = start(app, |serve| serve).await;
    for (address, version, offered) in
        [(asked, "1.0", "false"), (asked, "1.1", "true"), (not_asked, "1.1", "false")]
    {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!("GET / HTTP/{version}\r\nhost: a\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let all = read_to(&mut socket, offered).await;
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n"), "{all}");
    }
}

#[tokio::test]
async fn hints_arrive_over_http_2_and_a_late_one_is_told() {
    let (late, mut told) = tokio::sync::mpsc::unbounded_channel();
    let hint = async move |Extension(informational): Extension<Informational>| {
        informational.early_hints([STYLE]).unwrap();
        let late = late.clone();
        tokio::spawn(async move {
            // Until the response has begun.
            while informational.send(StatusCode::PROCESSING, HeaderMap::new()).is_ok() {
                tokio::task::yield_now().await;
            }
            late.send(informational.early_hints([])).unwrap();
        });
        tokio::task::yield_now().await;
        "response"
    };
    let address = start(Router::new().route("/", get(hint)), |serve| serve.informational()).await;
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = in_time(h2::client::handshake(socket)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("http://a/").body(()).unwrap();
    let (mut response, _) = sender.send_request(request, true).unwrap();
    let first = std::future::poll_fn(|cx| response.poll_informational(cx));
    let first = in_time(first).await.expect("a hint").unwrap();
    assert_eq!((first.status(), &first.headers()["link"]), (StatusCode::EARLY_HINTS, &STYLE));
    assert_eq!(in_time(response).await.unwrap().status(), StatusCode::OK);
    assert_eq!(in_time(told.recv()).await, Some(Err(InformationalError::Late)));
}
