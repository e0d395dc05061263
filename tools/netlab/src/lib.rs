//! A network lab on one machine: three network namespaces, client – router – server, with rate,
//! queue, delay, jitter, loss and reordering on the router, for each direction.
//!
//! [`lab`] makes, finds and removes labs; [`spec`] says what is asked; [`line`](mod@line) is the delay line that
//! stands in where the kernel has no netem; [`raw`] is TCP without any protocol on it; [`command`] is
//! `bolide net`. Linux only; elsewhere the command says so.

pub mod command;
pub mod limits;
pub mod line;
pub mod profile;
pub mod quantity;
pub mod raw;
pub mod shape;
pub mod spec;

mod mistake;
#[cfg(target_os = "linux")]
mod text_table;

#[cfg(target_os = "linux")]
pub mod iperf;
#[cfg(target_os = "linux")]
pub mod lab;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod no_lab;

pub use mistake::Mistake;

/// Labs where there are none.
#[cfg(not(target_os = "linux"))]
pub mod lab {
    pub use crate::no_lab::Lab;
}
