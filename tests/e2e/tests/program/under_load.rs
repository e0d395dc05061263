//! SIGTERM while clients ask in loops: what was begun comes to its end, and what wasn't may be sent
//! again elsewhere without harm.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bolide_launcher::Server;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

const CONNECTIONS: usize = 5;
/// On each connection.
const LOOPS: usize = 10;
/// How long requests are waited for once the server has ended, and with it all connections: in one of a thousand runs hyper
/// leaves those of one connection waiting forever (its users know that: reqwest's issue 1323).
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(5);
/// After so many responses on all connections the signal comes.
const RESPONSES: u32 = 2000;
const SIZE: usize = 20_000;

#[test]
fn loops_over_h2_end_well() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let server = Server::start_both();
    let authority = Server::authority(server.http()).to_owned();
    let responses = Arc::new(AtomicU32::new(0));
    runtime.block_on(async {
        let mut loops = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = tokio::net::TcpStream::connect(&authority).await.unwrap();
            let io = TokioIo::new(stream);
            let (sender, connection) =
                http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            for _ in 0..LOOPS {
                loops.push(tokio::spawn(ask(sender.clone(), responses.clone())));
            }
        }
        while responses.load(Ordering::Relaxed) < RESPONSES {
            tokio::task::yield_now().await;
        }
        server.terminate();
        let status = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert!(status.success());
        let by = tokio::time::Instant::now() + UNTIL_GIVEN_UP;
        let mut given_up = 0;
        for asking in loops {
            match tokio::time::timeout_at(by, asking).await {
                Ok(asked) => asked.unwrap(),
                Err(_) => given_up += 1,
            }
        }
        assert!(given_up <= LOOPS, "{given_up} wait forever: those of more than one connection");
    });
}

/// Asks until the connection takes no more requests.
async fn ask(mut sender: http2::SendRequest<Empty<Bytes>>, responses: Arc<AtomicU32>) {
    while sender.ready().await.is_ok() {
        let uri = format!("http://localhost/echo?size={SIZE}");
        let request = Request::builder().uri(uri).body(Empty::new()).unwrap();
        match sender.send_request(request).await {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                let content = response.into_body().collect().await;
                let content = content.expect("a response that has begun comes to its end");
                assert_eq!(content.to_bytes().len(), SIZE);
                responses.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => assert!(is_untouched(&error), "{error:?}"),
        }
    }
}

/// Returns whether the server can't have acted on the request: it was never sent, or came after GOAWAY.
fn is_untouched(error: &hyper::Error) -> bool {
    let cause = error.source().map(|cause| format!("{cause:?}")).unwrap_or_default();
    error.is_canceled()
        || error.is_closed()
        || (cause.contains("GoAway") && cause.contains("NO_ERROR"))
        || cause.contains("REFUSED_STREAM")
}

#[test]
fn loops_over_h1_end_well() {
    let server = Server::start_both();
    let responses = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(Server::authority(server.http())).unwrap();
            let responses = &responses;
            scope.spawn(move || ask_in_order(stream, responses));
        }
        while responses.load(Ordering::Relaxed) < RESPONSES {
            std::thread::yield_now();
        }
        server.terminate();
    });
    assert!(server.wait().success());
}

fn ask_in_order(mut stream: TcpStream, responses: &AtomicU32) {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request = format!("GET /echo?size={SIZE} HTTP/1.1\r\nHost: a\r\n\r\n");
    loop {
        // A connection between two requests may be closed at any time (RFC 9112 §9.5).
        if stream.write_all(request.as_bytes()).is_err() {
            return;
        }
        let mut response = vec![0; 64 * 1024];
        let mut length = match stream.read(&mut response) {
            Ok(0) | Err(_) => return,
            Ok(length) => length,
        };
        let head = loop {
            let text = String::from_utf8_lossy(&response[..length]).into_owned();
            if let Some((head, _)) = text.split_once("\r\n\r\n") {
                break head.to_ascii_lowercase();
            }
            length += more(&mut stream, &mut response[length..]);
        };
        assert!(head.starts_with("http/1.1 200"), "{head}");
        while length < head.len() + 4 + SIZE {
            length += more(&mut stream, &mut response[length..]);
        }
        assert_eq!(length, head.len() + 4 + SIZE);
        responses.fetch_add(1, Ordering::Relaxed);
        if head.contains("connection: close") {
            assert_eq!(stream.read(&mut response).unwrap(), 0, "a close that was announced");
            return;
        }
    }
}

/// Reads on in a response that has begun.
fn more(stream: &mut TcpStream, space: &mut [u8]) -> usize {
    let length = stream.read(space).expect("a response that has begun comes to its end");
    assert!(length > 0, "a response broke off");
    length
}
