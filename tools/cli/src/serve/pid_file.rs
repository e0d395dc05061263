//! `--pid-file`: the process id, for those who send signals.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::writable;

/// The file, open from before privileges are given up.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    file: File,
}

impl PidFile {
    /// Whether it can be opened for writing.
    pub(super) fn check(path: &Path) -> Result<(), String> {
        writable::check(path).map_err(|error| failed(path, &error))
    }

    /// Opens it for writing.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| failed(path, &error))?;
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
        let mut text = [0; 16];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        let own = format!("{}\n", std::process::id());
        if &text[..read] == own.as_bytes() && std::fs::remove_file(&self.path).is_err() {
            let emptied: io::Result<()> = self.file.set_len(0);
            // There is nobody left to tell.
            let _ = emptied;
        }
    }
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
        std::fs::write(&path, "a longer text than any number\n").unwrap();
        let file = PidFile::open(&path).unwrap();
        file.write().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
        std::fs::write(&path, "1\n").unwrap();
        file.remove();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
        let file = PidFile::open(&path).unwrap();
        file.write().unwrap();
        file.remove();
        assert!(!path.exists());
        assert!(PidFile::open(Path::new("/no/such/folder/pid")).unwrap_err().contains("/no/such"));
    }
}
