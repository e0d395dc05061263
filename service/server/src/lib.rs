//! The HTTP server of Bolide: listeners, router, handlers, limits, shutdown.
//!
//! Each worker is a thread with an event loop, a router and buffers of its own; nothing is shared
//! between workers but what a handler shares itself. A [`Handler`] answers at once, takes the
//! [`Exchange`] over to stream, or keeps a [`Responder`] to answer later.

mod admin;
mod advertised;
mod announced;
mod changes;
mod clients;
mod coding;
mod collect;
mod derived;
mod ends;
mod error;
mod events;
mod events_left;
mod exchange;
mod file_piece;
mod followed_datagrams;
mod forwarded;
mod handler;
mod handover;
mod ingress;
#[cfg(feature = "json")]
mod json;
mod kept;
pub mod limits;
mod local_waker;
mod networks;
mod observe;
mod outward;
mod patience;
mod policy;
mod proxy_header;
mod quic;
mod refusal;
mod request;
mod responder;
mod response;
mod response_settings;
mod router;
mod server;
mod server_timing;
mod service;
mod session;
mod tuning;
mod watchdog;
pub mod websocket;
mod work;

pub use admin::{MetricSource, admin_routes};
pub use bolide_buffers::{
    Chunk, DatagramSink, Flush, PieceQueue, SendQueue, WaitingPieces, detach,
};
pub use bolide_connection::{
    Alpn, ClientCertificate, Clients, Congestion, CongestionControl, HandshakeFacts,
    HandshakeRules, Http1Limits, Http2Limits, Http3Limits, Identity, IdentityError, Issued,
    IssuedNames, Limits as ConnectionLimits, Opening, ServerOptions, TlsVersion, http1_limits,
    http2_limits, http3_limits,
};
pub use bolide_eventloop::{
    After, Agenda, Around, BbrInfo, CloseCause, ClosedCounts, Destination, FileVersion,
    Limits as LoopLimits, LoopWork, Offload, OffloadLimits, SharedFile, Stats, TcpInfo, Token,
    Turn, limits as loop_limits,
};
pub use bolide_observability::{
    AccessLog, AccessLogStats, ConnectionCount, DURATION_BOUNDS_NS, EndCounts, Exposition,
    HistogramSnapshot, Http2Snapshot, JSON_FIELDS, LOG_PLACEHOLDERS, LogFormat, LogLimits,
    LogTarget, LogTemplate, METRICS, Metric, Metrics, PROFILE_ONE_IN, Profile, ProfileSnapshot,
    Protocol, RouteSnapshot, STAGE_BOUNDS_NS, ServerState, Snapshot, Stage, StageSnapshot,
    Standing, TextPart, TlsSnapshot, UpstreamTimes, text_parts, trace_id,
};
pub use bolide_semantics::{AbortReason, Blame, End, FieldName, Head};
pub use bytes::Bytes;
pub use clients::OpenCounts;
pub use coding::{BodyEncoder, Codec, Coding};
pub use collect::collect;
pub use error::Error;
pub use events::{EventError, EventSender, ServerEvent};
pub use exchange::Io;
pub use file_piece::FilePiece;
pub use followed_datagrams::EarlierProcess;
pub use handler::{Alternatives, BodyLimit, Exchange, Handler, Reply, body_limit, with_state};
pub use handover::{ListenerSockets, Pulse};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
pub use ingress::{ForwardedFields, Ingress, ProxyProtocol, RequestId};
#[cfg(feature = "json")]
pub use json::{Json, JsonError, read_json};
pub use kept::KeptRequest;
pub use limits::{Limits, PeerLimits, WHOLE_BODY_BYTES};
pub use local_waker::LocalWaker;
pub use networks::{Network, NetworkError, Networks};
pub use outward::{Dialled, Outbound, Outward, OutwardQuic};
pub use policy::{Pace, Policy, ResponseFields};
pub use proxy_header::{ProxyHeader, ProxyHeaderError, ProxyVersion};
pub use request::{Request, RequestBody, UserOf, query_pairs};
pub use responder::{Message, MovableWaker, Responder, Waker};
pub use response::{Body, BodyStream, Fields, Pull, Response, Trailed};
pub use router::{Rest, RouteError, Router};
pub use server::{Listener, Running, Server, Stopper, Tls, worker_service};
