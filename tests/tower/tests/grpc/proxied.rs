//! The cases through `bolide serve --proxy`, with foreign ends: tonic and grpc-go before it, both behind it, and nginx
//! before it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

use bolide_launcher::{Nginx, Server, find, scratch};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::go::{GoServer, passes, passes_except, program};
use crate::start::{channel_to, in_time, start};
use crate::{cases, deadlines};

/// A proxy to this upstream, over h2c and over TLS.
pub(crate) fn proxy_to(upstream: &str) -> Server {
    let both = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
    Server::start(&[&both[..], &["--proxy", upstream, "--proxy-insecure"]].concat())
}

async fn proxy_to_tonic() -> Server {
    proxy_to(&format!("h2c://{}", start().await))
}

/// grpc-go's client asks the proxy in both ways.
fn grpc_go_passes(program: &Path, proxy: &Server) {
    passes(program, &[Server::authority(proxy.http())]);
    passes(program, &["-tls", Server::authority(proxy.https())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_go_passes_through_the_proxy_to_tonic() {
    let Some(program) = program("grpc_go_to_tonic") else { return };
    grpc_go_passes(program, &proxy_to_tonic().await);
}

#[test]
fn grpc_go_passes_through_the_proxy_to_grpc_go() {
    let Some(program) = program("grpc_go_to_grpc_go") else { return };
    let behind = GoServer::start(program);
    for url in &behind.urls {
        grpc_go_passes(program, &proxy_to(url));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tonic_passes_through_the_proxy_to_tonic_and_deadlines_are_kept() {
    let proxy = proxy_to_tonic().await;
    cases::pass(&channel_to(proxy.http().to_owned()).await).await;
    let address = Server::authority(proxy.http()).parse().unwrap();
    deadlines::are_kept(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tonic_passes_through_the_proxy_to_grpc_go() {
    let Some(program) = program("tonic_to_grpc_go") else { return };
    let behind = GoServer::start(program);
    for url in &behind.urls {
        let proxy = proxy_to(url);
        cases::pass(&channel_to(proxy.http().to_owned()).await).await;
    }
}

/// An nginx that asks `backend` by gRPC.
fn nginx_before(backend: &Server, program: &Path, directory: &Path) -> Nginx {
    let backend = Server::authority(backend.http());
    Nginx::start(program, directory, |address| {
        format!(
            "server {{ listen {address} http2; client_max_body_size 0;\n\
             location / {{ grpc_pass grpc://{backend}; }} }}"
        )
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_go_passes_from_nginx_through_the_proxy_to_tonic_and_to_grpc_go() {
    let test = "grpc_go_from_nginx";
    let (Some(program), Some(nginx)) = (program(test), find("nginx", test)) else { return };
    let tonic = proxy_to_tonic().await;
    let before_tonic = nginx_before(&tonic, &nginx, &scratch(&format!("{test}-tonic")));
    passes(program, &[before_tonic.address()]);
    cases::pass(&channel_to(before_tonic.url()).await).await;
    let behind = GoServer::start(program);
    let go = proxy_to(&behind.urls[0]);
    let before_go = nginx_before(&go, &nginx, &scratch(&format!("{test}-go")));
    // grpc-go cancels a call whose deadline has passed; nginx makes a 502 of that, which reaches the client or doesn't
    // before its own deadline.
    passes_except("timeout_on_sleeping_server", program, before_go.address());
    cases::pass(&channel_to(before_go.url()).await).await;
}

/// A server whose calls never end: it hands out the senders of its responses' pieces, which are closed when the server
/// ends the call. What it is asked for at `/silent` it doesn't even begin to answer.
async fn endless() -> (SocketAddr, mpsc::UnboundedReceiver<mpsc::Sender<Bytes>>) {
    let (calls, begun) = mpsc::unbounded_channel();
    let service = tower::util::service_fn(move |request: Request<bolide::tower::Body>| {
        let calls = calls.clone();
        async move {
            let (sender, receiver) = mpsc::channel(1);
            sender.send(Bytes::from("begun")).await.unwrap();
            calls.send(sender).unwrap();
            let pieces = ReceiverStream::new(receiver);
            if request.uri().path() == "/silent" {
                // The pieces are dropped with this future.
                let _pieces = pieces;
                std::future::pending::<()>().await;
                unreachable!("it pends");
            }
            let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(bolide::tower::serve(listener, service).workers(1).into_future());
    (address, begun)
}

async fn connect(url: &str) -> SendRequest<Empty<Bytes>> {
    let socket = TcpStream::connect(Server::authority(url)).await.unwrap();
    let made = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (sender, connection) = made.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_ends_behind_the_proxy_too() {
    let (address, mut begun) = endless().await;
    let proxy = proxy_to(&format!("h2c://{address}"));
    let mut client = connect(proxy.http()).await;
    let ask = |path: &str| Request::post(format!("http://a{path}")).body(Empty::new()).unwrap();

    let mut response = in_time(client.send_request(ask("/talks"))).await.unwrap();
    let frame = in_time(response.frame()).await.expect("a piece").unwrap();
    assert_eq!(frame.into_data().unwrap(), "begun");
    let call = begun.recv().await.expect("it has begun");
    assert!(!call.is_closed());
    drop(response);
    in_time(call.closed()).await;

    let asked = tokio::spawn(client.send_request(ask("/silent")));
    let call = in_time(begun.recv()).await.expect("it has begun");
    assert!(!call.is_closed() && !asked.is_finished());
    asked.abort();
    in_time(call.closed()).await;

    // The connections live on.
    let response = in_time(client.send_request(ask("/talks"))).await.unwrap();
    assert_eq!(response.status(), 200);
}

/// A foreign server that cancels what it is asked: at `/late` once its response has begun, otherwise at once.
async fn cancelling() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(socket).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    if request.uri().path() == "/late" {
                        let mut body = respond.send_response(Response::new(()), false).unwrap();
                        body.send_data(Bytes::from("begun"), false).unwrap();
                        let (_, mut rest) = request.into_parts();
                        // The client's body ends once it has read what has begun.
                        tokio::spawn(async move {
                            while rest.data().await.is_some() {}
                            body.send_reset(h2::Reason::CANCEL);
                        });
                    } else {
                        respond.send_reset(h2::Reason::CANCEL);
                    }
                }
            });
        }
    });
    address
}

/// How HTTP/2 says that a stream ended.
fn reason(error: &hyper::Error) -> Option<h2::Reason> {
    std::error::Error::source(error)?.downcast_ref::<h2::Error>()?.reason()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_the_server_cancels_is_cancelled_before_the_proxy_too() {
    let proxy = proxy_to(&format!("h2c://{}", cancelling().await));
    let socket = TcpStream::connect(Server::authority(proxy.http())).await.unwrap();
    let made = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (mut client, connection) = made.unwrap();
    tokio::spawn(connection);
    let mut ask = async |path: &str, kind: &str| {
        let (input, body) = http_body_util::channel::Channel::<Bytes, Infallible>::new(1);
        let request = Request::post(format!("http://a{path}")).header("content-type", kind);
        (input, in_time(client.send_request(request.body(body).unwrap())).await)
    };
    // More often than an upstream may fail in a row: clients' deadlines do not speak against it.
    for _ in 0..20 {
        let (_input, response) = ask("/at-once", "application/grpc").await;
        assert_eq!(reason(&response.unwrap_err()), Some(h2::Reason::CANCEL));
    }
    let (input, response) = ask("/late", "application/grpc+proto").await;
    let mut response = response.unwrap();
    assert_eq!(in_time(response.frame()).await.unwrap().unwrap().into_data().unwrap(), "begun");
    drop(input);
    let error = in_time(response.frame()).await.expect("no end").unwrap_err();
    assert_eq!(reason(&error), Some(h2::Reason::CANCEL));
    // What is not gRPC is told by HTTP.
    let (_input, response) = ask("/at-once", "text/plain").await;
    let response = response.unwrap();
    assert_eq!(response.status(), 502);
    let said = response.headers()["proxy-status"].to_str().unwrap();
    assert!(said.contains("error=http_response_incomplete"), "{said}");
}
