//! Clients that make what they send as they send it.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::content::bytes_at;

/// The type of the content.
const KIND: &str = "multipart/form-data; boundary=B";

/// A small part, and the head of the large one.
const BEGINNING: &str = "--B\r\ncontent-disposition: form-data; name=\"empty\"\r\n\r\n\r\n--B\r\n\
    content-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";

const END: &str = "\r\n--B--\r\n";

/// The content of one upload, piece by piece.
struct Pieces {
    length: u64,
    sent: u64,
    has_begun: bool,
    has_ended: bool,
}

impl Pieces {
    fn new(length: u64) -> Self {
        Self { length, sent: 0, has_begun: false, has_ended: false }
    }

    /// Of all pieces.
    fn length_in_all(&self) -> u64 {
        self.length + (BEGINNING.len() + END.len()) as u64
    }
}

impl Iterator for Pieces {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<Self::Item> {
        /// No multiple of anything.
        const PIECE_BYTES: u64 = 50_021;

        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(BEGINNING.as_bytes());
        }
        let count = PIECE_BYTES.min(self.length - self.sent);
        if count > 0 {
            let piece = bytes_at(self.sent, count as usize);
            self.sent += piece.len() as u64;
            return Some(piece);
        }
        (!std::mem::replace(&mut self.has_ended, true)).then_some(END.as_bytes())
    }
}

/// How an upload over HTTP/1.1 says where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framing {
    Length,
    Chunked,
}

/// Uploads over HTTP/1.1. The whole response but for its date, and the connection closes after it.
pub(crate) async fn over_http1(address: SocketAddr, length: u64, framing: Framing) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let pieces = Pieces::new(length);
    let framed = match framing {
        Framing::Length => format!("content-length: {}", pieces.length_in_all()),
        Framing::Chunked => "transfer-encoding: chunked".to_owned(),
    };
    let head = format!(
        "POST /upload HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: {KIND}\r\n{framed}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let (mut pieces, mut chunk) = (pieces.peekable(), Vec::new());
    while let Some(piece) = pieces.next() {
        match framing {
            Framing::Length => socket.write_all(piece).await.unwrap(),
            Framing::Chunked => {
                chunk.clear();
                write!(chunk, "{:x}\r\n", piece.len()).unwrap();
                chunk.extend_from_slice(piece);
                // A server may respond and close when it has seen the last boundary: what follows goes with it.
                let is_last = pieces.peek().is_none();
                chunk.extend_from_slice(if is_last { b"\r\n0\r\n\r\n" } else { b"\r\n" });
                socket.write_all(&chunk).await.unwrap();
            }
        }
    }
    let mut response = String::new();
    socket.read_to_string(&mut response).await.unwrap();
    let mut lines: Vec<_> = response.lines().filter(|line| !line.starts_with("date: ")).collect();
    // Of the fields, the order means nothing.
    lines[1..].sort_unstable();
    lines.join("\n")
}

/// Uploads over HTTP/2 in cleartext: the status and the body of the response.
pub(crate) async fn over_http2(address: SocketAddr, length: u64) -> String {
    let socket = TcpStream::connect(address).await.unwrap();
    let made =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
    let (mut sender, connection) = made.unwrap();
    tokio::spawn(connection);
    let (mut input, body) = Channel::<Bytes, Infallible>::new(1);
    let request = http::Request::post("http://a/upload").header("content-type", KIND);
    let request = request.body(body).unwrap();
    let response = tokio::spawn(sender.send_request(request));
    for piece in Pieces::new(length) {
        input.send_data(Bytes::from_static(piece)).await.unwrap();
    }
    drop(input);
    let response = response.await.unwrap().unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    format!("{status} {}", String::from_utf8_lossy(&body))
}
