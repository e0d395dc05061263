//! Mistakes, each in one sentence, and whose they are.

use std::fmt;
use std::io;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// The request can't be met: a value, a name, a machine that can't do it. Exit code 2.
    Usage(String),
    /// It was tried and failed. Exit code 1.
    Failed(String),
}

impl Mistake {
    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
        }
    }

    /// A failed system call, with what it was for.
    #[cfg(target_os = "linux")]
    pub(crate) fn io(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{what}: {error}"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Mistake {}

impl From<io::Error> for Mistake {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
