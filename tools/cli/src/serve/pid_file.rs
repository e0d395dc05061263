//! `--pid-file`: the process id, for those who send signals.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::writable;

/// The longest that a process id and its line's end are, in bytes.
const TEXT_BYTES: usize = 16;

/// How many links to directories are followed, as the kernel does it.
const LINKS_COUNT: u32 = 40;

/// The file, open from before privileges are given up.
///
/// Root opens it in a directory that the user may have filled whom the process is to become, and then gives it to that user. So no
/// link of the user's is followed, and what is there must be such a file: regular, with one name, of root or of that
/// user, and with nothing in it but a process id.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    file: File,
}

impl PidFile {
    /// Checks whether it can be opened for writing. `user`: whom the process is to become.
    pub(super) fn check(path: &Path, user: Option<u32>) -> Result<(), String> {
        let checked = match std::fs::symlink_metadata(path) {
            Ok(about) => check_kind(&about, user),
            Err(_) => Ok(()),
        };
        checked.and_then(|()| writable::check(path)).map_err(|error| failed(path, &error))
    }

    /// Opens it for writing. `user`: whom the process is to become.
    pub(super) fn open(path: &Path, user: Option<u32>) -> Result<Self, String> {
        let open = || {
            let mut file = open_without_links(&resolve(path)?)?;
            check_kind(&file.metadata()?, user)?;
            check_text(&mut file)?;
            Ok(file)
        };
        let file = open().map_err(|error: io::Error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The open file: it has to belong to who will write it.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Writes the id of this process; a reader never finds the file empty.
    pub(super) fn write(&self) -> Result<(), String> {
        let text = format!("{}\n", std::process::id());
        let length = text.len() as u64;
        let written = self.file.write_all_at(text.as_bytes(), 0);
        let written = written.and_then(|()| self.file.set_len(length));
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Removes the file, or empties it where it can't be removed; one that names another process by now stays.
    pub(super) fn remove(self) {
        let mut text = [0; TEXT_BYTES];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        let own = format!("{}\n", std::process::id());
        if &text[..read] == own.as_bytes() && std::fs::remove_file(&self.path).is_err() {
            let emptied: io::Result<()> = self.file.set_len(0);
            // There is no process left to tell.
            let _ = emptied;
        }
    }
}

/// Checks whether it is a file that a process may have left its id in, which is `user` or will be.
fn check_kind(about: &Metadata, user: Option<u32>) -> io::Result<()> {
    let owner = about.uid();
    let is_known = owner == 0 || owner == geteuid().as_raw() || Some(owner) == user;
    let what = if about.is_symlink() {
        "it is a link"
    } else if !about.is_file() {
        "it is not a regular file"
    } else if about.nlink() != 1 {
        "it has more than one name"
    } else if !is_known {
        "it belongs to another user"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// Checks that nothing would be lost: the file is empty, or holds a process id.
fn check_text(file: &mut File) -> io::Result<()> {
    let mut text = Vec::new();
    file.take(TEXT_BYTES as u64 + 1).read_to_end(&mut text)?;
    let number = text.strip_suffix(b"\n").unwrap_or(&text);
    if text.len() <= TEXT_BYTES && number.iter().all(u8::is_ascii_digit) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "it contains something other than a process id",
    ))
}

/// The path without links to directories. Only those of root and of this process' user are followed.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let start = if path.is_absolute() { PathBuf::new() } else { std::env::current_dir()? };
    let parts = |path: &Path| -> Vec<_> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut resolved, mut left, mut links) = (start, parts(path), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            resolved.pop();
            continue;
        }
        if part == "." {
            continue;
        }
        let next = resolved.join(&part);
        if left.is_empty() {
            return Ok(next);
        }
        let about = std::fs::symlink_metadata(&next)?;
        if !about.is_symlink() {
            resolved = next;
            continue;
        }
        links += 1;
        if links > LINKS_COUNT || (about.uid() != 0 && about.uid() != geteuid().as_raw()) {
            let what = format!("{} is a link of another user, or one of too many", next.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        left.extend(parts(&std::fs::read_link(&next)?));
    }
    Err(io::ErrorKind::IsADirectory.into())
}

/// Opens the file, or makes it; a link that has taken the place of a directory since the path was resolved is an error.
fn open_without_links(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    #[cfg(target_os = "linux")]
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6.
        Err(rustix::io::Errno::NOSYS) => {}
        opened => return Ok(opened?.into()),
    }
    Ok(rustix::fs::open(path, flags, mode)?.into())
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("--pid-file {}: can't be written: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_successor_stays() {
        let path = std::env::temp_dir().join(format!("bolide-pid-{}", std::process::id()));
        std::fs::write(&path, "123456789\n").unwrap();
        let file = PidFile::open(&path, None).unwrap();
        file.write().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
        std::fs::write(&path, "1\n").unwrap();
        file.remove();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
        let file = PidFile::open(&path, None).unwrap();
        file.write().unwrap();
        file.remove();
        assert!(!path.exists());
        assert!(
            PidFile::open(Path::new("/no/such/directory/pid"), None)
                .unwrap_err()
                .contains("/no/such")
        );
    }

    #[test]
    fn no_link_is_followed_and_nothing_foreign_is_touched() {
        let directory =
            std::env::temp_dir().join(format!("bolide-pid-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let target = directory.join("target");
        std::fs::write(&target, "precious\n").unwrap();
        let refused = |path: &Path, what: &str| {
            let error = PidFile::open(path, None).unwrap_err();
            assert!(error.contains(what), "{error}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious\n");
        };
        refused(&target, "something other than a process id");
        let link = directory.join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        refused(&link, "can't be written");
        assert!(PidFile::check(&link, None).unwrap_err().contains("it is a link"));
        let number = directory.join("number");
        std::fs::write(&number, "1\n").unwrap();
        let other = directory.join("other");
        std::fs::hard_link(&number, &other).unwrap();
        refused(&other, "more than one name");
        refused(&directory, "can't be written");
        if geteuid().is_root() {
            let (foreign, away) = (directory.join("foreign"), directory.join("away"));
            std::fs::remove_file(&other).unwrap();
            std::os::unix::fs::chown(&number, Some(65_533), None).unwrap();
            refused(&number, "belongs to another user");
            assert!(PidFile::open(&number, Some(65_533)).is_ok(), "it is the user's own");
            std::fs::create_dir(&away).unwrap();
            std::os::unix::fs::symlink(&away, &foreign).unwrap();
            assert!(PidFile::open(&foreign.join("pid"), None).is_ok(), "a link of root's");
            std::fs::remove_file(away.join("pid")).unwrap();
            std::os::unix::fs::lchown(&foreign, Some(65_533), None).unwrap();
            refused(&foreign.join("pid"), "a link of another user");
            assert!(!away.join("pid").exists(), "nothing is made behind it");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
