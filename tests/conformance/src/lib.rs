//! HTTP/1.1 by RFC section, over raw sockets, against any server.
//!
//! A [`Case`] is what a client sends, the responses that the RFC allows, and what has to happen to the
//! connection afterwards. It has its own reader and writer: nothing of Bolide is used to test Bolide.

mod case;
mod expected;
mod fixture;
pub mod rfc9110;
pub mod rfc9112;
mod runner;
mod target;
mod wire;

pub use case::{After, Case, Outcome};
pub use expected::Expected;
pub use fixture::directory;
pub use runner::check;
pub use target::Target;
