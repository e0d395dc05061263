//! Bytes, timers and threads: a thread-per-core event loop on epoll and kqueue.
//!
//! A [`Worker`] owns its poller, listeners, slots, timers and buffers, and drives a [`Service`]: one
//! session per socket, one turn per readiness. Nothing is shared between workers; a [`Mailbox`]
//! leads into each.
//!
//! This crate must never know what the bytes mean. All of its unsafe code is in `kernel/`.

mod acceptor;
mod error;
pub mod kernel;
mod listener;
mod mailbox;
mod run;
mod service;
mod signals;
mod slots;
mod socket;
mod stats;
mod timer_wheel;
mod worker;

pub use error::Error;
pub use kernel::limits::raise_file_limit;
pub use listener::Listener;
pub use mailbox::Mailbox;
pub use run::{Config, Handle, run};
pub use service::{Accepted, After, Close, CloseCause, Service, Token, Turn};
pub use signals::Signals;
pub use stats::Stats;
pub use worker::{Ended, Worker};
