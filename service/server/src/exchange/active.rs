//! An exchange that was not answered at once.

use std::fmt;
use std::rc::Rc;

use bolide_semantics::{ExchangeId, Head};

use super::State;
use crate::handler::{Exchange, Handler};
use crate::patience::Patience;

/// An exchange that was not answered at once.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: ExchangeId,
    pub(crate) driver: Option<Box<dyn Exchange>>,
    pub(crate) state: State,
    pub(crate) patience: Patience,
    /// Handler that responds if nothing else does.
    pub(crate) or_else: Option<Box<OrElse>>,
}

/// A request that may be passed on to another handler.
pub(crate) struct OrElse {
    pub(crate) head: Head,
    pub(crate) handler: Rc<dyn Handler>,
    /// Part of the body that has come; none: no body follows the head.
    pub(crate) body: Option<WaitingBody>,
}

/// A request's body, as far as it has come, which waits for its handler: not consumed, so that the client stops.
#[derive(Debug, Default)]
pub(crate) struct WaitingBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_ended: bool,
    pub(crate) trailers: Option<Head>,
}

impl fmt::Debug for OrElse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OrElse")
    }
}
