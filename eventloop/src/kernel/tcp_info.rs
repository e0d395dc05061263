//! What TCP has measured of a path.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The round-trip time as the receiving side measured it, else as the sending side did.
#[cfg(target_os = "linux")]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    use std::mem::offset_of;

    let info = read(socket, offset_of!(libc::tcp_info, tcpi_rcv_rtt) + size_of::<u32>())?;
    let micros = if info.tcpi_rcv_rtt > 0 { info.tcpi_rcv_rtt } else { info.tcpi_rtt };
    (micros > 0).then(|| Duration::from_micros(u64::from(micros)))
}

/// Segments that were sent again.
#[cfg(target_os = "linux")]
pub(super) fn retransmits(socket: BorrowedFd<'_>) -> Option<u64> {
    use std::mem::offset_of;

    let info = read(socket, offset_of!(libc::tcp_info, tcpi_total_retrans) + size_of::<u32>())?;
    Some(u64::from(info.tcpi_total_retrans))
}

/// Everything that the kernel tells; `None` when it does not fill the first `needed` bytes: an older one
/// fills fewer, and a Unix socket has none.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate wraps TCP_INFO")]
fn read(socket: BorrowedFd<'_>, needed: usize) -> Option<libc::tcp_info> {
    use std::mem::MaybeUninit;

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
    if result != 0 || (length as usize) < needed {
        return None;
    }
    // SAFETY: every field is a plain number, and all of them were zeroed before the call.
    Some(unsafe { info.assume_init() })
}

/// Not measured in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    let _ = socket.as_raw_fd();
    None
}

/// Not counted in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn retransmits(socket: BorrowedFd<'_>) -> Option<u64> {
    let _ = socket.as_raw_fd();
    None
}
