//! A server for each test, and tonic's way to it.

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::{Channel, Endpoint};

use crate::service::app;

/// Waits for what must happen.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it happens in time")
}

/// Starts the server on a free port.
pub(crate) async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app().await;
    tokio::spawn(bolide::tower::serve(listener, app).workers(2).into_future());
    address
}

/// A channel to a server of its own.
pub(crate) async fn channel() -> Channel {
    channel_to(format!("http://{}", start().await)).await
}

/// A channel to a server.
pub(crate) async fn channel_to(url: String) -> Channel {
    Endpoint::from_shared(url).unwrap().connect().await.unwrap()
}
