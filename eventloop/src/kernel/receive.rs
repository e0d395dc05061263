//! Reading into memory that has not been written yet.

use std::io;
use std::os::fd::AsFd;

use bytes::BytesMut;
use rustix::net::RecvFlags;

/// Reads once into the spare capacity of `block`, at most `bytes_max`, and returns how many bytes came.
///
/// Zeroing a block before each read would cost more than the read.
#[inline]
#[allow(unsafe_code, reason = "the kernel writes where nothing has been written yet")]
pub(super) fn receive(
    socket: impl AsFd,
    block: &mut BytesMut,
    bytes_max: usize,
) -> io::Result<usize> {
    let spare = block.spare_capacity_mut();
    let length = spare.len().min(bytes_max);
    let ((filled, _), _) = rustix::net::recv(socket, &mut spare[..length], RecvFlags::empty())?;
    let count = filled.len();
    let length = block.len() + count;
    // SAFETY: the first `count` bytes of the spare capacity, which begins at the old length, have
    // just been written: `recv` hands them back as initialised.
    unsafe { block.set_len(length) };
    Ok(count)
}
