//! The limits of every layer of a connection.

use std::sync::Arc;
use std::time::Duration;

/// How long a TLS handshake may take. Default: 10 s. Unit: time. Reason: a handshake takes a few
/// round trips; h2o allows as much. Answers: tls-half-handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the first bytes of a cleartext connection may leave its version open. Default: 10 s.
/// Unit: time. Reason: the preface is 24 bytes; the same as for a request's head. Answers:
/// slow-head.
pub const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits of a connection, layer by layer.
#[derive(Debug, Clone)]
pub struct Limits {
    /// [`HANDSHAKE_TIMEOUT`].
    pub handshake_timeout: Duration,
    /// [`VERSION_TIMEOUT`].
    pub version_timeout: Duration,
    /// HTTP/1.1; shared, as the next, for connections look things up in it as long as they live.
    pub h1: Arc<bolide_h1::Limits>,
    /// HTTP/2.
    pub h2: Arc<bolide_h2::Limits>,
    /// HTTP/3.
    pub h3: Arc<bolide_h3::Limits>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: HANDSHAKE_TIMEOUT,
            version_timeout: VERSION_TIMEOUT,
            h1: Arc::new(bolide_h1::Limits::default()),
            h2: Arc::new(bolide_h2::Limits::default()),
            h3: Arc::new(bolide_h3::Limits::default()),
        }
    }
}
