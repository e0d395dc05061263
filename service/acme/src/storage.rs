//! RFC 8555 §11.1: account keys, certificates and their keys on the disk, readable for their owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files that are stored for one CA.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    directory: PathBuf,
}

impl Storage {
    /// Makes the directories, unless they are there.
    pub(crate) fn open(root: &Path, url: &str) -> Result<Self, String> {
        let directory = root.join(directory_of(url));
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| failed(&directory, error))?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))
            .map_err(|error| failed(&directory, error))?;
        let storage = Self { directory };
        // Finds out now what the first order would find out.
        storage.open_lock().map_err(|error| failed(&storage.path("lock"), error))?;
        Ok(storage)
    }

    /// Waits until no other process orders; none does until the result is dropped.
    pub(crate) fn lock(&self) -> io::Result<File> {
        let file = self.open_lock()?;
        file.lock()?;
        Ok(file)
    }

    fn open_lock(&self) -> io::Result<File> {
        self.options().write(true).open(self.path("lock"))
    }

    /// The content of a file; `None`: it is not there.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file at once: a reader finds the old or the new content, never a part.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = self.path(&format!("{name}.{}.new", std::process::id()));
        let written = || {
            let mut file = self.options().write(true).truncate(true).open(&new)?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&new, self.path(name))?;
            File::open(&self.directory)?.sync_all()
        };
        written().inspect_err(|_| drop(fs::remove_file(&new)))
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        options
    }
}

/// The name of a CA's directory: certificates of one, such as its staging environment, are not those of another.
fn directory_of(url: &str) -> String {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    let name = url.trim_matches('/').chars();
    let name: String = name.map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A directory that is removed in the end.
    #[derive(Debug)]
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("bolide-acme-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            drop(fs::remove_dir_all(&path));
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_stored_is_for_its_owner_alone_and_whole() {
        let scratch = Scratch::new();
        let storage = Storage::open(&scratch.0.join("a/b"), "https://ca.test:14000/dir").unwrap();
        assert_eq!(storage.directory, scratch.0.join("a/b/ca.test_14000_dir"));
        assert_eq!((mode(&storage.directory), mode(&scratch.0.join("a"))), (0o700, 0o700));
        assert_eq!(storage.read("x.org.pem").unwrap(), None);
        storage.write("x.org.pem", b"first, longer").unwrap();
        storage.write("x.org.pem", b"second").unwrap();
        assert_eq!(storage.read("x.org.pem").unwrap().as_deref(), Some(&b"second"[..]));
        assert_eq!(mode(&storage.path("x.org.pem")), 0o600);
        let names: Vec<_> = fs::read_dir(&storage.directory).unwrap().flatten().collect();
        assert_eq!(names.len(), 2, "the file and the lock: {names:?}");
        storage.remove("x.org.pem").unwrap();
        storage.remove("x.org.pem").unwrap();
        // One that was open to others is closed.
        fs::set_permissions(&storage.directory, fs::Permissions::from_mode(0o755)).unwrap();
        Storage::open(&scratch.0.join("a/b"), "https://ca.test:14000/dir").unwrap();
        assert_eq!(mode(&storage.directory), 0o700);
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let scratch = Scratch::new();
        let storage = Storage::open(&scratch.0, "https://ca.test/").unwrap();
        let held = storage.lock().unwrap();
        let other = storage.open_lock().unwrap();
        assert!(other.try_lock().is_err());
        drop(held);
        other.try_lock().unwrap();
    }

    #[test]
    fn no_url_leads_out_of_the_directory() {
        for (url, name) in [
            (
                "https://acme-v02.api.letsencrypt.org/directory",
                "acme-v02.api.letsencrypt.org_directory",
            ),
            ("https://../..", "_.._.."),
            ("https://", "_"),
            ("https://a/b?c=d/../e", "a_b_c_d_.._e"),
        ] {
            assert_eq!(directory_of(url), name);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let scratch = Scratch::new();
        fs::write(&scratch.0, "a file").unwrap();
        let said = Storage::open(&scratch.0, "https://ca.test/").unwrap_err();
        assert!(said.starts_with(&*scratch.0.to_string_lossy()), "{said}");
        fs::remove_file(&scratch.0).unwrap();
    }
}
