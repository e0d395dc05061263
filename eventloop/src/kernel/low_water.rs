//! `SO_RCVLOWAT`: how much must have arrived before a socket counts as readable.

use std::os::fd::BorrowedFd;

/// Linux: an end, an error or a full receive buffer is reported whatever has arrived (tcp(7), `SO_RCVLOWAT` in
/// socket(7)), and what lies there when the mark is lowered to it is reported at once.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "no crate that we use has this option")]
pub(super) fn set(socket: BorrowedFd<'_>, bytes: usize) {
    use std::os::fd::AsRawFd;

    let value = libc::c_int::try_from(bytes.max(1)).unwrap_or(libc::c_int::MAX);
    // SAFETY: the option's value is an `int` that outlives the call, and the length is its own.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    // Where it is refused, every byte is reported as before.
    let _ = result;
}

/// Elsewhere a socket whose buffer is smaller than the mark might never be reported.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn set(socket: BorrowedFd<'_>, bytes: usize) {
    let _ = (socket, bytes);
}
