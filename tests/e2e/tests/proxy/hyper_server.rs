//! hyper behind the proxy.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc;

use bolide_e2e::SIZES;
use bolide_launcher::find;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::pairs::{exercise, proxy};

async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    Ok(Response::new(request.into_body()))
}

/// Serves one version until the process ends.
async fn serve(listener: TcpListener, two: bool) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let stream = TokioIo::new(stream);
        // How a connection ends, the client says.
        if two {
            let connection = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(connection.serve_connection(stream, service_fn(echo)));
        } else {
            tokio::spawn(http1::Builder::new().serve_connection(stream, service_fn(echo)));
        }
    }
}

/// Starts a server on a thread of its own.
fn start(two: bool) -> SocketAddr {
    let (sender, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            sender.send(listener.local_addr().expect("an address")).expect("the test waits");
            serve(listener, two).await;
        });
    });
    address.recv().expect("it says where it is")
}

#[test]
fn hyper_behind() {
    let Some(curl) = find("curl", "hyper_behind") else { return };
    for (scheme, two) in [("http", false), ("h2c", true)] {
        let server = proxy(&[&format!("{scheme}://{}", start(two))], &[]);
        exercise(&curl, &server, "/", SIZES, &format!("hyper-behind-{scheme}"));
    }
}
