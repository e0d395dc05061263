//! Why a run can't begin: one sentence, and nothing was sent.

use thiserror::Error;

/// Why a run can't begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Mistake(String);

impl Mistake {
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}
