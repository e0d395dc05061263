//! The routes of `bolide serve`, by hyper.

use std::convert::Infallible;
use std::net::TcpListener;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

/// Starts the server on a thread of its own, which ends with the tests; gives its address.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    listener.set_nonblocking(true).expect("a socket of ours");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, accept(listener));
    });
    address
}

async fn accept(listener: TcpListener) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("inside a runtime");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::task::spawn_local(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            let served =
                http.half_close(true).serve_connection(TokioIo::new(stream), service_fn(answer));
            // What a case provokes is judged at the other end.
            drop(served.await);
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let get = matches!(*request.method(), Method::GET | Method::HEAD);
    Ok(match (path.as_str(), request.method()) {
        ("/ping", _) if get => text(Bytes::from_static(b"pong")),
        ("/echo", _) if get => {
            let query = request.uri().query().unwrap_or_default();
            let size = query.strip_prefix("size=").and_then(|size| size.parse().ok());
            text(Bytes::from(vec![b'x'; size.unwrap_or(64)]))
        }
        ("/echo", &Method::POST) => match request.into_body().collect().await {
            Ok(content) => text(content.to_bytes()),
            Err(_) => status(StatusCode::BAD_REQUEST),
        },
        ("/ping" | "/echo", _) => {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => status(StatusCode::NOT_FOUND),
    })
}

fn text(content: Bytes) -> Response<Full<Bytes>> {
    let length = content.len();
    let mut response = Response::new(Full::new(content));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = text(Bytes::new());
    *response.status_mut() = status;
    response
}
