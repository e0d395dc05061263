//! What a handler's answer needs of its worker.

use bolide_semantics::Date;

use crate::Limits;
use crate::advertised::Advertised;
use crate::ingress::Gate;

/// What a handler's answer needs of its worker.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) date: Date,
    /// Answers tell what they took.
    pub(crate) server_timing: bool,
    /// What is taken from peers, if anything is.
    pub(crate) gate: Option<Gate>,
    /// What clients over TLS are told of HTTP/3.
    pub(crate) advertised: Vec<Advertised>,
}
