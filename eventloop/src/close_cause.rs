//! Why connections end.

use std::io;

use crate::file::Changed;

/// Why a connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// The session asked for it.
    Finished,
    /// Reading or writing failed.
    Failed(io::ErrorKind),
    /// It was idle and its room was needed.
    Shed,
    /// The shutdown ran out of patience.
    Drained,
    /// The session panicked.
    Panicked,
    /// It held most of what foreign bytes made its worker keep, and that was too much.
    Memory,
    /// The session had finished, and the peer did not take its last response.
    Stalled,
    /// A [file](crate::SharedFile) that was being sent has changed, or ended early. The connection was reset.
    Broken,
}

impl CloseCause {
    /// Returns what an error of writing comes to.
    pub(crate) fn of(error: &io::Error) -> Self {
        if Changed::is(error) { Self::Broken } else { Self::Failed(error.kind()) }
    }
}
