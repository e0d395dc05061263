//! The limits of a server, layer by layer.

/// The largest request body of a route that says nothing else. Default: 1 MiB. Unit: bytes. Reason:
/// nginx's default; enough for forms, too little to fill memory with. Answers: slow-body,
/// large-body.
pub const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// Every limit of a server: those of its own and those of its connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// [`BODY_BYTES_MAX`].
    pub body_bytes_max: u64,
    /// The limits of the protocols.
    pub connection: bolide_connection::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body_bytes_max: BODY_BYTES_MAX, connection: bolide_connection::Limits::default() }
    }
}
