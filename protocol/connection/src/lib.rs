//! The whole protocol stack of one connection: TLS or not, then HTTP/1.1 or HTTP/2; or QUIC, then HTTP/3.
//!
//! All versions speak in the same events and take the same orders, so this crate is a switch and
//! not a translator. It must never know a socket or a clock.

mod connection;
mod http3;
mod limits;
mod quic;
mod shared_fields;
mod version;

pub use bolide_h1::{Limits as Http1Limits, limits as http1_limits};
pub use bolide_h2::{
    Limits as Http2Limits, RESET_CODES, Resets, Stats as Http2Stats, limits as http2_limits,
};
pub use bolide_h3::{Limits as Http3Limits, limits as http3_limits};
pub use bolide_quic::{
    Congestion, CongestionControl, Membership, QuicError, QuicStats, Secret, steering,
};
#[cfg(feature = "tls")]
pub use bolide_tls::RenewalFacts;
pub use bolide_tls::{
    Alpn, ClientCertificate, ClientOptions, ClientTls, Clients, HandshakeFacts, HandshakeRules,
    Identity, IdentityError, Issued, IssuedNames, Opened, ServerOptions, ServerTls, TlsFailure,
    TlsLayer, TlsVersion, Trust, WallClock,
};
pub use connection::Connection;
pub use limits::{Limits, Opening};
pub use quic::{Arrival, DatagramFlush, NewConnection, QuicEndpoint};
pub use shared_fields::SharedFields;
