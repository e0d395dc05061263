//! Certificates by ACME (RFC 8555): ordered, renewed and stored by a thread of its own.
//!
//! An [`Acme`] has a list of names and keeps a certificate for each: what is stored is in force at once, what is missing or due is
//! ordered. [`Results`] has the table of certificates, from which listeners take them and those of `tls-alpn-01` challenges
//! (RFC 8737), and the responses of `http-01` challenges. Renewal follows the CA's renewal
//! information (RFC 9773), or two thirds of the lifetime.
//!
//! The protocol itself is instant-acme's, whose requests the blocking client of `bolide-client` sends: no runtime is needed.
//!
//! This crate must never know listeners, routes or configuration files.

mod certificate;
mod event;
mod failure;
mod keeper;
pub mod limits;
mod order;
mod responses;
mod schedule;
mod settings;
mod storage;
mod transport;

pub use event::Event;
pub use keeper::{Acme, NameState, Results};
pub use limits::AcmeLimits;
pub use responses::Responses;
pub use settings::{Challenge, Settings};
