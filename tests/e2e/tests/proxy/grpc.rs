//! gRPC through the proxy: messages both ways while both sides are open, trailers, and responses that are trailers only.

use std::collections::VecDeque;
use std::io::Read;

use bolide::client::{Client, Trust};
use bolide::http::{HeaderMap, HeaderValue, StatusCode};
use bolide::server::{End, Exchange, Io};
use bolide::{Bytes, Reply, Request, Response, Router, Server};

use crate::pairs::proxy;

/// Sends each message back, and the status as a trailer behind the last.
#[derive(Debug, Default)]
struct Echo {
    pending: VecDeque<Bytes>,
    ended: bool,
}

impl Exchange for Echo {
    fn on_start(&mut self, io: &mut Io<'_>) {
        io.start(&Response::new(StatusCode::OK).header("content-type", "application/grpc"), None);
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        // It may be a part of what the worker reads into.
        self.pending.push_back(Bytes::copy_from_slice(&data));
        self.ended = end == End::Yes;
        self.on_sendable(io);
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        while io.is_sendable() {
            let Some(piece) = self.pending.pop_front() else { break };
            assert!(io.send(piece, End::No).is_ok(), "it is sendable");
        }
        if self.ended && io.is_sendable() {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            trailers.insert("grpc-message", HeaderValue::from_static("well"));
            io.finish_with(&trailers);
        }
    }
}

fn routes() -> Router {
    Router::new()
        .handle_post("/test.Echo/Both", |request: &mut Request<'_>| {
            let te = request.head().fields().find(|field| field.name == "te");
            assert_eq!(te.map(|field| field.value), Some(&b"trailers"[..]));
            Reply::Exchange(Box::<Echo>::default())
        })
        .handle_post("/test.Echo/Missing", |_: &mut Request<'_>| {
            Reply::from(
                Response::new(StatusCode::OK)
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "12"),
            )
        })
}

/// A message with its length, as gRPC frames it.
fn message(text: &str) -> Vec<u8> {
    let mut framed = vec![0];
    framed.extend((text.len() as u32).to_be_bytes());
    framed.extend(text.as_bytes());
    framed
}

#[test]
fn calls_pass_with_their_messages_and_trailers() {
    let running = Server::new().workers(1).http("127.0.0.1:0").start(routes).expect("a free port");
    let behind = format!("h2c://{}", running.addresses()[0].expect("an address"));
    let front = proxy(&[&behind], &[]);
    let client = Client::builder().trust(Trust::Any).build().expect("a client");
    for url in [front.http().replace("http://", "h2c://"), front.https().to_owned()] {
        let call = |method: &str| {
            let call = client.post(&format!("{url}/test.Echo/{method}"));
            call.header("te", "trailers").header("content-type", "application/grpc")
        };
        let mut upload = call("Both").start().expect("it begins");
        upload.send(message("0")).expect("it is taken");
        let mut response = upload.response().expect("a response");
        assert_eq!(response.header("content-type"), Some("application/grpc"));
        for number in 0..20 {
            let sent = message(&number.to_string());
            if number > 0 {
                upload.send(sent.clone()).expect("it is taken");
            }
            let mut got = vec![0; sent.len()];
            response.read_exact(&mut got).expect("the echo comes while the call is open");
            assert_eq!(got, sent);
        }
        upload.send(message("last")).expect("it is taken");
        upload.close(None);
        assert_eq!(response.collect().expect("the rest"), message("last"));
        let trailers = response.trailers().expect("trailers");
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["grpc-message"], "well");
        let mut response = call("Missing").body(message("x")).send().expect("a response");
        assert_eq!(response.header("grpc-status"), Some("12"), "{url}");
        assert_eq!(response.collect().expect("nothing").len(), 0);
    }
    running.shut_down();
    assert_eq!(running.join().expect("no worker failed").panics, 0);
}
