//! An error in a rule.

/// Description of the error; it completes "`key` is `value`: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SiteError(String);

impl SiteError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
