//! The client that users have: a thread with an event loop of its own, asked from any thread.

use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use bolide_connection::{Alpn, ClientOptions, ClientTls, Identity, Limits, Trust, WallClock};
use bolide_eventloop::{Destination, Limits as LoopLimits, MioKernel, Offload, Worker};
use bolide_semantics::{Scheme, Url};
use bytes::{Bytes, BytesMut};
use http::Method;
use http::header::{HeaderValue, USER_AGENT};

use super::addresses::Addresses;
use super::agent::Agent;
use super::command_queue::{Command, CommandQueue, Job, Origin};
use super::error::{ClientError, ErrorKind};
use super::pending_request::{Patience, PendingRequest, RequestHead};
use super::redirect::{self, Redirects};
use super::request::{BodyWriter, Content, Request, SCHEMES};
use super::response::Response;
use crate::limits::{CONNECTION_WINDOW_BYTES, RESPONSE_WINDOW_BYTES};
use crate::{ClientLimits, Dial, Speaks, platform_trust, resolve};

/// How large the pieces are that a body is read in, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Which versions a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// What ALPN agrees on over TLS, HTTP/2 preferred; HTTP/1.1 over cleartext.
    #[default]
    Any,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; over cleartext by prior knowledge (RFC 9113 §3.3).
    Http2,
    /// HTTP/3, of servers with `https` (RFC 9114 §3.1).
    Http3,
}

/// What a client is made of.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    limits: ClientLimits,
    versions: Versions,
    trust: Option<Trust>,
    redirects: Redirects,
    user_agent: Option<HeaderValue>,
    preamble: Option<Arc<[u8]>>,
    identity: Option<Identity>,
    server_name: Option<String>,
}

impl ClientBuilder {
    /// The limits. Default: those of [`ClientLimits::default`].
    #[must_use]
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Which versions it speaks. Default: [`Versions::Any`].
    #[must_use]
    pub fn versions(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Whose certificates it trusts. Default: those that the operating system does, or that the environment's
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Whether redirections are followed. Default: no, they are answers.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// What `User-Agent` says, when a request does not say it. Default: nothing.
    #[must_use]
    pub fn user_agent(mut self, name: &str) -> Self {
        self.user_agent = HeaderValue::from_str(name).ok();
        self
    }

    /// What each connection begins with, also before TLS: a PROXY header, say. Default: nothing.
    #[must_use]
    pub fn preamble(mut self, bytes: &[u8]) -> Self {
        self.preamble = (!bytes.is_empty()).then(|| bytes.into());
        self
    }

    /// The certificate for servers that request one. Default: none.
    #[must_use]
    pub fn identity(mut self, identity: Option<Identity>) -> Self {
        self.identity = identity;
        self
    }

    /// The name in SNI and in the certificates of all servers. Default: the host of each URL.
    #[must_use]
    pub fn server_name(mut self, name: Option<String>) -> Self {
        self.server_name = name;
        self
    }

    /// Starts the client's thread.
    ///
    /// # Errors
    ///
    /// When the system has no thread or poller left, or the trusted certificates can't be read.
    pub fn build(self) -> Result<Client, ClientError> {
        let system = |error: std::io::Error| {
            ClientError::new(ErrorKind::Connect, format!("the client can't start: {error}"))
        };
        let tls = OnceLock::new();
        if let Some(trust) = &self.trust {
            tls.get_or_init(|| tls_settings(trust, &self)).clone()?;
        }
        let post = Arc::new(CommandQueue::default());
        let kernel = MioKernel::new().map_err(system)?;
        let (started, start) = mpsc::channel();
        let own = Arc::clone(&post);
        let limits = self.limits.clone();
        let thread = std::thread::Builder::new()
            .name("bolide-client".into())
            .spawn(move || {
                let (count, waiting) = (limits.connections_count, limits.waiting_count);
                let worker = Worker::new(kernel, LoopLimits::default(), |bell| {
                    own.connect(bell);
                    Agent::new(connection_limits(&limits), count, waiting, Arc::clone(&own))
                });
                // Whoever made the client waits for this.
                let _ = started.send(());
                // A poller that fails ends the thread, and callers are told when their patience ends.
                let _ = worker.run();
            })
            .map_err(system)?;
        // It is sent, or the thread has ended.
        let _ = start.recv();
        let engine = Engine {
            post,
            settings: self,
            tls,
            offload: Offload::default(),
            addresses: Addresses::default(),
            thread: Mutex::new(Some(thread)),
        };
        Ok(Client { engine: Arc::new(engine) })
    }
}

/// The settings for TLS.
fn tls_settings(trust: &Trust, settings: &ClientBuilder) -> Result<ClientTls, ClientError> {
    let alpn: &[Alpn] = match settings.versions {
        // QUIC has its own.
        Versions::Any | Versions::Http3 => &[Alpn::H2, Alpn::Http11],
        Versions::Http1 => &[Alpn::Http11],
        Versions::Http2 => &[Alpn::H2],
    };
    let identity = settings.identity.as_ref();
    let options = ClientOptions { trust, alpn, identity, resume: true, early_data: false };
    ClientTls::with(&options, WallClock(SystemTime::now)).map_err(|error| {
        ClientError::new(
            ErrorKind::Tls,
            format!("the trusted certificates cannot be used: {error}"),
        )
    })
}

fn connection_limits(limits: &ClientLimits) -> Limits {
    let mut own = Limits::default();
    own.opening.handshake_timeout = limits.connect_timeout;
    let h1 = Arc::make_mut(&mut own.h1);
    h1.pipelined_count = 1;
    h1.times.idle_timeout = limits.idle_timeout;
    h1.times.write_timeout = limits.pause_timeout;
    let h2 = Arc::make_mut(&mut own.h2);
    h2.times.idle_time = limits.idle_timeout;
    h2.windows.stream_window_bytes_max = RESPONSE_WINDOW_BYTES;
    h2.windows.connection_window_bytes = CONNECTION_WINDOW_BYTES;
    h2.windows.connection_window_bytes_max = CONNECTION_WINDOW_BYTES;
    Arc::make_mut(&mut own.h3).times.idle_time = limits.idle_timeout;
    own
}

/// What all handles of a client share.
struct Engine {
    post: Arc<CommandQueue>,
    settings: ClientBuilder,
    /// Read when the first request needs it.
    tls: OnceLock<Result<ClientTls, ClientError>>,
    offload: Offload,
    addresses: Addresses,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(bell) = self.post.bell() {
            bell.shut_down(Instant::now());
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Nobody is left to tell how it ended.
            let _ = thread.join();
        }
    }
}

/// Asks HTTP servers: HTTP/1.1 and HTTP/2, over cleartext, TLS and Unix sockets, and HTTP/3.
///
/// A client has one thread with an event loop, which keeps connections to be used again. Handles are cheap to
/// clone and may be used from any thread; calls wait for what they return. The thread ends with the last
/// handle.
///
/// ```no_run
/// use std::io::Read;
/// use bolide_client::Client;
///
/// let client = Client::new()?;
/// let mut answer = client.get("https://example.org/").header("accept", "text/html").send()?;
/// println!("{} by {:?}", answer.status(), answer.version());
/// let mut page = String::new();
/// answer.read_to_string(&mut page)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    engine: Arc<Engine>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("settings", &self.engine.settings)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client with the default settings.
    ///
    /// # Errors
    ///
    /// When the system has no thread or poller left.
    pub fn new() -> Result<Self, ClientError> {
        Self::builder().build()
    }

    /// A client with other settings.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            limits: ClientLimits::default(),
            versions: Versions::default(),
            trust: None,
            redirects: Redirects::default(),
            user_agent: None,
            preamble: None,
            identity: None,
            server_name: None,
        }
    }

    /// A request with any method. `url` is `http://HOST/PATH`, `https://HOST/PATH`, or `h2c://HOST/PATH` for
    /// HTTP/2 over cleartext by prior knowledge.
    pub fn request(&self, method: Method, url: &str) -> Request {
        Request::new(self.clone(), method, url)
    }

    /// A GET request.
    pub fn get(&self, url: &str) -> Request {
        self.request(Method::GET, url)
    }

    /// A HEAD request.
    pub fn head(&self, url: &str) -> Request {
        self.request(Method::HEAD, url)
    }

    /// A POST request.
    pub fn post(&self, url: &str) -> Request {
        self.request(Method::POST, url)
    }

    /// A PUT request.
    pub fn put(&self, url: &str) -> Request {
        self.request(Method::PUT, url)
    }

    /// A DELETE request.
    pub fn delete(&self, url: &str) -> Request {
        self.request(Method::DELETE, url)
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &ClientLimits {
        &self.engine.settings.limits
    }

    fn tls(&self) -> Result<ClientTls, ClientError> {
        let settings = &self.engine.settings;
        let made = self.engine.tls.get_or_init(|| {
            let trust = platform_trust()
                .map_err(|error| ClientError::new(ErrorKind::Tls, error.to_string()))?;
            tls_settings(&trust, settings)
        });
        made.clone()
    }

    /// Where connections for `target` go to, as it was found lately or is found now. The system's resolver may
    /// hang: another thread asks it.
    fn destinations(
        &self,
        target: &Url,
        latest: Option<Instant>,
    ) -> Result<Vec<Destination>, ClientError> {
        if let Ok(address) = target.host.parse::<IpAddr>() {
            return Ok(vec![Destination::Inet((address, target.port()).into())]);
        }
        if let Some(known) = self.engine.addresses.get(target) {
            return Ok(known);
        }
        let failed = |what: String| ClientError::new(ErrorKind::Resolve, what);
        let (sender, receiver) = mpsc::channel();
        let (host, port) = (target.host.clone(), target.port());
        let asked = self.engine.offload.submit(move || {
            // Nobody may wait for it any more.
            let _ = sender.send(resolve(&host, port));
        });
        asked.map_err(|error| failed(error.to_string()))?;
        let mut patience = self.limits().resolve_timeout;
        if let Some(latest) = latest {
            patience = patience.min(latest.saturating_duration_since(Instant::now()));
        }
        let addresses = receiver
            .recv_timeout(patience)
            .map_err(|_| {
                let what = format!("the name `{}` was not looked up in time", target.host);
                ClientError::timeout(&what)
            })?
            .map_err(|error| failed(error.to_string()))?;
        let found: Vec<_> = addresses.into_iter().map(Destination::Inet).collect();
        self.engine.addresses.keep(target, &found);
        Ok(found)
    }

    /// What is spoken with `target`, and with what.
    fn dial(&self, target: &Url) -> Result<(Dial, bool), ClientError> {
        let versions = self.engine.settings.versions;
        let is_prior = target.scheme == Scheme::H2c || versions == Versions::Http2;
        let speaks = match target.scheme {
            Scheme::Https => Speaks::Tls {
                settings: self.tls()?,
                server_name: self
                    .engine
                    .settings
                    .server_name
                    .as_ref()
                    .unwrap_or(&target.host)
                    .clone(),
                required: match versions {
                    Versions::Any | Versions::Http3 => None,
                    Versions::Http1 => Some(Alpn::Http11),
                    Versions::Http2 => Some(Alpn::H2),
                },
            },
            _ if is_prior => Speaks::Http2,
            _ => Speaks::Http1,
        };
        let (timeout, preamble) = (self.limits().connect_timeout, &self.engine.settings.preamble);
        Ok((Dial { speaks, timeout, preamble: preamble.clone() }, is_prior))
    }

    fn patience(&self, latest: Option<Instant>) -> Patience {
        let limits = self.limits();
        Patience {
            wait: limits.wait_timeout,
            answer: limits.response_timeout,
            pause: Some(limits.pause_timeout),
            latest,
        }
    }

    /// Hands a request to the client's thread. `up`: its body, and whether that is all of it.
    fn hand_in(
        &self,
        request: &Request,
        target: &Url,
        up: Option<Bytes>,
        ends: bool,
        latest: Option<Instant>,
    ) -> Result<Arc<PendingRequest>, ClientError> {
        let mut destinations = if request.via.is_empty() {
            self.destinations(target, latest)?
        } else {
            request.via.clone()
        };
        if self.engine.settings.versions == Versions::Http3 {
            if target.scheme != Scheme::Https {
                let what = "HTTP/3 needs a URL with https";
                return Err(ClientError::new(ErrorKind::Request, what));
            }
            for destination in &mut destinations {
                if let Destination::Inet(address) = *destination {
                    *destination = Destination::Datagrams(address);
                }
            }
        }
        let (dial, is_prior) = self.dial(target)?;
        let mut fields = request.fields.clone();
        if let Some(name) = &self.engine.settings.user_agent {
            fields.entry(USER_AGENT).or_insert_with(|| name.clone());
        }
        let head = RequestHead {
            method: request.method.clone(),
            scheme: target.scheme.of_requests().name(),
            authority: target.authority(),
            path: target.path.clone(),
            fields,
        };
        let pending = Arc::new(PendingRequest::new(head, up, ends, Arc::clone(&self.engine.post)));
        let origin = Origin {
            is_tls: target.scheme == Scheme::Https,
            is_prior,
            host: target.host.to_ascii_lowercase(),
            port: target.port(),
            via: request.via.clone(),
        };
        let job = Job { origin, dial, destinations, pending: Arc::clone(&pending) };
        self.engine.post.send(Command::Begin(Box::new(job)));
        Ok(pending)
    }

    /// Sends a request, follows where it leads, and waits for the head of the answer.
    pub(crate) fn carry_out(&self, mut request: Request) -> Result<Response, ClientError> {
        let latest = request.timeout.map(|timeout| Instant::now() + timeout);
        let mut target = checked(&mut request)?;
        let mut redirections = 0;
        loop {
            request.frame();
            let about = |error: ClientError| error.about(&target.to_string());
            let response = self.ask(&mut request, &target, latest).map_err(about)?;
            let count_max = match (self.engine.settings.redirects, request.redirects_max) {
                (Redirects::Follow { count_max }, _) => count_max,
                (Redirects::Answer, Some(count_max)) => count_max,
                (Redirects::Answer, None) => return Ok(response),
            };
            let Some(next) = redirect::next(&mut request, &target, &response)? else {
                return Ok(response);
            };
            redirections += 1;
            if redirections > count_max {
                let what = format!("more than {count_max} redirections");
                return Err(about(ClientError::new(ErrorKind::Redirect, what).touched()));
            }
            target = next;
        }
    }

    /// One request and its answer; sent again where that is safe.
    fn ask(
        &self,
        request: &mut Request,
        target: &Url,
        latest: Option<Instant>,
    ) -> Result<Response, ClientError> {
        let is_idempotent = request.method.is_idempotent();
        let mut retries_left = self.limits().retries_count;
        loop {
            let patience = self.patience(latest);
            let answered = match &mut request.content {
                Content::Reader(reader) => {
                    let mut reader = std::mem::replace(reader, Box::new(std::io::empty()));
                    let pending = self.hand_in(request, target, None, false, latest)?;
                    let (room, sender) = (self.limits().upload_bytes, Arc::clone(&pending));
                    let pumping = std::thread::Builder::new().name("bolide-upload".into());
                    pumping.spawn(move || pump(&mut reader, &sender, room, &patience)).map_err(
                        |error| {
                            pending.abandon();
                            ClientError::new(ErrorKind::Body, format!("no thread: {error}"))
                        },
                    )?;
                    retries_left = 0;
                    pending.answer(&patience).map(|answer| (pending, answer))
                }
                content => {
                    let up = match content {
                        Content::Bytes(bytes) => Some(bytes.clone()),
                        _ => None,
                    };
                    let pending = self.hand_in(request, target, up, true, latest)?;
                    pending.answer(&patience).map(|answer| (pending, answer))
                }
            };
            match answered {
                Ok((pending, answer)) => {
                    let client = self.clone();
                    return Ok(Response::new(
                        pending,
                        answer,
                        client,
                        patience,
                        target.to_string(),
                    ));
                }
                Err(error) => {
                    if error.kind() == ErrorKind::Connect {
                        self.engine.addresses.forget(target);
                    }
                    let is_safe = matches!(error.kind(), ErrorKind::Closed)
                        && (error.is_retry_safe() || (is_idempotent && error.unanswered));
                    if !is_safe || retries_left == 0 {
                        return Err(error);
                    }
                    retries_left -= 1;
                }
            }
        }
    }

    /// Begins a request whose body is to be written.
    pub(crate) fn begin(&self, mut request: Request) -> Result<BodyWriter, ClientError> {
        let latest = request.timeout.map(|timeout| Instant::now() + timeout);
        let target = checked(&mut request)?;
        request.content = Content::Reader(Box::new(std::io::empty()));
        request.frame();
        let about = |error: ClientError| error.about(&target.to_string());
        let pending = self.hand_in(&request, &target, None, false, latest).map_err(about)?;
        Ok(BodyWriter {
            pending,
            client: self.clone(),
            patience: self.patience(latest),
            room: self.limits().upload_bytes,
            url: target.to_string(),
            is_ended: false,
            is_answered: false,
        })
    }
}

/// Where a request goes, if it can be sent at all.
fn checked(request: &mut Request) -> Result<Url, ClientError> {
    if let Some(error) = request.error.take() {
        return Err(error);
    }
    if request.method == Method::CONNECT {
        let what = "CONNECT is not supported: it is for proxies";
        return Err(ClientError::new(ErrorKind::Request, what));
    }
    Url::parse(&request.url, &SCHEMES)
        .map_err(|error| ClientError::new(ErrorKind::Request, error.to_string()))
}

/// Sends what `reader` yields, as far as the server wants it.
fn pump(reader: &mut dyn Read, pending: &Arc<PendingRequest>, room: usize, patience: &Patience) {
    loop {
        let mut piece = BytesMut::zeroed(PIECE_BYTES);
        let count = match reader.read(&mut piece) {
            Ok(0) => return pending.finish(None),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let what = format!("the request's body can't be read: {error}");
                return pending.give_up(ClientError::new(ErrorKind::Body, what).touched());
            }
        };
        piece.truncate(count);
        // An answer may have come before the body was wanted; an error, whoever waits for it is told.
        if !pending.push(piece.freeze(), room, patience).unwrap_or(false) {
            return;
        }
    }
}
