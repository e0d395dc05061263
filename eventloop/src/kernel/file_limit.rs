//! How many file descriptors the process may have.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit on file descriptors, before and after [`raise_file_limit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimit {
    /// The limit as it was.
    pub before: u64,
    /// The limit as it is now.
    pub after: u64,
}

/// More than any server uses: stands for "no limit".
const UNLIMITED_COUNT: u64 = 1 << 20;

/// How many file descriptors the process may have open (the soft limit).
#[must_use]
pub fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED_COUNT)
}

/// Raises the soft limit on file descriptors to the hard one.
///
/// # Errors
///
/// Those of `setrlimit`; the limit is as before then.
pub fn raise_file_limit() -> io::Result<FileLimit> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let before = current.unwrap_or(UNLIMITED_COUNT);
    // macOS refuses "no limit" as a soft limit.
    let wanted = maximum.unwrap_or_else(|| UNLIMITED_COUNT.max(before));
    if wanted <= before {
        return Ok(FileLimit { before, after: before });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })?;
    Ok(FileLimit { before, after: wanted })
}
