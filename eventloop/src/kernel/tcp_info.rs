//! What TCP has measured of a path.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The round-trip time as the receiving side measured it, else as the sending side did.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate wraps TCP_INFO")]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    use std::mem::{MaybeUninit, offset_of};

    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` is writable for `length` bytes, both live through the call, and the kernel
    // writes no more than `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    // An older kernel fills less of it.
    let needed = offset_of!(libc::tcp_info, tcpi_rcv_rtt) + size_of::<u32>();
    if result != 0 || (length as usize) < needed {
        return None;
    }
    // SAFETY: every field is a plain number, and all of them were zeroed before the call.
    let info = unsafe { info.assume_init() };
    let micros = if info.tcpi_rcv_rtt > 0 { info.tcpi_rcv_rtt } else { info.tcpi_rtt };
    (micros > 0).then(|| Duration::from_micros(u64::from(micros)))
}

/// Not measured in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    let _ = socket.as_raw_fd();
    None
}
