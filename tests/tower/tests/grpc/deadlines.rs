//! `grpc-timeout`, as the server keeps it: the client here sets the field and no clock of its own.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;

use crate::messages::{ResponseParameters, StreamingOutputCallRequest};
use crate::start::{in_time, start};

/// A call of `StreamingOutputCall`: its pieces, and the fields of its end.
async fn call(
    address: SocketAddr,
    pauses_us: &[i32],
    timeout: &str,
) -> (usize, String, http::HeaderMap) {
    let response_parameters =
        pauses_us.iter().map(|pause| ResponseParameters { size: 1, interval_us: *pause }).collect();
    let message = StreamingOutputCallRequest { response_parameters, ..Default::default() };
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap();
    let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
    let socket = TcpStream::connect(address).await.unwrap();
    let made = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (mut sender, connection) = made.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post("http://a/grpc.testing.TestService/StreamingOutputCall")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout)
        .body(Full::new(bytes::Bytes::from(framed)))
        .unwrap();
    let response = in_time(sender.send_request(request)).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut end = response.headers().clone();
    let body = in_time(response.into_body().collect()).await.unwrap();
    end.extend(body.trailers().cloned().unwrap_or_default());
    let status = end["grpc-status"].to_str().unwrap().to_owned();
    (body.to_bytes().len(), status, end)
}

/// An hour, in microseconds: longer than any test.
const HOUR: i32 = i32::MAX;

/// A call that is late ends; one in time, and one with a timeout that can't be read, do as they would without.
pub(crate) async fn are_kept(address: SocketAddr) {
    let (length, status, end) = call(address, &[0, 0, HOUR], "200m").await;
    // Two messages of one byte each, then the end in place of the third.
    assert_eq!((length, status.as_str()), (2 * 10, "4"));
    assert_eq!(end["grpc-message"], "the deadline of the call has passed");
    for timeout in ["1H", "soon", "123456789S"] {
        let (length, status, _) = call(address, &[0, 1000], timeout).await;
        assert_eq!((length, status.as_str()), (2 * 10, "0"), "{timeout}");
    }
}

#[tokio::test]
async fn a_call_that_is_late_ends_and_others_do_not() {
    are_kept(start().await).await;
}
