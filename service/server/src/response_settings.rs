//! What responses need of their worker.

use bolide_semantics::Date;

use crate::Limits;
use crate::advertised::Advertised;
use crate::ingress::Gate;

/// What responses need of their worker.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) date: Date,
    /// Responses tell what they took.
    pub(crate) server_timing: bool,
    /// What is taken from peers, if anything is.
    pub(crate) gate: Option<Gate>,
    /// What clients over TLS are told of HTTP/3.
    pub(crate) advertised: Vec<Advertised>,
}
