//! A server with planted behaviour: a thread for each connection, blocking, simple to reason about.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Http2Limits, Limits, ServerTls, http2_limits};
use bolide_semantics::{
    Content, Context, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Head, Output,
    ResponseHead, Role,
};
use bytes::Bytes;
use http::StatusCode;

/// Response when nothing else is planted.
pub(crate) const BODY: &[u8] = b"planted";

/// Behavior that a request meets, by its number over all connections, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The right response.
    Right,
    /// A response with other bytes of the same length.
    WrongBody,
    /// The right response, and after it trailers with this `grpc-status`.
    Trailers(&'static str),
    /// This content, and after it trailers with this `grpc-status`, if one is given.
    Call(&'static [u8], Option<&'static str>),
    /// No content, and this `grpc-status` in the head.
    Refusal(&'static str),
    /// Status 503.
    WrongStatus,
    /// The connection is closed without a response.
    Close,
    /// No response at all.
    Silence,
    /// RST_STREAM (HTTP/2).
    Reset,
}

type Choose = dyn Fn(u64) -> Plant + Send + Sync;

/// How the server behaves.
pub(crate) struct Behaviour {
    pub(crate) plant: Box<Choose>,
    /// Each response takes so long, one after the other over all connections.
    pub(crate) service_time: Duration,
    /// After so many requests of a connection it says GOAWAY, and acts on nothing above them.
    pub(crate) goaway_after: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) tls: Option<ServerTls>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            plant: Box::new(|_| Plant::Right),
            service_time: Duration::ZERO,
            goaway_after: None,
            limits: Limits::default(),
            tls: None,
        }
    }
}

impl Behaviour {
    /// Every `nth` request meets `plant`.
    pub(crate) fn every(nth: u64, plant: Plant) -> Self {
        let choose =
            move |number: u64| if number.is_multiple_of(nth) { plant } else { Plant::Right };
        Self { plant: Box::new(choose), ..Self::default() }
    }

    /// Windows for uploads of so many bytes.
    pub(crate) fn windows(bytes: u32) -> Self {
        let h2 = Http2Limits {
            windows: http2_limits::Windows {
                stream_window_bytes: bytes,
                stream_window_bytes_max: bytes,
                ..http2_limits::Windows::DEFAULT
            },
            ..Http2Limits::default()
        };
        Self { limits: Limits { h2: Arc::new(h2), ..Limits::default() }, ..Self::default() }
    }
}

struct Shared {
    behaviour: Behaviour,
    requests: AtomicU64,
    /// Targets and cookies, each once.
    distinct: Mutex<BTreeSet<(String, String)>>,
    responses: AtomicU64,
    received_bytes: AtomicU64,
    connections: AtomicU64,
    service: Mutex<()>,
    /// No response is sent while this is held.
    stall: Mutex<()>,
    gone: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

/// A server that runs until it is dropped.
pub(crate) struct Planted {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Planted {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behaviour,
            requests: AtomicU64::new(0),
            distinct: Mutex::default(),
            responses: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            service: Mutex::new(()),
            stall: Mutex::new(()),
            gone: AtomicBool::new(false),
            sockets: Mutex::new(Vec::new()),
        });
        let accepted = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if accepted.gone.load(Ordering::SeqCst) {
                    return;
                }
                accepted.connections.fetch_add(1, Ordering::SeqCst);
                accepted.sockets.lock().unwrap().push(socket.try_clone().unwrap());
                let shared = Arc::clone(&accepted);
                std::thread::spawn(move || Served::new(&shared, socket).run());
            }
        });
        Self { address, shared }
    }

    /// Requests that it acted on.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Responses that it gave.
    pub(crate) fn answers(&self) -> u64 {
        self.shared.responses.load(Ordering::SeqCst)
    }

    /// Targets and cookies of the requests, each pair once.
    pub(crate) fn distinct(&self) -> BTreeSet<(String, String)> {
        self.shared.distinct.lock().unwrap().clone()
    }

    /// Bytes of requests' bodies.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.shared.received_bytes.load(Ordering::SeqCst)
    }

    /// Connections that it accepted.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Sends no response until the returned guard is dropped.
    pub(crate) fn stall(&self) -> std::sync::MutexGuard<'_, ()> {
        self.shared.stall.lock().unwrap()
    }

    /// Closes everything; connections are refused.
    pub(crate) fn die(&self) {
        if self.shared.gone.swap(true, Ordering::SeqCst) {
            return;
        }
        // The accepting thread sees that it is over, and drops the listener.
        let _ = TcpStream::connect(self.address);
        while TcpStream::connect(self.address).is_ok() {
            std::thread::yield_now();
        }
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.die();
    }
}

/// One connection.
struct Served<'a> {
    shared: &'a Shared,
    socket: TcpStream,
    connection: Connection,
    input: ReceiveBuffer,
    plain: ReceiveBuffer,
    output: SendQueue,
    head: Head,
    rest: Box<[u8]>,
    /// Requests of this connection.
    count: u64,
    closes: bool,
    /// The last request that it acts on.
    last: Option<ExchangeId>,
}

/// Decision about a request.
struct Decision {
    id: ExchangeId,
    status: StatusCode,
    body: &'static [u8],
    /// The `grpc-status` of its trailers.
    trailers: Option<&'static str>,
    /// The `grpc-status` of its head.
    refusal: Option<&'static str>,
}

impl Decision {
    fn right(id: ExchangeId) -> Self {
        Self { id, status: StatusCode::OK, body: BODY, trailers: None, refusal: None }
    }
}

impl<'a> Served<'a> {
    fn new(shared: &'a Shared, socket: TcpStream) -> Self {
        socket.set_nodelay(true).unwrap();
        let tls = shared.behaviour.tls.as_ref().map(|tls| tls.accept().unwrap());
        Self {
            shared,
            socket,
            connection: Connection::new(Role::Server, tls, Instant::now()),
            input: ReceiveBuffer::new(65_536),
            plain: ReceiveBuffer::new(65_536),
            output: SendQueue::new(),
            head: Head::default(),
            rest: Box::default(),
            count: 0,
            closes: false,
            last: None,
        }
    }

    fn run(mut self) {
        let mut block = vec![0; 65_536];
        loop {
            let read = self.socket.read(&mut block).unwrap_or(0);
            self.input.start(&self.rest);
            self.input.extend(&block[..read]);
            let is_tls = self.connection.is_tls();
            if is_tls {
                self.connection.open_records(&mut self.input, &mut self.plain);
            }
            if read == 0 {
                self.connection.receive_eof();
            }
            let over = self.drive();
            if is_tls {
                self.connection.keep_records(&mut self.plain);
            }
            self.rest = self.input.take_rest();
            let flushed = self.connection.flush(&mut self.output, &mut Whole(&self.socket));
            if let Some(last) = self.last {
                let _ = self.socket.write_all(&goaway(last));
            }
            if over || self.closes || read == 0 || !matches!(flushed, Ok(Flush::Drained)) {
                let _ = self.socket.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Context<'_>) -> T) -> T {
        let is_tls = self.connection.is_tls();
        let mut cx = Context {
            input: if is_tls { &mut self.plain } else { &mut self.input },
            output: &mut self.output,
            output_limit: 1 << 20,
            head: &mut self.head,
            now: Instant::now(),
        };
        act(&mut self.connection, &mut cx)
    }

    /// Returns whether the connection is over.
    fn drive(&mut self) -> bool {
        let limits = self.shared.behaviour.limits.clone();
        loop {
            let (id, end) = match self.with(|connection, cx| connection.poll(cx, &limits)) {
                Output::Exchange(id, ExchangeEvent::Head(end)) => {
                    let cookie = self.head.get(FieldName::Cookie).unwrap_or_default();
                    let pair = (self.head.path_and_query().to_owned(), text(cookie));
                    self.shared.distinct.lock().unwrap().insert(pair);
                    (id, end)
                }
                Output::Exchange(id, ExchangeEvent::Data(data, end)) => {
                    self.shared.received_bytes.fetch_add(data.len() as u64, Ordering::SeqCst);
                    self.with(|connection, cx| connection.consumed(cx, id, data.len()));
                    (id, end)
                }
                Output::Exchange(..) | Output::Connection(_) => continue,
                Output::Closed(_) => return true,
                Output::Wait(_) => return false,
            };
            if end == End::Yes && !self.closes {
                self.act(id);
            }
        }
    }

    fn act(&mut self, id: ExchangeId) {
        let behaviour = &self.shared.behaviour;
        let number = self.shared.requests.fetch_add(1, Ordering::SeqCst) + 1;
        drop(self.shared.stall.lock().unwrap());
        if !behaviour.service_time.is_zero() {
            let _one_at_a_time = self.shared.service.lock().unwrap();
            // Spinning keeps the time better than sleeping.
            let until = Instant::now() + behaviour.service_time;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        let response = match (behaviour.plant)(number) {
            Plant::Right => Decision::right(id),
            Plant::Trailers(status) => Decision { trailers: Some(status), ..Decision::right(id) },
            Plant::Call(body, trailers) => Decision { body, trailers, ..Decision::right(id) },
            Plant::Refusal(status) => {
                Decision { body: b"", refusal: Some(status), ..Decision::right(id) }
            }
            Plant::WrongBody => Decision { body: b"pl4nted", ..Decision::right(id) },
            Plant::WrongStatus => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Decision { status, body: b"", ..Decision::right(id) }
            }
            Plant::Close => {
                self.closes = true;
                return;
            }
            Plant::Silence => return,
            Plant::Reset => return self.with(|connection, cx| connection.abort(cx, id)),
        };
        self.answer(&response);
        self.count += 1;
        if behaviour.goaway_after == Some(self.count) {
            self.last = Some(id);
            self.closes = true;
        }
    }

    fn answer(&mut self, response: &Decision) {
        let length = response.body.len().to_string();
        let mut fields = vec![FieldRef::known(FieldName::ContentLength, length.as_bytes())];
        if let Some(status) = response.refusal {
            fields.push(FieldRef::named("grpc-status", status.as_bytes()));
        }
        let (id, body, trailers) =
            (response.id, Bytes::from_static(response.body), response.trailers);
        self.shared.responses.fetch_add(1, Ordering::SeqCst);
        self.with(|connection, cx| {
            let head = ResponseHead::new(response.status, &fields);
            let Some(status) = trailers else {
                connection.send_response(cx, id, &head, Content::Whole(&mut body.into())).unwrap();
                return;
            };
            connection.send_response(cx, id, &head, Content::Follows).unwrap();
            connection.send_data(cx, id, body, End::No).unwrap();
            let status = [FieldRef::named("grpc-status", status.as_bytes())];
            connection.send_trailers(cx, id, &status).unwrap();
        });
    }
}

/// GOAWAY with this stream as the last one (RFC 9113 §6.8).
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn goaway(last: ExchangeId) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.0.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame
}

/// Writes all, blocking.
struct Whole<'a>(&'a TcpStream);

impl Write for Whole<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
