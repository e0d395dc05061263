//! Methods, and bodies from files, as they are given.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use http::Method;

/// The largest body that is made or read: it is held in memory once.
pub(crate) const LARGEST_BODY_BYTES: u64 = 4 << 30;

/// Reads a method.
///
/// # Errors
///
/// What is wrong with it, in a sentence.
pub(crate) fn method(name: &str) -> Result<Method, String> {
    let method = Method::from_bytes(name.as_bytes()).map_err(|_| {
        format!("`{}` is not a method: use letters, such as PUT", name.escape_debug())
    })?;
    if method == Method::CONNECT {
        return Err("CONNECT can't be loaded: it opens a tunnel".into());
    }
    Ok(method)
}

/// Reads a file that becomes a body.
///
/// # Errors
///
/// Why it can't be read, in a sentence that begins with the option's name.
pub(crate) fn body_file(option: &str, path: &Path) -> Result<Bytes, String> {
    let refused = |why: &dyn std::fmt::Display| format!("{option} {}: {why}", path.display());
    let length = fs::metadata(path).map_err(|error| refused(&error))?.len();
    if length > LARGEST_BODY_BYTES {
        return Err(refused(&"is larger than 4 GiB, the maximum of a body"));
    }
    fs::read(path).map(Bytes::from).map_err(|error| refused(&error))
}
