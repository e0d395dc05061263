//! A directory of the file system, out of which nothing leads.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
#[cfg(target_os = "linux")]
use rustix::io::Errno;

use crate::disk::{Disk, DiskFile, Found, Listed, Stamp, Time};

/// The directory that was there at the start, whatever its name stands for later.
#[derive(Debug)]
pub(crate) struct Directory {
    root: OwnedFd,
    /// Its name without symbolic links, by which absolute ones inside of it are recognised.
    path: PathBuf,
    /// True if the kernel is asked to stay beneath the root. Where it can't, each step is checked.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "Linux alone can"))]
    by_kernel: bool,
}

/// How a name is opened to see what it is: this touches neither pipes nor devices.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = READ;

/// A pipe without a writer must not be waited for.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        // A directory that may be listed but not searched has no file for this user.
        rustix::fs::openat(&root, ".", flags, Mode::empty())?;
        Ok(Self { root, path, by_kernel: cfg!(target_os = "linux") })
    }

    /// Opens what has this name beneath the root: symbolic links are followed as long as they stay there.
    fn open_beneath(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let name = if name.is_empty() { "." } else { name };
        #[cfg(target_os = "linux")]
        if self.by_kernel {
            match beneath(self.root.as_fd(), name, flags) {
                Ok(file) => return Ok(file),
                // A link that is absolute, or that leads outside; or a kernel, or a filter of calls, that
                // knows nothing of this.
                Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.open_checked(name, flags)
    }

    /// Finds out where the name leads, and goes there from the root without following a link.
    fn open_checked(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let target = fs::canonicalize(self.path.join(name))?;
        let below = target.strip_prefix(&self.path).map_err(|_| not_found())?;
        let mut steps = below.components().peekable();
        let step_flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let mut directory: Option<OwnedFd> = None;
        while let Some(step) = steps.next() {
            let Component::Normal(step) = step else { return Err(not_found()) };
            let from: BorrowedFd<'_> = directory.as_ref().unwrap_or(&self.root).as_fd();
            let is_last = steps.peek().is_none();
            let step_flags = if is_last { flags | OFlags::NOFOLLOW } else { step_flags };
            let next = rustix::fs::openat(from, step, step_flags, Mode::empty())?;
            if is_last {
                return Ok(next);
            }
            directory = Some(next);
        }
        Ok(rustix::fs::openat(&self.root, ".", flags, Mode::empty())?)
    }
}

/// openat2(2), which may say that another process renames at the same time.
#[cfg(target_os = "linux")]
fn beneath(root: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut result = Err(Errno::AGAIN);
    for _ in 0..8 {
        result = rustix::fs::openat2(root, name, flags, Mode::empty(), resolve);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for Directory {
    fn open(&self, name: &str) -> io::Result<Found> {
        let looked_at = self.open_beneath(name, LOOK)?;
        match FileType::from_raw_mode(rustix::fs::fstat(&looked_at)?.st_mode) {
            FileType::Directory => return Ok(Found::Directory),
            FileType::RegularFile => {}
            _ => return Err(not_found()),
        }
        let file = if LOOK == READ { looked_at } else { self.open_beneath(name, READ)? };
        // Something else may have taken the name meanwhile.
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(Found::File(Box::new(OpenFile(file.into())))),
            FileType::Directory => Ok(Found::Directory),
            _ => Err(not_found()),
        }
    }

    #[cfg(target_os = "linux")]
    fn is_missing_now(&self, name: &str) -> bool {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
        let opened = rustix::fs::openat2(&self.root, name, LOOK, Mode::empty(), resolve);
        matches!(opened, Err(Errno::NOENT))
    }

    fn list(&self, name: &str, max: usize) -> io::Result<Vec<Listed>> {
        let directory = self.open_beneath(name, READ | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            // What has no name in UTF-8 can't be asked for.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            // A link says nothing here of where it leads, which may be outside.
            let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let Ok(stat) = stat else { continue };
            let Stamp { length, modified, .. } = stamp(&stat);
            let (is_directory, length) = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => (true, None),
                FileType::RegularFile => (false, Some(length)),
                FileType::Symlink => (false, None),
                _ => continue,
            };
            entries.push(Listed { name: name.to_owned(), is_directory, length, modified });
            if entries.len() == max {
                break;
            }
        }
        Ok(entries)
    }
}

#[derive(Debug)]
struct OpenFile(Arc<OwnedFd>);

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the fields have other types on other systems"
)]
fn stamp(stat: &Stat) -> Stamp {
    let time = |seconds: i64, nanoseconds: u32| Time { seconds, nanoseconds };
    Stamp {
        length: u64::try_from(stat.st_size).unwrap_or(0),
        modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
        changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        identity: (stat.st_dev as u64, stat.st_ino as u64),
    }
}

impl DiskFile for OpenFile {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(stamp(&rustix::fs::fstat(&self.0)?))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::pread(&self.0, &mut *buffer, offset))?)
    }

    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        Some(Arc::clone(&self.0))
    }

    #[cfg(target_os = "linux")]
    fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let mut slices = [io::IoSliceMut::new(buffer)];
        let now = rustix::io::ReadWriteFlags::NOWAIT;
        match rustix::io::preadv2(&self.0, &mut slices, offset, now) {
            Ok(count) => Ok(Some(count)),
            // Not in memory; or a file system, or a kernel, that can't say.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR | Errno::INVAL) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
