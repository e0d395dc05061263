//! Test of whether a range of a file is in the kernel's memory.

/// Returns whether all of a range is in memory. False where it can't be told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_cached(_: std::os::fd::BorrowedFd<'_>, _: u64, _: usize) -> bool {
    false
}

/// Reads what is in memory.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read(
    file: std::os::fd::BorrowedFd<'_>,
    buffer: &mut [u8],
    at: u64,
) -> rustix::io::Result<usize> {
    rustix::io::pread(file, buffer, at)
}

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{is_cached, read};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::IoSliceMut;
    use std::os::fd::BorrowedFd;

    use rustix::io::{Errno, ReadWriteFlags};

    use super::pages;

    /// Distance between the bytes that are asked for where the kernel doesn't count pages: what a disk is read ahead by.
    const PROBED_EACH_BYTES: u64 = 64 * 1024;

    /// Returns whether all of a range is in memory. False where it can't be told.
    pub(crate) fn is_cached(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> bool {
        let end = offset.checked_add(bytes as u64).filter(|_| bytes > 0);
        let Some(last) = end.map(|end| end - 1) else { return false };
        match pages::are_resident(file, offset, bytes) {
            Some(false) => false,
            // A page that is being read counts as there; the last one is the last to come.
            Some(true) => probe(file, last) != Some(false),
            None => {
                let mut places = (offset..last).step_by(PROBED_EACH_BYTES as usize);
                places.all(|at| probe(file, at) == Some(true)) && probe(file, last) == Some(true)
            }
        }
    }

    /// Reads what is in memory, as far as that can be told.
    pub(crate) fn read(
        file: BorrowedFd<'_>,
        buffer: &mut [u8],
        at: u64,
    ) -> rustix::io::Result<usize> {
        let mut slices = [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(file, &mut slices, at, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                rustix::io::pread(file, buffer, at)
            }
            read => read,
        }
    }

    /// Returns whether a byte can be read without waiting; `None` where that can't be told.
    fn probe(file: BorrowedFd<'_>, at: u64) -> Option<bool> {
        let mut byte = [0];
        let mut slices = [IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut slices, at, ReadWriteFlags::NOWAIT) {
            Ok(count) => Some(count == 1),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => None,
            Err(_) => Some(false),
        }
    }
}

/// cachestat(2), Linux 6.5, by its number, which these processors have in common.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod pages {
    use std::ffi::c_uint;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::sync::LazyLock;

    const CACHESTAT: libc::c_long = 451;

    #[repr(C)]
    struct Range {
        offset: u64,
        bytes: u64,
    }

    #[repr(C)]
    #[derive(Default)]
    struct Counts {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }

    /// The size of a page in bytes.
    #[allow(unsafe_code, reason = "no crate in use wraps sysconf")]
    static PAGE_BYTES: LazyLock<u64> = LazyLock::new(|| {
        // SAFETY: it takes a number and touches no memory.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(bytes).unwrap_or(0).max(4096)
    });

    /// Returns whether the kernel holds every page of a range, read or being read; `None` where it doesn't tell this
    /// process.
    #[allow(unsafe_code, reason = "no crate wraps cachestat")]
    pub(super) fn are_resident(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Option<bool> {
        let bytes = bytes as u64;
        let range = Range { offset, bytes };
        let mut counts = Counts::default();
        let flags: c_uint = 0;
        // SAFETY: both pointers are to values of the layout that the call documents, which live until it returns;
        // it writes to the second alone.
        let result = unsafe {
            libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, flags)
        };
        if result != 0 {
            return None;
        }
        let pages = (offset + bytes - 1) / *PAGE_BYTES - offset / *PAGE_BYTES + 1;
        Some(counts.cached >= pages)
    }
}

#[cfg(all(
    target_os = "linux",
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))
))]
mod pages {
    use std::os::fd::BorrowedFd;

    pub(super) fn are_resident(_: BorrowedFd<'_>, _: u64, _: usize) -> Option<bool> {
        None
    }
}
