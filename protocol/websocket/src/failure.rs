//! RFC 6455 §7.1.7: why an end fails the connection.

use crate::close::CloseCode;

/// A rule or a limit that the peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The code that the peer is told.
    pub code: CloseCode,
    /// Description of the error.
    pub what: &'static str,
    /// The name of the limit that was exceeded, if one was.
    pub limit: Option<&'static str>,
}
