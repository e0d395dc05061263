//! Files that are served, and their settings.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bolide_eventloop::Offload;
use bolide_server::HeaderValue;

use crate::directory::Directory;
use crate::disk::{Disk, Found};
use crate::entry::Entry;
use crate::limits::FilesLimits;
use crate::pieces::Pieces;

/// Why a directory can't be a root.
#[derive(Debug, thiserror::Error)]
#[error("root `{}` {}", .path.display(), advice(.error))]
pub struct RootError {
    /// The directory as given.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

fn advice(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "doesn't exist: name a directory to serve",
        io::ErrorKind::NotADirectory => "is a file, not a directory: name the directory",
        io::ErrorKind::PermissionDenied => {
            "can't be read: grant this user read and search permission"
        }
        _ => return format!("can't be opened: {error}"),
    };
    advice.to_owned()
}

/// A directory to serve and how: index files, compressed siblings, caching, what is refused.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bolide_server::{Router, Server};
/// use bolide_static_files::StaticFiles;
///
/// let files = StaticFiles::new("site")?;
/// Server::new().http("127.0.0.1:8080").run(move || files.routes(Router::new()))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StaticFiles {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) offload: Offload,
    pub(crate) pieces: Arc<Pieces>,
    pub(crate) settings: Settings,
}

/// A file, and when the disk was looked at last.
type Checked = (Arc<Entry>, Instant);

/// The page for a path without a file, relative to the root.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    pub(crate) name: String,
    /// With 200, as if it were the file itself; else with 404.
    pub(crate) is_fallback: bool,
    /// Contents that were read last, by any worker, and when.
    pub(crate) known: Arc<Mutex<Option<Checked>>>,
}

impl Missing {
    fn new(name: &str, is_fallback: bool) -> Self {
        let name = name.trim_start_matches('/').to_owned();
        Self { name, is_fallback, known: Arc::default() }
    }

    /// The page, if it was looked at so lately.
    pub(crate) fn fresh(&self, now: Instant, fresh: Duration) -> Option<Arc<Entry>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (entry, checked) = known.as_ref()?;
        (now.saturating_duration_since(*checked) < fresh).then(|| Arc::clone(entry))
    }
}

/// The options of a [`StaticFiles`].
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) prefix: String,
    pub(crate) index: Vec<String>,
    pub(crate) precompressed: bool,
    pub(crate) compress: bool,
    pub(crate) listing: bool,
    pub(crate) hidden: bool,
    pub(crate) sendfile: bool,
    pub(crate) missing: Option<Missing>,
    pub(crate) cache_control: Vec<(String, HeaderValue)>,
    pub(crate) limits: FilesLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            index: vec!["index.html".to_owned()],
            precompressed: true,
            compress: false,
            listing: false,
            hidden: false,
            sendfile: true,
            missing: None,
            cache_control: Vec::new(),
            limits: FilesLimits::DEFAULT,
        }
    }
}

impl fmt::Debug for StaticFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk, settings, .. } = self;
        let mut debug = formatter.debug_struct("StaticFiles");
        debug.field("disk", disk).field("settings", settings).finish_non_exhaustive()
    }
}

impl StaticFiles {
    /// Serves this directory: the one that has the name now, even if another takes it later.
    ///
    /// # Errors
    ///
    /// [`RootError`] when it is no directory, or can't be read.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = root.as_ref();
        let fail = |error| RootError { path: path.to_owned(), error };
        Ok(Self::from_disk(Directory::open(path).map_err(fail)?))
    }

    /// Serves what this disk has.
    #[must_use]
    pub fn from_disk(disk: impl Disk) -> Self {
        Self {
            disk: Arc::new(disk),
            offload: Offload::default(),
            pieces: Arc::default(),
            settings: Settings::default(),
        }
    }

    /// Sets where the root stands in the paths of requests, such as `/assets`; a slash at the end changes
    /// nothing. Default: `/`.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        prefix.trim_end_matches('/').clone_into(&mut self.settings.prefix);
        self
    }

    /// The files that stand for a directory, in order of preference. Default: `index.html`. None: directories
    /// are not found, or listed.
    #[must_use]
    pub fn index<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.settings.index = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether `a.css.br`, `a.css.zst` and `a.css.gz` are served for `a.css` to clients that accept
    /// them, unless they are older than it. Default: yes.
    #[must_use]
    pub fn precompressed(mut self, precompressed: bool) -> Self {
        self.settings.precompressed = precompressed;
        self
    }

    /// Sets whether text without such siblings is compressed, once for each version of a file of up to
    /// [`COMPRESSED_FILE_BYTES`](crate::limits::COMPRESSED_FILE_BYTES). Default: no.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.settings.compress = compress;
        self
    }

    /// Sets whether a directory without an index file is answered with a list of what is in it. Default: no.
    #[must_use]
    pub fn listing(mut self, listing: bool) -> Self {
        self.settings.listing = listing;
        self
    }

    /// Sets whether names that begin with a dot are served. Default: no, but for `/.well-known/` (RFC 8615).
    #[must_use]
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.settings.hidden = hidden;
        self
    }

    /// Sets whether large files go by sendfile: over cleartext HTTP/1.1, on Linux, what the page cache holds of a range of
    /// [`SENDFILE_BYTES`](crate::limits::SENDFILE_BYTES) and more is not copied. A file that changes meanwhile ends
    /// the connection by a reset; but bytes that wait in the kernel are the file's own, so that a process that writes into
    /// it in place changes them, too. Files that are replaced by renaming need no care. Default: yes.
    #[must_use]
    pub fn sendfile(mut self, sendfile: bool) -> Self {
        self.settings.sendfile = sendfile;
        self
    }

    /// The file, relative to the root, that is sent with a 404; one of up to
    /// [`FilesLimits::cached_file_bytes`]. Default: none.
    #[must_use]
    pub fn not_found(mut self, name: &str) -> Self {
        self.settings.missing = Some(Missing::new(name, false));
        self
    }

    /// The file, relative to the root, that is sent with a 200 for every path without a file, but for hidden ones: the page of an
    /// application that reads the path itself. It replaces the page of [`not_found`](Self::not_found). Default: none.
    #[must_use]
    pub fn fallback(mut self, name: &str) -> Self {
        self.settings.missing = Some(Missing::new(name, true));
        self
    }

    /// Returns whether a file of this name, relative to the root, is there and can be opened; of use before
    /// [`not_found`](Self::not_found) and [`fallback`](Self::fallback), which send a short text while their file is missing. Looks at
    /// the disk.
    #[must_use]
    pub fn has_file(&self, name: &str) -> bool {
        matches!(self.disk.open(name.trim_start_matches('/')), Ok(Found::File(_)))
    }

    /// Adds `Cache-Control` to files whose path below the root matches `pattern`, in which `*` stands
    /// for any characters: `*.css`, `/assets/*`. The first pattern that matches counts. Default: none.
    #[must_use]
    pub fn cache_control(mut self, pattern: &str, value: HeaderValue) -> Self {
        self.settings.cache_control.push((pattern.to_owned(), value));
        self
    }

    /// How much one worker keeps in memory: bytes and files. Defaults: 32 MiB,
    /// 4096. 0 turns it off.
    #[must_use]
    pub fn cache(mut self, bytes: usize, files: usize) -> Self {
        self.settings.limits.cache_bytes = bytes;
        self.settings.limits.cache_files_count = files;
        self
    }

    /// The largest file that is kept in memory, in bytes. Default: 64 KiB.
    #[must_use]
    pub fn cached_file(mut self, bytes: usize) -> Self {
        self.settings.limits.cached_file_bytes = bytes;
        self
    }

    /// How long a file in memory is served without a look at the disk. Default: 1 s.
    #[must_use]
    pub fn fresh(mut self, fresh: Duration) -> Self {
        self.settings.limits.fresh = fresh;
        self
    }

    /// How many bytes the requests of one worker that wait for the disk may hold; others are answered
    /// with 503. Default: 64 MiB.
    #[must_use]
    pub fn waiting(mut self, bytes: usize) -> Self {
        self.settings.limits.waiting_bytes = bytes;
        self
    }

    /// The pool of threads that wait for the disk. Default: one of its own.
    #[must_use]
    pub fn offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }
}

impl Settings {
    /// Returns whether a decoded path names something that is hidden.
    pub(crate) fn hides(&self, name: &str) -> bool {
        !self.hidden
            && name.contains("/.")
            && name
                .strip_prefix("/.well-known/")
                .is_none_or(|rest| rest.starts_with('.') || rest.contains("/."))
    }

    /// The `Cache-Control` of a decoded path.
    pub(crate) fn cache_control_of(&self, name: &str) -> Option<&HeaderValue> {
        let mut rules = self.cache_control.iter();
        rules.find(|(pattern, _)| crate::pattern::matches(pattern, name)).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_cannot_be_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let message = |path: &Path| StaticFiles::new(path).unwrap_err().to_string();
        let missing = directory.path().join("missing");
        assert_eq!(
            message(&missing),
            format!("root `{}` doesn't exist: name a directory to serve", missing.display())
        );
        assert_eq!(
            message(&file),
            format!("root `{}` is a file, not a directory: name the directory", file.display())
        );
        assert!(message(Path::new("a\0b")).starts_with("root `a"));
    }

    #[test]
    fn a_page_is_there_or_not() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("404.html"), "").unwrap();
        let files = StaticFiles::new(directory.path()).unwrap();
        assert!(files.has_file("404.html") && files.has_file("/404.html"));
        for missing in ["none.html", "", "../404.html", "404.html/a"] {
            assert!(!files.has_file(missing), "{missing}");
        }
    }

    #[test]
    fn hidden_names() {
        let settings = Settings::default();
        for name in ["/.env", "/.git/config", "/a/.b", "/a/.b/c", "/.well-known/.a", "/.well-known"]
        {
            assert!(settings.hides(name), "{name}");
        }
        for name in ["/", "/a", "/a.b", "/a./b", "/.well-known/acme-challenge/x"] {
            assert!(!settings.hides(name), "{name}");
        }
        assert!(!Settings { hidden: true, ..settings }.hides("/.env"));
    }

    #[test]
    fn the_first_pattern_counts() {
        let value = HeaderValue::from_static;
        let settings = Settings {
            cache_control: vec![
                ("/assets/*".to_owned(), value("immutable")),
                ("*.html".to_owned(), value("no-cache")),
            ],
            ..Settings::default()
        };
        assert_eq!(settings.cache_control_of("/assets/a.html"), Some(&value("immutable")));
        assert_eq!(settings.cache_control_of("/a/b.html"), Some(&value("no-cache")));
        assert_eq!(settings.cache_control_of("/a.css"), None);
    }
}
