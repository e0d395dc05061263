//! hyper, over HTTP/1.1 and HTTP/2, with and without TLS by rustls, and through proxies.

use std::convert::Infallible;
use std::sync::Arc;

use bolide_e2e::{SIZES, assert_same, random};
use bolide_launcher::Server;
use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::hyper_client::trust::AnyCertificate;

mod trust;

type Body = BoxBody<Bytes, Infallible>;

/// A connection of either version.
enum Client {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

impl Client {
    async fn connect(url: &str, two: bool) -> Self {
        let stream = TcpStream::connect(Server::authority(url)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        if !url.starts_with("https") {
            return Self::over(stream, two).await;
        }
        let mut config = AnyCertificate::client_config();
        config.alpn_protocols = vec![if two { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        Self::over(connector.connect(name, stream).await.unwrap(), two).await
    }

    async fn over<S>(stream: S, two: bool) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        if two {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            Self::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            Self::One(sender)
        }
    }

    async fn send(&mut self, request: Request<Body>) -> Response<hyper::body::Incoming> {
        match self {
            Self::One(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
            Self::Two(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
        }
    }

    async fn ask(&mut self, method: &str, path: &str, content: Bytes) -> (StatusCode, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("host", "localhost")
            .body(Full::new(content).boxed())
            .unwrap();
        let response = self.send(request).await;
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }
}

/// Runs a check for both versions over both transports, with the server alone and behind proxies.
fn each_way<F: Future<Output = ()>>(check: impl Fn(Client) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for server in Server::start_everywhere() {
        for url in server.both() {
            for two in [false, true] {
                runtime.block_on(async { check(Client::connect(url, two).await).await });
            }
        }
    }
}

#[test]
fn hyper_gets_and_posts() {
    each_way(|mut client| async move {
        let (status, content) = client.ask("GET", "/ping", Bytes::new()).await;
        assert_eq!((status, content), (StatusCode::OK, Bytes::from_static(b"pong")));
        let (status, content) = client.ask("HEAD", "/ping", Bytes::new()).await;
        assert_eq!((status, content.len()), (StatusCode::OK, 0));
        let (status, _) = client.ask("GET", "/no/such/path", Bytes::new()).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        for size in SIZES {
            let path = format!("/echo?size={size}");
            let (_, content) = client.ask("GET", &path, Bytes::new()).await;
            assert_same(&content, &vec![b'x'; *size], &path);
            let sent = Bytes::from(random(*size, 11));
            let (status, content) = client.ask("POST", "/echo", sent.clone()).await;
            assert_eq!(status, StatusCode::OK);
            assert_same(&content, &sent, "POST /echo");
        }
    });
}

#[test]
fn hyper_asks_a_hundred_at_once() {
    each_way(|client| async move {
        let Client::Two(sender) = client else { return };
        let tasks = (0..100).map(|index: usize| {
            let mut client = Client::Two(sender.clone());
            tokio::spawn(async move {
                let sent = Bytes::from(random(1000 * index, index as u64));
                let (_, content) = client.ask("POST", "/echo", sent.clone()).await;
                assert_same(&content, &sent, "one of a hundred");
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

/// The echo streams: each piece comes back before the next one is sent.
#[test]
fn hyper_talks_piece_by_piece() {
    each_way(|mut client| async move {
        let (mut sender, body) = Channel::<Bytes>::new(1);
        let request = Request::builder()
            .method("POST")
            .uri("http://localhost/echo")
            .header("host", "localhost")
            .body(body.boxed())
            .unwrap();
        sender.send_data(Bytes::from_static(b"first")).await.unwrap();
        let response = client.send(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = response.into_body();
        let mut wanted = Bytes::from_static(b"first");
        for index in 0..50 {
            let mut got = Vec::new();
            while got.len() < wanted.len() {
                let frame = body.frame().await.expect("the echo goes on").unwrap();
                got.extend_from_slice(frame.data_ref().unwrap());
            }
            assert_same(&got, &wanted, "a piece");
            wanted = Bytes::from(random(100 * index + 1, index as u64));
            sender.send_data(wanted.clone()).await.unwrap();
        }
        drop(sender);
        let rest = body.collect().await.unwrap().to_bytes();
        assert_same(&rest, &wanted, "the last piece");
    });
}
