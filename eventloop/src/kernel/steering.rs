//! `SO_ATTACH_REUSEPORT_CBPF`: which of the sockets with one port gets a datagram.

use std::io;
use std::net::UdpSocket;

use bolide_buffers::BpfInstruction;

/// Has a program choose among the sockets that share the port of this one, by their numbers in the order in which they were bound.
/// A number that no socket has leaves the choice to the kernel's hash of both addresses (socket(7)).
///
/// # Errors
///
/// Those of `setsockopt`: where the system has no such programs, or refuses them here.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "no crate in use wraps the option")]
pub(crate) fn steer(socket: &UdpSocket, program: &[BpfInstruction]) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let instruction = |one: &BpfInstruction| libc::sock_filter {
        code: one.code,
        jt: one.if_true,
        jf: one.if_false,
        k: one.operand,
    };
    let mut filter: Vec<libc::sock_filter> = program.iter().map(instruction).collect();
    let len = libc::c_ushort::try_from(filter.len()).map_err(io::Error::other)?;
    let value = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: the option's value is a `sock_fprog` whose instructions are as many as it says; both outlive the call, which
    // copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Elsewhere the kernel chooses.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn steer(_: &UdpSocket, _: &[BpfInstruction]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
