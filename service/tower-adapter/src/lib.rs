//! Any tower service as a handler: axum applications, tonic services, and those of hyper's own
//! trait by [`HyperService`].
//!
//! A service of `http::Request<Body>` is given to [`serve`] with a listener. Its futures run on the
//! worker that owns the connection: the first poll happens inside the handler, and a future that is
//! ready then costs no task, no queue and no other thread. One that is not is kept with its exchange
//! and woken through the worker's mailbox, from any thread. tokio's timers, sockets, tasks and
//! channels work, for the futures run inside a tokio runtime's context.
//!
//! Bodies stream both ways, and neither is read ahead of what the other side takes, but for a short one that has
//! arrived with its head, and for one piece behind a short first one. Upgrades work as
//! with hyper: by [`hyper::upgrade::OnUpgrade`] in the request's extensions.

mod body;
mod client;
mod exchange;
mod grpc_deadline;
mod handler;
mod hyper_service;
mod informational;
mod listener;
mod panics;
mod request;
mod response_heads;
mod runtime;
mod serve;
#[cfg(test)]
mod simulated;
mod spare;
mod tls_info;
mod translated;
mod tunnel;
mod wake;
mod worker;

pub use body::{Body, BodyError};
pub use client::Client;
pub use grpc_deadline::{DeadlineBody, DeadlineFuture, GrpcDeadline};
pub use hyper_service::HyperService;
pub use informational::{Informational, InformationalError};
pub use listener::IntoListener;
pub use serve::{
    Cloned, Disconnect, MakeWorkerService, Serve, default_limits, run, serve, serve_with,
};
pub use tls_info::TlsInfo;
