//! Starting, ending, and what a server tells its services.

use std::future::IntoFuture;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{ConnectInfo, Extension};
use axum::routing::get;
use bolide::tls::{HandshakeFacts, Identity, Tls};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::start::{get as request, http1, in_time, read, start};

#[tokio::test]
async fn a_graceful_shutdown_completes_what_is_open_and_takes_nothing_new() {
    let release = Arc::new(Notify::new());
    let begun = Arc::new(Notify::new());
    let (released, begins) = (Arc::clone(&release), Arc::clone(&begun));
    let wait = async move || {
        begins.notify_one();
        released.notified().await;
        "completed"
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/wait", get(wait));
    let server = tokio::spawn(
        bolide::tower::serve(listener, app)
            .workers(2)
            .with_graceful_shutdown(async {
                let _ = stopped.await;
            })
            .into_future(),
    );
    let mut client = http1(address).await;
    let asked = tokio::spawn(async move { client.send_request(request("/wait")).await });
    in_time(begun.notified()).await;
    stop.send(()).unwrap();
    // Once nothing is accepted any more, the shutdown is under way.
    in_time(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    assert!(!server.is_finished(), "an exchange is open");
    release.notify_one();
    let response = in_time(asked).await.unwrap().unwrap();
    assert_eq!(read(response).await, (200, "completed".to_owned()));
    in_time(server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_ends_with_its_future() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/", get(async || "here"));
    let server = tokio::spawn(bolide::tower::serve(listener, app).workers(1).into_future());
    let mut client = http1(address).await;
    let response = in_time(client.send_request(request("/"))).await.unwrap();
    assert_eq!(read(response).await, (200, "here".to_owned()));
    server.abort();
    in_time(async { while TcpStream::connect(address).await.is_ok() {} }).await;
}

#[test]
fn a_plain_thread_serves_with_a_runtime_that_is_started() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let sleeps = async || {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        "slept"
    };
    let server = std::thread::spawn(move || {
        let app = Router::new().route("/", get(sleeps));
        bolide::tower::serve(listener, app)
            .workers(1)
            .with_graceful_shutdown(async {
                let _ = stopped.await;
            })
            .run()
    });
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("slept"), "{response}");
    stop.send(()).unwrap();
    server.join().unwrap().unwrap();
}

#[tokio::test]
async fn what_cannot_be_served_says_why() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = bolide::tower::run(listener, Router::new()).unwrap_err();
    assert!(error.to_string().contains("await `serve` instead of `run`"), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = bolide::tower::serve(address, Router::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("can't listen on 127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_service_that_keeps_to_its_thread_is_made_on_each_worker() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let make = move || {
        counter.fetch_add(1, Ordering::SeqCst);
        let name = Rc::new(format!("{:?}", std::thread::current().name()));
        tower::service_fn(move |_: http::Request<bolide::tower::Body>| {
            let name = Rc::clone(&name);
            async move {
                tokio::task::yield_now().await;
                Ok::<_, std::convert::Infallible>(http::Response::new(Full::<Bytes>::from(
                    name.to_string(),
                )))
            }
        })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(bolide::tower::serve_with(listener, make).workers(2).into_future());
    for _ in 0..8 {
        let mut client = http1(address).await;
        for _ in 0..2 {
            let response = in_time(client.send_request(request("/"))).await.unwrap();
            let (status, name) = read(response).await;
            assert_eq!(status, 200);
            assert!(name.starts_with("Some(\"worker-"), "{name}");
        }
    }
    let made = made.load(Ordering::SeqCst);
    assert!((1..=2).contains(&made), "{made} services for two workers");
}

/// Returns what a client of a Unix socket is told in response to a request that closes.
async fn over_unix(path: &std::path::Path) -> String {
    let mut socket = UnixStream::connect(path).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    in_time(socket.read_to_string(&mut response)).await.unwrap();
    response
}

#[tokio::test]
async fn unix_sockets_have_no_address() {
    let name = format!("bolide-tower-{}.socket", std::process::id());
    let path = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    let app = Router::new().route(
        "/",
        get(async |peer: Option<Extension<ConnectInfo<SocketAddr>>>| peer.is_some().to_string()),
    );
    let serve = bolide::tower::serve(listener, app)
        .extension(|client| client.address().map(ConnectInfo))
        .workers(1);
    tokio::spawn(serve.into_future());
    let response = over_unix(&path).await;
    std::fs::remove_file(&path).unwrap();
    assert!(response.ends_with("false"), "{response}");
}

#[tokio::test]
async fn facts_of_tls_and_the_clients_address_are_extensions() {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let tls = Tls::new(&identity).unwrap();
    let facts = async |Extension(facts): Extension<HandshakeFacts>,
                       ConnectInfo(peer): ConnectInfo<SocketAddr>| {
        let HandshakeFacts { version, alpn, server_name, .. } = facts;
        format!("{version} {alpn:?} {server_name:?} {}", peer.ip() == IpAddr::from([127, 0, 0, 1]))
    };
    let address = start(Router::new().route("/", get(facts)), |serve| {
        serve
            .tls(&tls)
            .extension(|client| client.tls())
            .extension(|client| client.address().map(ConnectInfo))
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let secured = in_time(TlsConnector::from(Arc::new(config)).connect(name, socket)).await;
    let made = handshake(TokioExecutor::new(), TokioIo::new(secured.unwrap())).await;
    let (mut sender, connection) = made.unwrap();
    tokio::spawn(connection);
    let response = in_time(sender.send_request(request("/"))).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert_eq!(text, "TLSv1.3 Some(H2) Some(\"a.example\") true");
}

#[tokio::test]
async fn a_service_of_hypers_own_trait_is_served() {
    use bolide::tower::{Body, HyperService};
    use hyper::{Request, Response};
    let response = async |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let text = format!("{path} with {} bytes", body.len());
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(text))))
    };
    let service = HyperService::new(hyper::service::service_fn(response));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(bolide::tower::serve(listener, service).into_future());
    let response = in_time(http1(address).await.send_request(request("/there"))).await.unwrap();
    assert_eq!(read(response).await, (200, "/there with 0 bytes".to_owned()));
    server.abort();
}
