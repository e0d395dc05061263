//! Two servers of one application, and a client that shows every byte of their responses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than any response takes.
const LIMIT: Duration = Duration::from_secs(20);

/// The application behind hyper, by `axum::serve`, and behind Bolide.
pub(crate) struct Pair {
    pub(crate) hyper: SocketAddr,
    pub(crate) bolide: SocketAddr,
}

impl Pair {
    /// Starts both. They end with the runtime of the test.
    pub(crate) async fn of(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hyper = listener.local_addr().unwrap();
        let service = app.clone().into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(axum::serve(listener, service).into_future());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bolide = listener.local_addr().unwrap();
        let serve = bolide::tower::serve(listener, app)
            .workers(2)
            .extension(|client| client.address().map(ConnectInfo));
        tokio::spawn(serve.into_future());
        Self { hyper, bolide }
    }

    /// Sends `bytes` to both and compares everything that comes back until the connection closes or
    /// so many `responses` are complete. Returns those of one, which are those of both.
    pub(crate) async fn same(&self, bytes: &[u8], responses: usize) -> Vec<RawResponse> {
        let hyper = talk(self.hyper, bytes, responses).await;
        let bolide = talk(self.bolide, bytes, responses).await;
        assert_eq!(bolide, hyper, "{}", String::from_utf8_lossy(bytes));
        bolide
    }

    /// As [`Self::same`], for one request that is answered.
    pub(crate) async fn same_one(&self, bytes: &[u8]) -> RawResponse {
        self.same(bytes, 1).await.pop().expect("a response")
    }

    /// A GET with these fields.
    pub(crate) async fn get(&self, path: &str, fields: &str) -> RawResponse {
        self.same_one(format!("GET {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n").as_bytes()).await
    }

    /// A POST with these fields and this body.
    pub(crate) async fn post(&self, path: &str, fields: &str, body: &[u8]) -> RawResponse {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n{fields}\r\n");
        self.same_one(&[head.as_bytes(), body].concat()).await
    }
}

/// A response as it came over the wire.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    /// Without `date` and `connection: close`; several values of a name in their order.
    pub(crate) fields: BTreeMap<String, Vec<String>>,
    pub(crate) body: Vec<u8>,
    /// True if the connection was closed after it.
    pub(crate) closed: bool,
}

impl RawResponse {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|values| values.first()).map(String::as_str)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// A client of one connection.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    buffer: Vec<u8>,
    closed: bool,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        Self { socket, buffer: Vec::new(), closed: false }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The server may have answered and closed before it has read everything.
        let _ = self.socket.write_all(bytes).await;
    }

    /// Reads more. Whether there was any.
    async fn more(&mut self) -> bool {
        let mut block = [0; 16 * 1024];
        let read = tokio::time::timeout(LIMIT, self.socket.read(&mut block)).await;
        match read.expect("a response in time") {
            Ok(count) if count > 0 => {
                self.buffer.extend_from_slice(&block[..count]);
                true
            }
            _ => {
                self.closed = true;
                false
            }
        }
    }

    /// Reads up to and with `end`.
    pub(crate) async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                return Some(self.buffer.drain(..at + end.len()).collect());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count && self.more().await {}
        let count = count.min(self.buffer.len());
        self.buffer.drain(..count).collect()
    }

    /// The next response; `None` when the connection closes before one.
    pub(crate) async fn answer(&mut self, is_head: bool) -> Option<RawResponse> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let (status, fields) = parse_head(&head);
        let field = |name: &str| fields.get(name).map(|values| values.concat());
        let mut response =
            RawResponse { status, body: Vec::new(), closed: false, fields: BTreeMap::new() };
        let has_body = !is_head && status >= 200 && status != 204 && status != 304;
        if has_body && field("transfer-encoding").is_some() {
            while let Some(line) = self.until(b"\r\n").await {
                let size = std::str::from_utf8(&line[..line.len() - 2]).unwrap();
                let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
                if size == 0 {
                    self.until(b"\r\n").await;
                    break;
                }
                response.body.extend(self.exactly(size).await);
                self.until(b"\r\n").await;
            }
        } else if has_body && let Some(length) = field("content-length") {
            response.body = self.exactly(length.parse().unwrap()).await;
        } else if has_body {
            while self.more().await {}
            response.body = std::mem::take(&mut self.buffer);
        }
        response.fields = fields;
        Some(response)
    }
}

fn parse_head(head: &str) -> (u16, BTreeMap<String, Vec<String>>) {
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.get(9..12)).expect("a status line");
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a field");
        let name = name.to_ascii_lowercase();
        // A server may say that it closes where it need not: HTTP/1.0 closes without a word.
        if name != "date" && (name.as_str(), value.trim()) != ("connection", "close") {
            fields.entry(name).or_default().push(value.trim().to_owned());
        }
    }
    (status.parse().expect("a status"), fields)
}

async fn talk(address: SocketAddr, bytes: &[u8], responses: usize) -> Vec<RawResponse> {
    let mut client = Client::connect(address).await;
    client.send(bytes).await;
    let mut read = Vec::new();
    while read.len() < responses {
        let Some(response) = client.answer(bytes.starts_with(b"HEAD ")).await else { break };
        read.push(response);
    }
    // Whether it is closed shows in whether it takes another request.
    if let Some(last) = read.last_mut() {
        last.closed = last.status != 101 && {
            client.send(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
            client.closed || client.answer(false).await.is_none()
        };
    }
    read
}
