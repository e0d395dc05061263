//! The limits of every layer of a connection.

use std::sync::Arc;
use std::time::Duration;

use bolide_limits::limits;

limits! {
    /// Times before the first request of a connection.
    #[derive(Debug, Clone)]
    pub struct Opening {
        /// How long a TLS handshake may take. Default: 10 s. Unit: time. Reason: a handshake takes a few round trips; h2o allows as
        /// much. Against: tls-half-handshake.
        handshake_timeout: Duration = Duration::from_secs(10),

        /// How long the first bytes of a cleartext connection may leave its version open. Default: 10 s. Unit: time. Reason: the
        /// preface is 24 bytes; the same as for a request's head. Against: slow-head.
        version_timeout: Duration = Duration::from_secs(10),
    }
}

/// The limits of a connection, layer by layer.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Before the first request.
    pub opening: Opening,
    /// HTTP/1.1; shared, as the next, for connections look things up in it as long as they live.
    pub h1: Arc<bolide_h1::Limits>,
    /// HTTP/2.
    pub h2: Arc<bolide_h2::Limits>,
    /// HTTP/3.
    pub h3: Arc<bolide_h3::Limits>,
}
