//! From a file to a socket.

use std::os::fd::BorrowedFd;

/// The most that is read at a time where the kernel can't send from the file itself, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Reads a piece of a file into memory.
pub(super) fn read(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut piece = vec![0; bytes.min(READ_BYTES)];
    let count = rustix::io::pread(file, &mut piece[..], offset)?;
    piece.truncate(count);
    Ok(piece)
}

/// Returns whether files can be sent from: the call is there, and a peer that has gone costs an error, not a signal that ends
/// the process. Programs in Rust ignore that signal unless they say otherwise.
#[cfg(target_os = "linux")]
pub(super) fn is_possible() -> bool {
    use std::sync::LazyLock;
    static IGNORED: LazyLock<bool> = LazyLock::new(broken_pipes_are_ignored);
    *IGNORED
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_possible() -> bool {
    false
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate in use asks how a signal is handled")]
fn broken_pipes_are_ignored() -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action it only writes the present one, to a place of that type.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all of its bytes are zero or were written by the call: integers, and a handler that may be none.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
