//! QUIC without I/O, as the transport of HTTP/3 (RFC 9000, RFC 9001, RFC 9221).
//!
//! The only crate of Bolide that names quinn-proto. An [`Endpoint`] is what one UDP socket is: datagrams come in, with the
//! time, and say which [`Connection`] they are for; connections give datagrams to be sent, one deadline each, and the
//! streams that [`bolide_h3`] works with. It never sees a socket or a clock.
//!
//! Without the feature `quinn` these types have no values: what is written for them compiles, and is left out.

#[cfg(not(feature = "quinn"))]
mod absent;
#[cfg(feature = "quinn")]
mod arrivals;
#[cfg(feature = "quinn")]
mod connection;
#[cfg(feature = "quinn")]
mod endpoint;
mod facts;
#[cfg(feature = "quinn")]
mod identifiers;
pub mod limits;
#[cfg(feature = "quinn")]
mod reasons;
#[cfg(feature = "quinn")]
mod steering;
#[cfg(all(feature = "quinn", any(test, fuzzing)))]
mod unprotected;
#[cfg(feature = "quinn")]
mod windows;

#[cfg(not(feature = "quinn"))]
pub use absent::{Arrived, Connection, Delivery, Endpoint, Key, steering};
#[cfg(feature = "quinn")]
pub use arrivals::Arrived;
#[cfg(feature = "quinn")]
pub use connection::Connection;
#[cfg(feature = "quinn")]
pub use endpoint::{Delivery, Endpoint, Key};
pub use facts::{Congestion, CongestionControl, Membership, QuicError, QuicStats, Secret};
#[cfg(feature = "quinn")]
pub use steering::steering;
