//! Servers and clients of the tests.

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::time::Duration;

use bolide::tower::{Body, Cloned, Serve};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

/// Longer than anything here takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Waits for what must happen.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it happens in time")
}

/// Serves on a free port with two workers, as `change` wants it.
pub(crate) async fn start<S, B>(
    service: S,
    change: impl FnOnce(Serve<S, Cloned<S>>) -> Serve<S, Cloned<S>>,
) -> SocketAddr
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(change(bolide::tower::serve(listener, service).workers(2)).into_future());
    address
}

pub(crate) type Http1 = http1::SendRequest<Full<Bytes>>;

pub(crate) async fn http1(address: SocketAddr) -> Http1 {
    let socket = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) type Http2 = http2::SendRequest<Full<Bytes>>;

pub(crate) async fn http2(address: SocketAddr) -> Http2 {
    let socket = TcpStream::connect(address).await.unwrap();
    let made = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (sender, connection) = made.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(format!("http://a.example{path}")).header("host", "a.example");
    request.body(Full::default()).unwrap()
}

/// Status and text of a response.
pub(crate) async fn read(response: Response<hyper::body::Incoming>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}
