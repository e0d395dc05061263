//! State of the worker that responses need.

use bolide_semantics::Date;

use crate::Limits;
use crate::advertised::Advertised;
use crate::ingress::Gate;

/// State of the worker that responses need.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) date: Date,
    /// Responses tell what they took.
    pub(crate) server_timing: bool,
    /// Information that is taken from peers, if any.
    pub(crate) gate: Option<Gate>,
    /// Places of HTTP/3 of which clients over TLS are told.
    pub(crate) advertised: Vec<Advertised>,
}
