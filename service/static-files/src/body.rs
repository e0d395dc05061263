//! A body that is read from an open file while it is sent.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_eventloop::Offload;
use bolide_semantics::ByteRange;
use bolide_server::{BodyStream, FilePiece, FileVersion, Pull, SharedFile, Waker};
use bytes::Bytes;

use crate::disk::{DiskFile, Stamp};
use crate::limits::SENDFILE_BYTES;
use crate::pieces::Pieces;

/// Reader on behalf of one exchange.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) offload: Offload,
    pub(crate) pieces: Arc<Pieces>,
    pub(crate) waker: Waker,
}

/// An open file and the version of it that the head has promised.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) stamp: Stamp,
    /// The same as a file of the system, if it is one.
    shared: Option<Arc<SharedFile>>,
    /// The kernel may send it.
    sends: bool,
}

/// A part of a body.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Range that is to be read.
    File(ByteRange),
}

impl Segment {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(range) => range.length(),
        }
    }
}

/// Bytes that a job has read. Empty while it reads.
type Slot = Arc<Mutex<Option<io::Result<Bytes>>>>;

/// The body: at most one piece of it is in memory, in addition to what the connection holds.
#[derive(Debug)]
pub(crate) struct FileBody {
    segments: VecDeque<Segment>,
    length: u64,
    version: Version,
    reader: Reader,
    /// Slot that a job on another thread reads into.
    awaited: Option<Slot>,
    taken: u64,
    /// The last piece was left to the kernel, and its segment goes on.
    by_kernel: bool,
}

impl FileBody {
    pub(crate) fn new(segments: Vec<Segment>, version: Version, reader: Reader) -> Self {
        let length = segments.iter().map(Segment::length).sum();
        let segments = segments.into();
        Self { segments, length, version, reader, awaited: None, taken: 0, by_kernel: false }
    }

    /// The piece that was waited for, if it has come.
    fn arrived(&mut self) -> Option<io::Result<Bytes>> {
        let slot = self.awaited.as_ref()?;
        let arrived = slot.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.awaited = None;
        Some(arrived)
    }

    /// Reads what is in memory already, or has another thread read.
    fn read(&mut self, range: ByteRange, bytes_max: usize) -> Option<io::Result<Bytes>> {
        let left = usize::try_from(range.length()).unwrap_or(usize::MAX);
        let wanted = self.reader.pieces.next_bytes(self.taken).min(bytes_max).min(left).max(1);
        let read = |file: &dyn DiskFile, buffer: &mut [u8], offset| file.read_now(buffer, offset);
        match self.version.read(&self.reader.pieces, range.start, wanted, read) {
            Ok(None) => {}
            Ok(Some(piece)) => return Some(Ok(piece)),
            Err(error) => return Some(Err(error)),
        }
        let slot = Slot::default();
        let (version, reader, filled) =
            (self.version.clone(), self.reader.clone(), Arc::clone(&slot));
        let job = move || {
            let read = |file: &dyn DiskFile, buffer: &mut [u8], offset| {
                file.read_at(buffer, offset).map(Some)
            };
            let piece = version.read(&reader.pieces, range.start, wanted, read);
            let piece = piece.and_then(|piece| piece.ok_or_else(ended));
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(piece);
            reader.waker.wake();
        };
        match self.reader.offload.resume(job) {
            Ok(()) => {
                self.awaited = Some(slot);
                None
            }
            Err(full) => Some(Err(io::Error::other(full))),
        }
    }

    /// So many bytes of the file go on their way.
    fn pass(&mut self, bytes: u64) {
        self.taken += bytes;
        if let Some(Segment::File(range)) = self.segments.front_mut() {
            range.start += bytes;
            if range.start == range.end {
                self.by_kernel = false;
                self.segments.pop_front();
            }
        }
    }

    fn take(&mut self, piece: Bytes) -> Pull {
        self.pass(piece.len() as u64);
        if self.segments.is_empty() { Pull::Last(piece) } else { Pull::Data(piece) }
    }
}

impl Version {
    /// `sends`: whether the kernel may send it, where it can. May wait for the disk.
    pub(crate) fn new(file: Arc<dyn DiskFile>, stamp: Stamp, sends: bool) -> Self {
        let version = FileVersion {
            length: stamp.length,
            modified_seconds: stamp.modified.seconds,
            modified_nanoseconds: stamp.modified.nanoseconds,
        };
        let shared = file.descriptor().map(|file| Arc::new(SharedFile::new(file, version)));
        Self { file, stamp, shared, sends }
    }

    /// One piece, of this version for sure: of a file that has become another, nothing is sent.
    fn read(
        &self,
        pieces: &Arc<Pieces>,
        offset: u64,
        bytes: usize,
        read: impl FnOnce(&dyn DiskFile, &mut [u8], u64) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<Bytes>> {
        let piece = pieces.fill(bytes, |buffer| read(&*self.file, buffer, offset))?;
        match &piece {
            None => return Ok(None),
            Some(piece) if piece.is_empty() => return Err(ended()),
            Some(_) => {}
        }
        // Looked at after the read: whatever was written before it is seen.
        self.check().map(|()| piece)
    }

    /// Fails once what the head has promised is no longer what is there.
    fn check(&self) -> io::Result<()> {
        match &self.shared {
            Some(shared) => shared.check(),
            None if self.file.stamp()?.is_same_content(&self.stamp) => Ok(()),
            None => Err(io::Error::other("the file changed while it was sent")),
        }
    }
}

fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl BodyStream for FileBody {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    /// Of a large file, what is in memory already: the rest is read by the pool.
    fn pull_file(&mut self, bytes_max: usize) -> Option<FilePiece> {
        let may_send = self.version.sends && self.awaited.is_none();
        let file = self.version.shared.as_ref().filter(|_| may_send)?;
        let Some(Segment::File(range)) = self.segments.front() else { return None };
        let is_large = self.by_kernel || range.length() >= SENDFILE_BYTES;
        let bytes = usize::try_from(range.length()).unwrap_or(usize::MAX).min(bytes_max);
        if !is_large || !file.is_cached(range.start, bytes) {
            return None;
        }
        let (file, offset) = (Arc::clone(file), range.start);
        self.by_kernel = true;
        self.pass(bytes as u64);
        Some(FilePiece { file, offset, bytes, is_last: self.segments.is_empty() })
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        let range = match self.segments.front() {
            None => return Pull::End,
            Some(Segment::File(range)) => *range,
            Some(Segment::Bytes(_)) => {
                let Some(Segment::Bytes(bytes)) = self.segments.pop_front() else {
                    return Pull::Failed;
                };
                let is_last = self.segments.is_empty();
                return if is_last { Pull::Last(bytes) } else { Pull::Data(bytes) };
            }
        };
        let piece =
            if self.awaited.is_some() { self.arrived() } else { self.read(range, bytes_max) };
        match piece {
            None => Pull::Pending,
            Some(Ok(piece)) => self.take(piece),
            Some(Err(_)) => Pull::Failed,
        }
    }
}
