//! Files whose bytes go from the kernel's memory to a socket without passing through the process.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bolide_buffers::Outside;

use crate::kernel::cached;

/// Which version of a file: what changes when its content does, as far as can be told. A file that is renamed or
/// removed keeps its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    /// Its length in bytes.
    pub length: u64,
    /// When its content changed last: seconds since the epoch.
    pub modified_seconds: i64,
    /// Nanoseconds of that second.
    pub modified_nanoseconds: u32,
}

impl FileVersion {
    /// The version that is there now.
    ///
    /// # Errors
    ///
    /// Those of `fstat`.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "the fields have other types on other systems"
    )]
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        Ok(Self {
            length: u64::try_from(stat.st_size).unwrap_or(0),
            modified_seconds: stat.st_mtime as i64,
            modified_nanoseconds: stat.st_mtime_nsec as u32,
        })
    }

    /// How long ago its content changed; without end where that is before the epoch or to come.
    fn age(&self) -> Duration {
        let seconds = Duration::from_secs(u64::try_from(self.modified_seconds).unwrap_or(0));
        let changed =
            seconds.saturating_add(Duration::from_nanos(self.modified_nanoseconds.into()));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(changed).unwrap_or(Duration::MAX)
    }
}

/// How many of the last promised bytes of a file tell one that grew by appending from one that was written anew.
const TAIL_BYTES: usize = 256;

/// How long after the time of a change the length may still be what it was before the write that made it: the kernel sets the time
/// first, and the writer may lose its core in between.
const LENGTH_PAUSE: Duration = Duration::from_millis(10);

/// How often a version is read of which only the time is another than before: the kernel reads the length, the seconds and their
/// part one after the other, so the first may be of before a write and the last of after it.
const READINGS_COUNT: usize = 3;

/// An open file and the version of it that was promised to the receivers of its bytes.
///
/// Before and after each call that sends from it, the worker compares it with what is there; once it has become
/// another, the connection is reset. A file that has grown, a log say, is the same as far as was promised if the last 256 bytes of
/// that are what they were; who writes elsewhere into it and lets it grow is not noticed. What the kernel has been given by then it may still send, and those pages
/// are the file's own: who writes into a file in place can change bytes that are on their way. A file that is
/// replaced by [renaming](std::fs::rename) another over it is sent to its end as it was.
#[derive(Debug, Clone)]
pub struct SharedFile {
    file: Arc<OwnedFd>,
    version: FileVersion,
    /// Its last bytes; none where they could not be read.
    tail: Option<Arc<[u8]>>,
}

impl SharedFile {
    /// A regular file, open for reading, of which this version was promised. Reads its last bytes, which may wait for the
    /// disk.
    #[must_use]
    pub fn new(file: Arc<OwnedFd>, version: FileVersion) -> Self {
        let tail = read_tail(version.length, |buffer, at| rustix::io::pread(&file, buffer, at));
        Self { file, version, tail: tail.map(Arc::from) }
    }

    /// The version that was promised.
    #[must_use]
    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// Returns whether all of a range is in memory, so that sending it waits for no disk; by some system calls. False where
    /// it can't be told.
    #[must_use]
    pub fn is_cached(&self, offset: u64, bytes: usize) -> bool {
        cached::is_cached(self.file.as_fd(), offset, bytes)
    }

    /// A range of it as a piece of what is to be sent.
    #[must_use]
    pub fn piece(self: Arc<Self>, offset: u64, bytes: usize) -> Outside {
        Outside { source: self, offset, bytes }
    }

    /// Fails once what was promised is no longer what is there. Waits for no disk.
    ///
    /// # Errors
    ///
    /// Those of `fstat`, and that it has changed.
    pub fn check(&self) -> io::Result<()> {
        let version = self.settled(|| FileVersion::of(&self.file))?;
        let has_grown = || version.length > self.version.length && self.ends_as_promised();
        if version == self.version || has_grown() { Ok(()) } else { Err(Changed.into()) }
    }

    /// The version that is there once no write is between the time that it sets first and the length that it sets last. Waits for
    /// that up to [`LENGTH_PAUSE`] after the write began, however many connections ask; writes that follow each other and leave the
    /// length are in place.
    fn settled(
        &self,
        mut read: impl FnMut() -> io::Result<FileVersion>,
    ) -> io::Result<FileVersion> {
        let mut version = read()?;
        for _ in 0..READINGS_COUNT {
            let begun = version;
            while version == begun && self.is_half_appended(&version) {
                std::thread::yield_now();
                version = read()?;
            }
            if !self.differs_by_time(&version) {
                break;
            }
            let again = read()?;
            if std::mem::replace(&mut version, again) == again {
                break;
            }
        }
        Ok(version)
    }

    /// Returns whether nothing but the time is another than was promised.
    fn differs_by_time(&self, version: &FileVersion) -> bool {
        version.length == self.version.length && *version != self.version
    }

    /// Returns whether it may be what was promised with a write that has not set the length yet.
    fn is_half_appended(&self, version: &FileVersion) -> bool {
        self.differs_by_time(version) && version.age() < LENGTH_PAUSE
    }

    /// Returns whether the last bytes that were promised are still there.
    #[cold]
    fn ends_as_promised(&self) -> bool {
        let now =
            read_tail(self.version.length, |buffer, at| cached::read(self.as_fd(), buffer, at));
        now.is_some() && now.as_deref() == self.tail.as_deref()
    }
}

/// The last bytes of the first `length`, if `read` can read them all at once.
fn read_tail(
    length: u64,
    read: impl FnOnce(&mut [u8], u64) -> rustix::io::Result<usize>,
) -> Option<Vec<u8>> {
    let mut tail = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(TAIL_BYTES)];
    let start = length - tail.len() as u64;
    let count = read(&mut tail, start).ok()?;
    (count == tail.len()).then_some(tail)
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A file is not what was promised any more: nothing can complete what was begun with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed;

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a file changed, or ended early, while it was sent")
    }
}

impl std::error::Error for Changed {}

impl From<Changed> for io::Error {
    fn from(changed: Changed) -> Self {
        Self::other(changed)
    }
}

impl Changed {
    /// Returns whether that is what went wrong.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn file(bytes: usize) -> File {
        let path = std::env::temp_dir().join(format!(
            "bolide-file-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .expect("a file");
        std::fs::remove_file(&path).expect("it is there");
        file.write_all(&vec![7; bytes]).expect("it is open");
        file
    }

    #[test]
    fn a_file_that_grows_by_appending_is_the_same_as_far_as_promised() {
        for length in [0, 1, 255, 256, 100_000] {
            let mut file = file(length);
            let version = FileVersion::of(&file).unwrap();
            let shared = SharedFile::new(Arc::new(file.try_clone().unwrap().into()), version);
            for _ in 0..3 {
                file.write_all(b"one more line\n").unwrap();
                assert!(shared.check().is_ok(), "{length} bytes");
            }
            // Longer, and written anew.
            file.set_len(0).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![8; length + 100], 0).unwrap();
            assert_eq!(shared.check().is_err(), length > 0, "{length} bytes");
        }
    }

    #[test]
    fn a_file_that_is_being_appended_to_is_the_same_at_every_moment() {
        let mut log = file(100_000);
        let read = log.try_clone().unwrap();
        let appended = std::thread::spawn(move || {
            for _ in 0..3_000 {
                log.write_all(b"one more line\n").unwrap();
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let check = |shared: &SharedFile| {
            let before = FileVersion::of(&read).unwrap();
            // A writer that lost its core in the middle of a write is waited for no longer than that.
            assert!(shared.check().is_ok() || before.age() >= LENGTH_PAUSE);
        };
        while !appended.is_finished() {
            let version = FileVersion::of(&read).unwrap();
            let shared = SharedFile::new(Arc::new(read.try_clone().unwrap().into()), version);
            while shared.version().length == FileVersion::of(&read).unwrap().length
                && !appended.is_finished()
            {
                check(&shared);
            }
            check(&shared);
        }
        appended.join().unwrap();
    }

    #[test]
    fn a_version_that_was_read_while_it_changed_is_read_again() {
        let of = |length, modified_seconds, modified_nanoseconds| FileVersion {
            length,
            modified_seconds,
            modified_nanoseconds,
        };
        let (promised, appended) = (of(100, 9, 999_000_000), of(114, 10, 1000));
        let shared = SharedFile::new(Arc::new(file(0).into()), promised);
        let old_length = of(100, 10, 1000);
        let old_seconds = of(100, 9, 1000);
        let old_nanoseconds = of(100, 10, 999_000_000);
        for torn in [promised, old_length, old_seconds, old_nanoseconds] {
            let mut readings = [torn, appended, appended].into_iter();
            let settled = shared.settled(|| Ok(readings.next().expect("two are enough"))).unwrap();
            assert_eq!(settled, if torn == promised { promised } else { appended });
        }
        // Others are changes in place, however many follow each other.
        let mut nanoseconds = 0;
        let settled = shared.settled(|| {
            nanoseconds += 1;
            Ok(of(100, 10, nanoseconds))
        });
        assert!(settled.unwrap() != promised && nanoseconds < 9, "{nanoseconds} readings");
    }

    #[test]
    fn a_file_that_shrinks_or_is_written_over_is_another_version() {
        let file = file(1000);
        let promised = |file: &File| {
            let version = FileVersion::of(file).unwrap();
            SharedFile::new(Arc::new(file.try_clone().unwrap().into()), version)
        };
        let shared = promised(&file);
        assert!(shared.check().is_ok());
        file.set_len(999).unwrap();
        assert!(Changed::is(&shared.check().unwrap_err()));
        let shared = promised(&file);
        let then = SystemTime::UNIX_EPOCH;
        file.set_modified(then).unwrap();
        assert!(shared.check().is_err());
        assert!(!Changed::is(&io::ErrorKind::Other.into()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_just_written_is_in_memory_and_what_is_not_there_is_not() {
        let file = file(1 << 20);
        let version = FileVersion::of(&file).unwrap();
        let shared = SharedFile::new(Arc::new(file.try_clone().unwrap().into()), version);
        assert!(shared.is_cached(0, 1 << 20));
        assert!(shared.is_cached(4095, 2));
        assert!(!shared.is_cached(1 << 20, 1), "there is no such byte");
        assert!(!shared.is_cached(0, 2 << 20));
        assert!(!shared.is_cached(0, 0) && !shared.is_cached(u64::MAX, 2));
        file.set_len(4 << 20).unwrap();
        assert!(!shared.is_cached(2 << 20, 1), "a hole was never read");
        assert!(!shared.is_cached(0, 4 << 20));
    }
}
