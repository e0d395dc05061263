//! Reading into memory that was not initialised.
#![allow(unsafe_code, reason = "reading into spare capacity spares zeroing it for every read")]

use std::io;
use std::os::fd::AsFd;

use bolide_buffers::ReceiveBuffer;
use rustix::net::RecvFlags;

/// Reads from a socket into the spare room of `into`. Returns how many bytes came and how many
/// could have.
pub(super) fn receive(socket: impl AsFd, into: &mut ReceiveBuffer) -> io::Result<(usize, usize)> {
    let block = into.block_mut();
    let spare = block.spare_capacity_mut();
    let offered = spare.len();
    let (received, _) = rustix::net::recv(socket, spare, RecvFlags::empty())?;
    let received = received.0.len();
    debug_assert!(received <= offered, "the kernel filled more than it was given");
    let filled = block.len() + received;
    // SAFETY: `recv` has initialised the first `received` bytes of the spare capacity, which begins
    // at `block.len()`, and `received` is at most its size.
    unsafe { block.set_len(filled) };
    Ok((received, offered))
}
