//! Operations of a disk: so few that a test, or an archive, can take its place.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A source of files. Called on threads that may wait, but for [`DiskFile::read_now`] and
/// [`Disk::is_missing_now`].
///
/// Names are relative to the root, without a slash at either end; the root's is empty. They have no
/// empty segments, no `.` and no `..`.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens what has this name. Whatever is neither a file nor a directory doesn't exist.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] and its like when there is nothing to serve; other kinds become 503.
    fn open(&self, name: &str) -> io::Result<Found>;

    /// Returns whether it is known, without waiting for the disk, that nothing has this name. Default: no.
    fn is_missing_now(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The entries of a directory, in any order; of more than `max`, any `max`.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    fn list(&self, name: &str, max: usize) -> io::Result<Vec<Listed>>;
}

/// The object that a name stands for.
#[derive(Debug)]
pub enum Found {
    /// A file, open to be read.
    File(Box<dyn DiskFile>),
    /// A directory.
    Directory,
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Returns what tells this version of the file from others.
    ///
    /// # Errors
    ///
    /// The system's.
    fn stamp(&self) -> io::Result<Stamp>;

    /// Reads at `offset`, at least one byte if there is one; may wait for the disk.
    ///
    /// # Errors
    ///
    /// The system's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads at `offset` what is there without waiting for the disk; `None` when nothing is.
    ///
    /// # Errors
    ///
    /// The system's.
    fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let _ = (buffer, offset);
        Ok(None)
    }

    /// The file of the system that this is, open for reading, by which the kernel can send it without its being read;
    /// `None` where it is none. Default: `None`.
    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        None
    }
}

/// A point in time: seconds and nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds, which may lie before the epoch.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// One version of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its length in bytes.
    pub length: u64,
    /// When its content changed last.
    pub modified: Time,
    /// When anything about it changed last.
    pub changed: Time,
    /// Identity among files: device and number.
    pub identity: (u64, u64),
}

impl Stamp {
    /// Returns whether both are the same content, as far as can be told. A file that is renamed or removed
    /// while it is read keeps its content.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        self.length == other.length && self.modified == other.modified
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// True if it is a directory.
    pub is_directory: bool,
    /// Its length in bytes, if it is a file.
    pub length: Option<u64>,
    /// The last change of its content.
    pub modified: Time,
}
