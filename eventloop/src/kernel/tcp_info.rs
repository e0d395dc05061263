//! TCP_INFO, which no safe crate offers.
#![allow(unsafe_code, reason = "getsockopt fills a structure of the kernel's")]

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The kernel's smoothed round-trip time; none where it does not know, or for other sockets.
#[cfg(target_os = "linux")]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    use std::os::fd::AsRawFd;

    // SAFETY: `tcp_info` consists of integers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed; `info` is writable for `length` bytes, and
    // the kernel writes no more and says how many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    let rtt = if info.tcpi_rcv_rtt > 0 { info.tcpi_rcv_rtt } else { info.tcpi_rtt };
    (result == 0 && rtt > 0).then(|| Duration::from_micros(u64::from(rtt)))
}

/// Other systems keep it in other structures.
#[cfg(not(target_os = "linux"))]
pub(super) fn rtt(_: BorrowedFd<'_>) -> Option<Duration> {
    None
}
