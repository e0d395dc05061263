//! Whom the client asks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide::client::{Client, ClientBuilder, Trust};
use bolide::http::{HeaderMap, HeaderValue, StatusCode};
use bolide::server::{BodyStream, End, Exchange, Io, Pull, Running, body_limit};
use bolide::tls::{Identity, Tls};
use bolide::{Bytes, Reply, Request, Response, Router, Server, collect};

/// How long anything may take that is expected to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server of ours, over cleartext and TLS.
pub(crate) struct Ours {
    pub(crate) cleartext: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) certificate: Vec<u8>,
    running: Option<Running>,
}

/// So many bytes, each as its place says.
#[derive(Debug)]
struct Pattern {
    sent: usize,
    total: usize,
}

/// Returns what such a body holds at a place.
pub(crate) fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

impl BodyStream for Pattern {
    fn pull(&mut self, room: usize) -> Pull {
        let count = room.clamp(1, 65_536).min(self.total - self.sent);
        if count == 0 {
            return Pull::End;
        }
        let piece: Vec<u8> = (self.sent..self.sent + count).map(pattern).collect();
        self.sent += count;
        Pull::Data(piece.into())
    }
}

/// Counts what comes, and says how much it was in its body and in a trailer.
#[derive(Debug, Default)]
struct Counting {
    count: usize,
    is_right: bool,
}

impl Exchange for Counting {
    fn on_start(&mut self, _: &mut Io<'_>) {
        self.is_right = true;
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        self.is_right &= data.iter().zip(self.count..).all(|(byte, at)| *byte == pattern(at));
        self.count += data.len();
        io.consumed(data.len());
        if end == End::Yes {
            io.start(&Response::new(StatusCode::OK), None);
            let text = format!("{} {}", self.count, self.is_right);
            assert!(io.send(text.into(), End::No).is_ok(), "it is the first piece");
            if io.is_sendable() {
                self.on_sendable(io);
            }
        }
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-count", HeaderValue::from(self.count));
        io.finish_with(&trailers);
    }
}

fn routes() -> Router {
    Router::new()
        .get("/version", |request: &mut Request<'_>| format!("{:?}", request.version()))
        .get("/fields", |request: &mut Request<'_>| {
            let fields = request.head().fields();
            let lines = fields
                .map(|field| format!("{}: {}", field.name, String::from_utf8_lossy(field.value)));
            lines.collect::<Vec<_>>().join("\n")
        })
        .get("/pattern/{count}", |request: &mut Request<'_>| {
            let total = request.param("count").and_then(|count| count.parse().ok()).unwrap_or(0);
            Response::stream(Pattern { sent: 0, total })
        })
        .handle_post("/echo", body_limit(1 << 30, collect(|_, body| Response::from(body))))
        .handle_post(
            "/count",
            body_limit(1 << 40, |_: &mut Request<'_>| Reply::Exchange(Box::<Counting>::default())),
        )
}

impl Ours {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
        let running = Server::new()
            .workers(1)
            .http3(true)
            .http("127.0.0.1:0")
            .https("127.0.0.1:0", &Tls::new(&identity).expect("settings"))
            .start(routes)
            .expect("a free port");
        let addresses = running.addresses();
        let of = |at: usize| addresses[at].expect("an address");
        let (cleartext, tls) = (of(0), of(1));
        Self { cleartext, tls, certificate: chain.into_bytes(), running: Some(running) }
    }

    /// A client that trusts this server.
    pub(crate) fn client(&self) -> ClientBuilder {
        Client::builder().trust(Trust::Pem(self.certificate.clone()))
    }

    /// This path, by each way there is.
    pub(crate) fn urls(&self, path: &str) -> [String; 3] {
        [
            format!("http://{}{path}", self.cleartext),
            format!("h2c://{}{path}", self.cleartext),
            format!("https://{}{path}", self.tls),
        ]
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.shut_down();
        assert_eq!(running.join().expect("no worker failed").panics, 0);
    }
}

/// One connection of a server that follows a script.
pub(crate) struct Talk(pub(crate) TcpStream);

impl Talk {
    /// The next head; empty at the end.
    pub(crate) fn head(&mut self) -> String {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            // A reset is an end too.
            if self.0.read(&mut byte).unwrap_or(0) == 0 {
                break;
            }
            head.push(byte[0]);
        }
        String::from_utf8(head).expect("text")
    }

    pub(crate) fn send(&mut self, text: &str) {
        // A client that has gone reads nothing.
        let _ = self.0.write_all(text.as_bytes());
    }

    /// Waits until the other end closes.
    pub(crate) fn rest(&mut self) {
        let _ = self.0.read_to_end(&mut Vec::new());
    }
}

/// A server that follows a script.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    /// `script` gets each connection with its number, from 0.
    pub(crate) fn new(script: impl Fn(&mut Talk, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (script, count) = (Arc::new(script), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let (script, number) = (Arc::clone(&script), count.fetch_add(1, Ordering::SeqCst));
                std::thread::spawn(move || script(&mut Talk(stream), number));
            }
        });
        Self { address, connections }
    }

    /// Answers each request of each connection alike.
    pub(crate) fn answering(response: &'static str) -> Self {
        Self::new(move |talk, _| {
            while !talk.head().is_empty() {
                talk.send(response);
            }
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
