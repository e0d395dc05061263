//! The reverse proxy of Bolide: a handler that asks another server.
//!
//! [`ReverseProxy`] answers a request with what one of its [`Upstream`]s says, in any pair of versions. It makes
//! its connections in the worker of the request, so that nothing passes between threads: each worker has a
//! pool of them for each upstream.
//!
//! An exchange has two sides. The client's (`forwarded_request`) is an exchange of the server; the upstream's (`exchanges`)
//! is the owner of a connection. They share a `SharedExchange`, and each calls the other when it has
//! put something there. A body's bytes are reported as consumed on the one side when the other has taken
//! them, so that a slow end slows the other down and what is held in between is bounded.
//!
//! Concurrently with the requests, one thread for each proxy (`watch`) looks names up again and, where that is turned on,
//! checks the health of upstreams; workers read what it found. What goes wrong is counted
//! ([`ProxySettings::stats`]) and told by events of `tracing` whose target is `bolide::proxy`, in at most one
//! line a second for each upstream.
//!
//! What goes upstream is written by our encoders from a parsed message, never copied from the wire.

mod affinity;
mod backends;
mod client_pools;
mod connection;
mod counters;
mod ejection;
mod exchanges;
mod failure;
mod forwarded_request;
mod health;
mod journal;
pub mod limits;
mod outgoing;
mod proxy;
mod pseudonym;
mod settings;
mod shared_exchange;
mod tunnels;
mod upstream;
mod watch;
mod worker;

pub use affinity::{HashKey, SameSite, StickyCookie};
pub use bolide_client::{ResolveError, Trust};
pub use counters::{Latency, UpstreamStats};
pub use health::{HealthCheck, HealthKind};
pub use limits::ProxyLimits;
pub use proxy::ReverseProxy;
pub use settings::{Balance, DotSegments, Origin, ProxySettings};
pub use upstream::{Upstream, UpstreamError};
