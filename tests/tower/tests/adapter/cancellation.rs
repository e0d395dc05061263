//! Clients that go, and handlers that fail.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bolide::tower::Disconnect;
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::start::{get as request, http1, http2, in_time, read, start};

/// Says when it is dropped.
struct Watched(mpsc::UnboundedSender<&'static str>);

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// Handlers that wait for ever, or until they are released; and what becomes of them.
fn waiting() -> (Router, mpsc::UnboundedReceiver<&'static str>, Arc<Notify>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let (told, released) = (sender.clone(), Arc::clone(&release));
    let wait = async move || {
        let watched = Watched(told.clone());
        let _ = told.send("begun");
        released.notified().await;
        let _ = watched.0.send("completed");
        "released"
    };
    let events = async move || {
        let watched = Watched(sender.clone());
        Body::from_stream(stream::unfold((watched, false), |(watched, told)| async move {
            if told {
                std::future::pending::<()>().await;
            }
            Some((Ok::<_, Infallible>("begun"), (watched, true)))
        }))
    };
    (Router::new().route("/wait", get(wait)).route("/events", get(events)), receiver, release)
}

#[tokio::test]
async fn a_client_that_closes_its_connection_drops_the_future() {
    let (app, mut told, _) = waiting();
    let address = start(app, |serve| serve).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(in_time(told.recv()).await, Some("begun"));
    drop(socket);
    assert_eq!(in_time(told.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn a_client_that_closes_drops_the_body_that_is_sent() {
    let (app, mut told, _) = waiting();
    let address = start(app, |serve| serve).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"begun\r\n") {
        in_time(socket.read_buf(&mut received)).await.unwrap();
    }
    drop(socket);
    assert_eq!(in_time(told.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn a_stream_that_is_reset_drops_the_future_and_no_other() {
    let (app, mut told, release) = waiting();
    let address = start(app, |serve| serve).await;
    let mut client = http2(address).await;
    let first = tokio::spawn(client.send_request(request("/wait")));
    assert_eq!(in_time(told.recv()).await, Some("begun"));
    let second = tokio::spawn(client.send_request(request("/wait")));
    assert_eq!(in_time(told.recv()).await, Some("begun"));
    first.abort();
    assert_eq!(in_time(told.recv()).await, Some("dropped"));
    release.notify_waiters();
    let response = in_time(second).await.unwrap().unwrap();
    assert_eq!(read(response).await, (200, "released".to_owned()));
}

#[tokio::test]
async fn a_future_may_be_completed_without_its_client() {
    let (app, mut told, release) = waiting();
    let address = start(app, |serve| serve.on_disconnect(Disconnect::Finish)).await;
    let mut client = http2(address).await;
    let asked = tokio::spawn(client.send_request(request("/wait")));
    assert_eq!(in_time(told.recv()).await, Some("begun"));
    asked.abort();
    // The server has taken the reset when it answers what was sent after it.
    let fresh = in_time(client.send_request(request("/nothing"))).await.unwrap();
    assert_eq!(fresh.status(), 404);
    release.notify_one();
    assert_eq!(in_time(told.recv()).await, Some("completed"));
    assert_eq!(in_time(told.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn a_panic_is_a_500_on_its_exchange_and_nothing_more() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let at_once = async || -> &'static str { panic!("on purpose: at once") };
    let later = async || -> &'static str {
        tokio::task::yield_now().await;
        panic!("on purpose: later")
    };
    let fine = async move || counted.fetch_add(1, Ordering::SeqCst).to_string();
    let app = Router::new()
        .route("/at-once", get(at_once))
        .route("/later", get(later))
        .route("/fine", get(fine));
    let address = start(app, |serve| serve.workers(1)).await;
    let mut client = http2(address).await;
    for round in 0..3 {
        for path in ["/at-once", "/later"] {
            let response = in_time(client.send_request(request(path))).await.unwrap();
            assert_eq!(response.status(), 500, "{path}");
        }
        let response = in_time(client.send_request(request("/fine"))).await.unwrap();
        assert_eq!(read(response).await, (200, round.to_string()));
    }
}

#[tokio::test]
async fn a_service_that_returns_an_error_is_a_500() {
    let fails = tower::service_fn(async |_: http::Request<bolide::tower::Body>| {
        Err::<http::Response<bolide::tower::Body>, _>(std::io::Error::other("on purpose"))
    });
    let address = start(fails, |serve| serve).await;
    let mut client = http1(address).await;
    for _ in 0..2 {
        let response = in_time(client.send_request(request("/"))).await.unwrap();
        assert_eq!(response.status(), 500);
        read(response).await;
    }
}
