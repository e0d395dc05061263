//! Bolide: an HTTP engine. HTTP/1.1, HTTP/2 and HTTP/3 on a thread-per-core event loop.
//!
//! A server in ten lines:
//!
//! ```no_run
//! use bolide::{Router, Server};
//!
//! fn main() -> Result<(), bolide::Error> {
//!     Server::new().http("127.0.0.1:8080").run(|| {
//!         Router::new()
//!             .get("/", |_| "Hello")
//!             .get("/users/{id}", |request| format!("user {}", request.param("id").unwrap()))
//!     })
//! }
//! ```
//!
//! # Handlers
//!
//! A [`Handler`] sees a borrowed [`Request`] and decides:
//!
//! - **at once**: it returns anything that is a [`Response`], such as a `&'static str`, a `String`,
//!   [`Bytes`] or a [`StatusCode`](http::StatusCode). This costs no allocation, no queue and no other thread.
//! - **when the body is complete**: [`collect`] gathers it under a limit and then calls a function with what is
//!   [kept](server::KeptRequest) of the request: parameters, fields, addresses.
//! - **piece by piece**: [`Response::stream`] pulls a [`BodyStream`](server::BodyStream) as the client takes it;
//!   [`Reply::Exchange`] hands the whole exchange, body and all, to an object of yours.
//! - **later**: [`Request::responder`] answers from any thread; the handler returns [`Reply::Later`].
//! - **event by event**: [`Request::events`] is a stream of Server-Sent Events, and what sends them from any thread.
//!
//! [`server::with_state`] lends handlers what they share; with the feature `json`, `server::Json` and
//! `server::read_json` write and read values.
//!
//! [`StaticFiles`](files::StaticFiles) serves a directory, next to other routes or alone:
//!
//! ```no_run
//! # use bolide::{Router, Server, files::StaticFiles};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files = StaticFiles::new("site")?;
//! let routes = move || files.routes(Router::new().get("/ping", |_| "pong"));
//! Server::new().http("127.0.0.1:8080").run(routes)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`ReverseProxy`](proxy::ReverseProxy) responds with what other servers say:
//!
//! ```no_run
//! # use bolide::{Router, Server};
//! # use bolide::proxy::{ProxySettings, ReverseProxy, Upstream};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = ProxySettings::new(vec![Upstream::parse("http://127.0.0.1:9000")?])?;
//! let routes = move || Router::new().fallback(ReverseProxy::new(&settings));
//! Server::new().http("127.0.0.1:8080").run(routes)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`websocket`] has WebSocket connections, over HTTP/1.1 and HTTP/2 alike.
//!
//! Handlers run on the worker's thread: what takes long belongs on a thread of its own, with a
//! [`Responder`] or a [`Waker`](server::Waker) to come back by.
//!
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `tls` | [`tls`]: HTTPS and HTTP/3, for servers, clients and upstreams; without it a build takes about half the time | yes |
//! | `client` | [`client`]: requests to other servers | yes |
//! | `files` | [`files`]: the files of a directory | yes |
//! | `proxy` | [`proxy`]: upstream servers behind a route | yes |
//! | `tower` | `tower`: services of axum, tonic and tower; brings tokio and hyper | no |
//! | `json` | `server::Json` and `server::read_json`, by serde | no |
//! | `mimalloc` | quiet workers give memory back, in programs whose allocator is mimalloc | no |
//!
//! # axum, tonic, tower
//!
//! With the feature `tower`, `bolide::tower::serve(listener, app).await` takes the place of
//! `axum::serve`: any `tower::Service` of `http::Request` runs on the workers, and what it waits for
//! by tokio's means works. Which to take:
//!
//! - a [`Handler`] when every microsecond counts: it borrows the request and allocates nothing;
//! - a service when the application is one of axum or tonic, or wants extractors, middleware and
//!   `async`. It costs what `http::Request`, its `HeaderMap` and the boxed futures of the application
//!   cost, and beyond that no task, no queue and no other thread when it is ready at once: of a `/ping`
//!   over HTTP/1.1, a bare handler takes 1,920 instructions, axum 9,000, of which 1,440 are the
//!   adapter's (on hyper axum takes 10,020); over h2c 2,200, 7,400 and 1,290 (20,700). In time, the
//!   adapter's part is below 0.5 µs.
//!
//! `docs/MIGRATING.md` shows the changed line and tells what differs.

pub use ::http;
pub use bolide_server::{
    Body, Bytes, Error, Handler, Reply, Request, Responder, Response, Router, Server, collect,
};

/// A running server, its listeners, limits and logs; and what handlers are made of beyond a function.
pub mod server {
    pub use bolide_server::{
        AbortReason, AccessLog, AccessLogStats, Alternatives, Blame, BodyLimit, BodyStream,
        Congestion, CongestionControl, ConnectionLimits, EarlierProcess, End, EventError,
        EventSender, Exchange, Fields, FilePiece, FileVersion, ForwardedFields, Head, Http1Limits,
        Http2Limits, Http3Limits, Ingress, Io, KeptRequest, LOG_PLACEHOLDERS, Limits, Listener,
        ListenerSockets, LogFormat, LogLimits, LogTarget, LogTemplate, LoopLimits, Network,
        NetworkError, Networks, Policy, ProxyProtocol, ProxyVersion, Pull, Pulse, RequestBody,
        RequestId, ResponseFields, Rest, RouteError, Running, ServerEvent, SharedFile, Stopper,
        Waker, body_limit, detach, with_state,
    };
    #[cfg(feature = "json")]
    pub use bolide_server::{Json, JsonError, read_json};

    /// The groups of limits in [`ConnectionLimits`] and [`LoopLimits`].
    pub mod limits {
        pub use bolide_server::{
            Opening, http1_limits as http1, http2_limits as http2, http3_limits as http3,
            loop_limits as event_loop,
        };
    }
}

/// Certificates, and what a handshake agreed on; with the feature `tls`.
#[cfg(feature = "tls")]
pub mod tls {
    pub use bolide_server::{
        Alpn, ClientCertificate, Clients, HandshakeFacts, HandshakeRules, Identity, IdentityError,
        Issued, IssuedNames, ServerOptions, Tls, TlsVersion,
    };
}

/// WebSocket connections (RFC 6455, RFC 8441, RFC 9220), over every version of HTTP alike.
pub mod websocket {
    pub use bolide_server::PeerLimits;
    pub use bolide_server::websocket::*;
}

/// Numbers about a server: metrics, the routes of an admin listener, the profile of CPU time.
pub mod metrics {
    pub use bolide_server::{
        BbrInfo, ClosedCounts, EndCounts, Exposition, LoopWork, Metric, MetricSource, Metrics,
        PROFILE_ONE_IN, Profile, ProfileSnapshot, STAGE_BOUNDS_NS, ServerState, Snapshot, Stage,
        StageSnapshot, Stats, TcpInfo, UpstreamTimes, admin_routes,
    };
}

/// The files of a directory; with the feature `files`.
#[cfg(feature = "files")]
pub mod files {
    pub use bolide_server::{Offload, OffloadLimits};
    pub use bolide_static_files::{
        Disk, DiskFile, Found, Listed, RootError, Stamp, StaticFiles, Time,
    };
}

/// Upstream servers behind a route; with the feature `proxy`.
#[cfg(feature = "proxy")]
pub mod proxy {
    pub use bolide_reverse_proxy::{
        Balance, DotSegments, HashKey, HealthCheck, HealthKind, Latency, Origin, ProxyLimits,
        ProxySettings, ResolveError, ReverseProxy, SameSite, StickyCookie, Trust, Upstream,
        UpstreamError, UpstreamStats, limits,
    };
}

/// A client for HTTP/1.1 and HTTP/2: requests from any thread, by calls that wait; with the feature `client`.
///
/// A [`Client`](client::Client) has one thread with an event loop and keeps connections to be used again. Bodies
/// stream both ways, at the pace of the slower end:
///
/// ```
/// use std::io::{Read, Write};
/// use bolide::client::Client;
/// use bolide::{Response, Router, Server, collect};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let echo = || Router::new().handle_post("/echo", collect(|_, body| Response::from(body)));
/// let server = Server::new().workers(1).http("127.0.0.1:0").start(echo)?;
/// let address = server.addresses()[0].unwrap();
///
/// let client = Client::new()?;
/// let mut upload = client.post(&format!("http://{address}/echo")).start()?;
/// upload.write_all(b"piece by piece")?;
/// let mut response = upload.finish()?;
/// assert_eq!(response.status(), 200);
/// let mut text = String::new();
/// response.read_to_string(&mut text)?;
/// assert_eq!(text, "piece by piece");
/// # server.shut_down();
/// # server.join()?;
/// # Ok(())
/// # }
/// ```
///
/// What a request is given up for stands in a [`ClientError`](client::ClientError), with whether it is safe to
/// send it again. [`Request::events`](client::Request::events) reads Server-Sent Events.
#[cfg(feature = "client")]
pub mod client {
    pub use bolide_client::{
        BodyWriter, Client, ClientBuilder, ClientError, ClientLimits, Destination, ErrorKind,
        Event, EventParser, EventSource, Redirects, Request, Response, TooLong, Trust, Versions,
    };
}

/// Applications of tower, such as axum's and tonic's, on this engine; with the feature `tower`.
#[cfg(feature = "tower")]
pub mod tower {
    pub use bolide_tower_adapter::*;
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// So do those of the list of features.
#[cfg(doctest)]
#[doc = include_str!("../../docs/FEATURES.md")]
mod features {}
