//! Why a run can't begin: one sentence, and no request was sent.

use thiserror::Error;

/// Why a run can't begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mistake {
    /// The plan can't be carried out: nothing was sent.
    #[error("{0}")]
    Plan(String),
    /// The first connection to the server could not be made.
    #[error("{0}")]
    Connection(String),
    /// The parts of a run did not come together, or were lost before it began.
    #[error("{0}")]
    Parts(String),
}

impl Mistake {
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self::Plan(sentence.into())
    }
}
