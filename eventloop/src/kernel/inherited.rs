//! Descriptors that pass from one process to the next: sockets that a supervisor or a predecessor opened, and
//! those that a successor gets.

#![allow(
    unsafe_code,
    reason = "a descriptor that is only a number, and work between fork and execve"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The first descriptor that can be handed in: those below are the standard ones.
const FIRST: RawFd = 3;

/// Takes over a descriptor that this process was started with. It does not pass on to other programs any more.
///
/// # Errors
///
/// When `number` is not open, is a standard one, or was opened or taken by this process: all that a process
/// opens itself is marked to close at `execve`, and what it inherits can't be.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < FIRST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "descriptors that are passed on begin at 3",
        ));
    }
    // SAFETY: the borrow ends in this function, and asking a number that is not open for its flags is an error
    // (EBADF) without effect.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(borrowed)?;
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this process opened it itself"));
    }
    fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: it is open. Without the mark until now, it was inherited, so nothing in this process owns it; and
    // it bears the mark from here on, so that it can't be taken twice.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets the program that `command` starts inherit `descriptors`, under the numbers that they have here; these are
/// returned. In this process they stay marked to close at `execve`.
pub fn hand_on(command: &mut Command, descriptors: Vec<OwnedFd>) -> Vec<RawFd> {
    let numbers = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let unmark = move || {
        for descriptor in &descriptors {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between `fork` and `execve` only system calls on descriptors that the closure owns are made:
    // nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(unmark) };
    numbers
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_this_process_opened_cannot_be_taken() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = inherited(own.as_raw_fd()).unwrap_err();
        assert!(error.to_string().contains("itself"), "{error}");
        assert!(inherited(1).unwrap_err().to_string().contains("begin at 3"));
        assert!(inherited(1_000_000).is_err(), "it is not open");
    }

    #[test]
    fn a_descriptor_is_taken_once() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = rustix::io::dup(&own).map(std::os::fd::IntoRawFd::into_raw_fd).unwrap();
        let taken = inherited(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(fcntl_getfd(&taken).unwrap().contains(FdFlags::CLOEXEC));
        assert!(inherited(number).is_err(), "twice");
    }

    #[test]
    fn a_program_inherits_only_what_it_is_handed() {
        let (handed, kept) = (TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0"));
        let (handed, kept) = (OwnedFd::from(handed.unwrap()), kept.unwrap());
        let there = |number: RawFd| format!("test -e /dev/fd/{number}");
        let mut command = Command::new("/bin/sh");
        let number = handed.as_raw_fd();
        let script = format!("{} && ! {}", there(number), there(kept.as_raw_fd()));
        command.args(["-c", &script]);
        assert_eq!(hand_on(&mut command, vec![handed]), [number]);
        assert!(command.status().unwrap().success(), "{script}");
    }
}
