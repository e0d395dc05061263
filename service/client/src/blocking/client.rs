//! The client that users have: a thread with an event loop of its own, asked from any thread.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use bolide_connection::{Alpn, ClientOptions, ClientTls, Identity, Limits, Trust, WallClock};
use bolide_eventloop::{Destination, Limits as LoopLimits, MioKernel, Offload, Worker};
use bolide_semantics::{Scheme, Url};
use http::header::HeaderValue;

use super::addresses::Addresses;
use super::agent::Agent;
use super::error::{ClientError, ErrorKind};
use super::pending_request::CommandQueue;
use crate::limits::{CONNECTION_WINDOW_BYTES, RESPONSE_WINDOW_BYTES};
use crate::{ClientLimits, Dial, Speaks, platform_trust, resolve};

/// Which versions a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// The protocol that ALPN agrees on over TLS, HTTP/2 preferred; HTTP/1.1 over cleartext.
    #[default]
    Any,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; over cleartext by prior knowledge (RFC 9113 §3.3).
    Http2,
    /// HTTP/3, of servers with `https` (RFC 9114 §3.1).
    Http3,
}

/// Policy for redirections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// They are returned, as other responses are.
    #[default]
    Return,
    /// So many are followed for one request; one more is an error. What may go to one server only
    /// (`Authorization`, `Cookie`) stays behind when another is asked, and from https nothing leads to http.
    Follow {
        /// How many.
        count_max: u32,
    },
}

/// Builder of a client.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    limits: ClientLimits,
    pub(super) versions: Versions,
    trust: Option<Trust>,
    pub(super) redirects: Redirects,
    pub(super) user_agent: Option<HeaderValue>,
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

    /// Sets whose certificates it trusts. Default: those that the operating system does, or that the environment's
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Sets whether redirections are followed. Default: no, they are returned.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// Sets what `User-Agent` says, when a request does not say it. Default: nothing.
    #[must_use]
    pub fn user_agent(mut self, name: &str) -> Self {
        self.user_agent = HeaderValue::from_str(name).ok();
        self
    }

    /// Sets what each connection begins with, also before TLS: a PROXY header, say. Default: nothing.
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
                // The maker of the client waits for this.
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

/// State that all handles of a client share.
pub(super) struct Engine {
    pub(super) post: Arc<CommandQueue>,
    pub(super) settings: ClientBuilder,
    /// Read when the first request needs it.
    tls: OnceLock<Result<ClientTls, ClientError>>,
    offload: Offload,
    pub(super) addresses: Addresses,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(bell) = self.post.bell() {
            bell.shut_down(Instant::now());
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // There is no owner left to tell how it ended.
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
/// let mut response = client.get("https://example.org/").header("accept", "text/html").send()?;
/// println!("{} by {:?}", response.status(), response.version());
/// let mut page = String::new();
/// response.read_to_string(&mut page)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) engine: Arc<Engine>,
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

    /// Returns where connections for `target` go to, as it was found lately or is found now. The system's resolver may
    /// hang: another thread asks it.
    pub(super) fn destinations(
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
            // Perhaps nothing waits for it any more.
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

    /// Returns what is spoken with `target`, and with what.
    pub(super) fn dial(&self, target: &Url) -> Result<(Dial, bool), ClientError> {
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
}
