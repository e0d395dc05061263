//! TLS 1.3 and 1.2 as a byte transform: records in, plaintext out, and the other way round.
//!
//! The only crate of Bolide that names rustls. It never sees a socket, a file or a clock: records
//! come in a [`bolide_buffers::ReceiveBuffer`], leave through an `io::Write`, certificates come in
//! as bytes and time as a function.
//!
//! Without the feature `rustls` the types that need it have no values: what is written for them compiles, and is left out.

#[cfg(not(feature = "rustls"))]
mod absent;
#[cfg(feature = "rustls")]
mod certificates;
#[cfg(feature = "rustls")]
mod client_certificate;
#[cfg(feature = "rustls")]
mod client_config;
#[cfg(feature = "rustls")]
mod client_sessions;
mod clock;
mod error;
mod facts;
#[cfg(feature = "rustls")]
mod failure;
#[cfg(feature = "rustls")]
mod full_handshakes;
#[cfg(feature = "rustls")]
mod issued;
mod issued_names;
#[cfg(feature = "rustls")]
mod layer;
#[cfg(feature = "rustls")]
mod limits;
#[cfg(feature = "rustls")]
mod names;
mod options;
#[cfg(feature = "rustls")]
mod provider;
#[cfg(feature = "rustls")]
mod renewal;
#[cfg(feature = "rustls")]
mod rules;
#[cfg(feature = "rustls")]
mod server_config;
#[cfg(feature = "rustls")]
mod tickets;

#[cfg(not(feature = "rustls"))]
pub use absent::{ClientTls, Identity, Issued, ServerTls, TlsLayer};
#[cfg(feature = "rustls")]
pub use certificates::Identity;
#[cfg(feature = "rustls")]
pub use client_config::ClientTls;
pub use clock::WallClock;
pub use error::{IdentityError, TlsFailure};
pub use facts::{Alpn, ClientCertificate, HandshakeFacts, Opened};
#[cfg(feature = "rustls")]
pub use full_handshakes::full_handshakes_count;
#[cfg(feature = "rustls")]
pub use issued::Issued;
pub use issued_names::IssuedNames;
#[cfg(feature = "rustls")]
pub use layer::TlsLayer;
pub use options::{ClientOptions, Clients, HandshakeRules, ServerOptions, TlsVersion, Trust};
#[cfg(feature = "rustls")]
pub use renewal::RenewalFacts;
#[cfg(feature = "rustls")]
pub use server_config::ServerTls;
