//! From a name to what is served under it. Runs on a thread that may wait.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bolide_compression::files;
use bytes::Bytes;

use crate::body::Version;
use crate::disk::{DiskFile, Found, Stamp};
use crate::entry::{Content, Description, Entry, Source};
use crate::limits::COMPRESSED_FILE_BYTES;
use crate::site::{Missing, StaticFiles};
use crate::{listing, media_type};

/// The codings of siblings and how their names end, in order of preference.
const SIBLINGS: [(&str, &str); 3] = [("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz")];

/// A file that changed less than so many seconds ago may change again without another time of change:
/// some file systems count in twos.
const RACY_SECONDS: i64 = 2;

/// How often a file is read again that changes while it is read.
const ATTEMPTS: usize = 4;

/// Object that a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Loaded {
    /// A file.
    Entry(Arc<Entry>),
    /// A directory, asked for without the slash at its end.
    Directory,
    /// A list of a directory's entries, in HTML.
    Listing(Bytes),
    /// Nothing, and the page that says so.
    Missing(Option<Arc<Entry>>),
    /// It can't be said now.
    Failed,
}

impl StaticFiles {
    /// Finds out what a decoded path stands for; an empty one for nothing. `known` is what it stood for
    /// before: kept if that is unchanged. `now`: when the request came that asks.
    pub(crate) fn load(&self, name: &str, known: Option<&Arc<Entry>>, now: Instant) -> Loaded {
        let found = match name.strip_prefix('/') {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(below) => self.find(name, below, known),
        };
        match found {
            Ok(loaded) => loaded,
            Err(error) if is_missing(&error) => Loaded::Missing(self.missing_page(now)),
            Err(_) => Loaded::Failed,
        }
    }

    fn find(&self, name: &str, below: &str, known: Option<&Arc<Entry>>) -> io::Result<Loaded> {
        let is_directory = below.is_empty() || below.ends_with('/');
        let directory = below.trim_end_matches('/');
        if !is_directory {
            return match self.disk.open(below)? {
                Found::File(file) => self.entry(name, below, file, known).map(Loaded::Entry),
                Found::Directory => Ok(Loaded::Directory),
            };
        }
        for index in &self.settings.index {
            let file =
                if directory.is_empty() { index.clone() } else { format!("{directory}/{index}") };
            match self.disk.open(&file) {
                Ok(Found::File(opened)) => {
                    let name = format!("/{file}");
                    return self.entry(&name, &file, opened, known).map(Loaded::Entry);
                }
                Ok(Found::Directory) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.settings.listing {
            return Err(io::ErrorKind::NotFound.into());
        }
        listing::page(&*self.disk, directory, self.settings.hidden).map(Loaded::Listing)
    }

    /// Returns whether a name is known, without waiting for the disk, to stand for nothing, and the page that says so.
    pub(crate) fn missing_now(&self, name: &str, now: Instant) -> Option<Option<Arc<Entry>>> {
        let below = name.strip_prefix('/').filter(|below| !below.ends_with('/'))?;
        let page = match &self.settings.missing {
            None => None,
            Some(missing) => Some(missing.fresh(now, self.settings.limits.fresh)?),
        };
        let is_missing = !below.is_empty() && self.disk.is_missing_now(below);
        is_missing.then_some(page)
    }

    /// The page for what is not there. As any file, it is looked at again when it is no longer fresh.
    fn missing_page(&self, now: Instant) -> Option<Arc<Entry>> {
        let missing = self.settings.missing.as_ref()?;
        if let Some(page) = missing.fresh(now, self.settings.limits.fresh) {
            return Some(page);
        }
        let Missing { name, known, .. } = missing;
        let before = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Found::File(file) = self.disk.open(name).ok()? else { return None };
        let before = before.as_ref().map(|(entry, _)| entry);
        let entry = self.entry(&format!("/{name}"), name, file, before).ok()?;
        *known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::clone(&entry), now));
        Some(entry)
    }

    /// An opened file with its siblings. `name` is its path, by which its fields are chosen.
    fn entry(
        &self,
        name: &str,
        below: &str,
        file: Box<dyn DiskFile>,
        known: Option<&Arc<Entry>>,
    ) -> io::Result<Arc<Entry>> {
        let stamp = file.stamp()?;
        let mut files = vec![("", file, stamp)];
        if self.settings.precompressed {
            for (coding, ending) in SIBLINGS {
                if let Ok(Found::File(sibling)) = self.disk.open(&format!("{below}{ending}"))
                    && let Ok(its) = sibling.stamp()
                    && its.modified.seconds >= stamp.modified.seconds
                {
                    files.push((coding, sibling, its));
                }
            }
        }
        if let Some(known) = known
            && !known.is_racy
            && known
                .sources
                .iter()
                .copied()
                .eq(files.iter().map(|(coding, _, its)| (*coding, *its)))
        {
            return Ok(Arc::clone(known));
        }
        let media_type = media_type::of(name);
        let compresses =
            self.settings.compress && media_type.to_str().is_ok_and(media_type::is_text);
        let cached_bytes_max = self.settings.limits.cached_file_bytes;
        let whole_bytes_max =
            if compresses { COMPRESSED_FILE_BYTES.max(cached_bytes_max) } else { cached_bytes_max };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let mut sources = Vec::with_capacity(files.len());
        for (coding, file, stamp) in files {
            sources.push(source(coding, file, stamp, whole_bytes_max, self.settings.sendfile)?);
        }
        if compresses {
            add_compressed(&mut sources);
        }
        let is_recent = |seconds: i64| now.saturating_sub(seconds) < RACY_SECONDS;
        let is_settled = !sources.iter().any(|source| is_recent(source.stamp.modified.seconds));
        let is_racy =
            !is_settled || sources.iter().any(|source| is_recent(source.stamp.changed.seconds));
        let cache_control = self.settings.cache_control_of(name);
        let description = Description { media_type, cache_control, is_racy, is_settled };
        Ok(Arc::new(Entry::new(&description, sources)))
    }
}

/// Reads a small file, all of one version; leaves a large one to be read while it is sent.
fn source(
    coding: &'static str,
    file: Box<dyn DiskFile>,
    mut stamp: Stamp,
    whole_bytes_max: usize,
    sends: bool,
) -> io::Result<Source> {
    for _ in 0..ATTEMPTS {
        let length = usize::try_from(stamp.length).unwrap_or(usize::MAX);
        if length > whole_bytes_max {
            let content = Content::File(Version::new(file.into(), stamp, sends));
            return Ok(Source { coding, content, length: stamp.length, stamp, is_made: false });
        }
        let content = read_whole(&*file, length)?;
        let after = file.stamp()?;
        if content.len() == length && after == stamp {
            let content = Content::Memory(content.into());
            return Ok(Source { coding, content, length: stamp.length, stamp, is_made: false });
        }
        stamp = after;
    }
    Err(io::Error::other("the file changes faster than it can be read"))
}

/// Up to `length` bytes, fewer if the file has fewer.
fn read_whole(file: &dyn DiskFile, length: usize) -> io::Result<Vec<u8>> {
    let mut content = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut content[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    content.truncate(filled);
    Ok(content)
}

/// Adds what compression makes of the first source, in codings that have no sibling.
fn add_compressed(sources: &mut Vec<Source>) {
    let Some(Source { content: Content::Memory(plain), stamp, .. }) = sources.first() else {
        return;
    };
    let (plain, stamp) = (plain.clone(), *stamp);
    for coding in files::CODINGS {
        if sources.iter().any(|source| source.coding == coding) {
            continue;
        }
        if let Some(content) = files::compressed(coding, &plain) {
            let length = content.len() as u64;
            let content = Content::Memory(content.into());
            sources.push(Source { coding, content, length, stamp, is_made: true });
        }
    }
    sources[1..]
        .sort_by_key(|source| SIBLINGS.iter().position(|(coding, _)| *coding == source.coding));
}

/// Returns whether the error says that there is nothing to serve, rather than that something is wrong.
fn is_missing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let by_kind = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
    );
    // ENXIO is what opening a socket says.
    let named = [Errno::LOOP, Errno::NAMETOOLONG, Errno::XDEV, Errno::NXIO];
    by_kind || named.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
