//! Places in files of configuration.

use std::fmt::Display;

/// A place in a file: messages about what stands there begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file's name, the line and the column, from 1.
    pub(crate) at: String,
    /// The line, from 1.
    pub(crate) line: usize,
}

impl Place {
    /// The file's name.
    pub(crate) fn file(&self) -> &str {
        self.at.rsplitn(3, ':').nth(2).unwrap_or_default()
    }

    /// Returns what is wrong there.
    pub(crate) fn mistake(&self, what: impl Display) -> String {
        format!("{}: {what}", self.at)
    }
}
