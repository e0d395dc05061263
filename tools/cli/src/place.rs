//! Places in files of configuration.

use std::fmt::Display;

/// Where something stands in a file: what is said of it later begins with this.
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

    /// What is wrong there.
    pub(crate) fn mistake(&self, what: impl Display) -> String {
        format!("{}: {what}", self.at)
    }
}
