//! QUIC without I/O, as the transport of HTTP/3 (RFC 9000, RFC 9001, RFC 9221).
//!
//! The only crate of Bolide that names quinn-proto. An [`Endpoint`] is what one UDP socket is: datagrams come in, with the
//! time, and say which [`Connection`] they are for; connections give datagrams to be sent, one deadline each, and the
//! streams that [`bolide_h3`] works with. It never sees a socket or a clock.

mod connection;
mod endpoint;
mod identifiers;
pub mod limits;

pub use connection::{Connection, QuicStats};
pub use endpoint::{Arrived, Delivery, Endpoint, Key, Membership, QuicError, Secret};
