//! The event loop of Bolide: sockets, timers and threads; no HTTP.
//!
//! A [`Worker`] is one thread's loop. It owns its poller, its connections, its timers and one
//! [`Service`]; nothing is shared between workers, and a [`Mailbox`] is the only way from one thread to
//! a session of another. [`run()`] starts several workers on a set of [`Listeners`].
//!
//! Each connection has a session. It is called when bytes have arrived, when its deadline has come,
//! when its output has drained, or when it has mail; what it then wants stands in the [`After`] that
//! it returns. What concerns the whole worker (connections outward, a turn for another session, a precise
//! alarm) it puts on the [`Agenda`]. Buffers belong to the worker: an idle connection owns none.
//!
//! The crate must never know what the bytes mean.

mod accept;

mod acceptor;
mod account;
mod address;
mod affinity;
mod agenda;
mod budget;
mod close_cause;
mod closing;
mod datagram_pipe;
mod datagram_sockets;
mod datagram_turns;
mod file;
mod gather;
pub mod kernel;

pub mod limits;
mod listener;
mod mailbox;
mod meter;
mod offload;
mod open_listeners;
mod outside;
mod outward;
mod outward_datagrams;
mod pace;
mod quiet;
mod readiness;
mod run;
mod seed;
mod service;
mod signals;
mod sink;
mod slots;
mod socket;
mod stats;
mod ticks;
mod timer_wheel;
mod worker;
mod worker_context;

pub use address::Address;
pub use affinity::pin_to_core;
pub use agenda::{Agenda, Destination, Outbound};
pub use close_cause::CloseCause;
pub use datagram_pipe::DatagramPipe;
pub use file::{FileVersion, SharedFile};
pub use kernel::{
    BbrInfo, Clocks, FileLimit, Kernel, MioDatagrams, MioKernel, MioListener, Path, SocketPath,
    TcpInfo, file_limit, hand_on, inherited, raise_file_limit,
};
pub use limits::{Limits, OffloadLimits};
pub use listener::{BindError, Listeners, Offloads};
pub use mailbox::Mailbox;
pub use meter::{Measured, Meter, STAGES_COUNT, Sampling, Stage};
pub use offload::{Full, Job, Offload};
pub use run::{Around, Config, Handle, Stopper, run};
pub use seed::random_seed;
pub use service::{Accepted, After, Arriving, Close, DatagramFlush, Routed, Service, Turn};
pub use signals::{Signal, Signals};
pub use slots::Token;
pub use stats::{ClosedCounts, LoopWork, Stats};
pub use worker::Worker;
