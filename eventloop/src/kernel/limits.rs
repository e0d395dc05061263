//! How many files a process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one. Returns the soft limit before and after;
/// none when there is no limit at all.
pub fn raise_file_limit() -> Option<(u64, u64)> {
    let limit = getrlimit(Resource::Nofile);
    let before = limit.current?;
    if limit.current == limit.maximum {
        return Some((before, before));
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Some((before, limit.maximum.unwrap_or(u64::MAX))),
        Err(_) => Some((before, before)),
    }
}

/// The number of files that may be open.
pub(crate) fn file_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
