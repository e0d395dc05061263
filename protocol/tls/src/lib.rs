//! TLS 1.3 and 1.2 as a byte transform: records in, plaintext out, and the other way round.
//!
//! The only crate of Bolide that names rustls. It never sees a socket, a file or a clock: records
//! come in a [`bolide_buffers::ReceiveBuffer`], leave through an `io::Write`, certificates come in
//! as bytes and time as a function.

mod certificates;
mod client_certificate;
mod client_config;
mod error;
mod issued;
mod layer;
mod limits;
mod names;
mod provider;
mod renewal;
mod rules;
mod server_config;
mod tickets;

pub use certificates::Identity;
pub use client_certificate::ClientCertificate;
pub use client_config::{ClientOptions, ClientTls, Trust};
pub use error::{IdentityError, TlsFailure};
pub use issued::{Issued, IssuedNames};
pub use layer::{Alpn, HandshakeFacts, Opened, TlsLayer};
pub use provider::WallClock;
pub use renewal::RenewalFacts;
pub use rules::{HandshakeRules, TlsVersion};
pub use server_config::{Clients, ServerOptions, ServerTls};
