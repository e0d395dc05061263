//! Pieces of bodies that are ranges of open files.

use std::sync::Arc;

use bolide_eventloop::SharedFile;

/// A range of an open file as a piece of a body: it goes from the kernel's memory to the socket.
///
/// ```
/// use std::fs::File;
/// use std::os::unix::fs::FileExt;
/// use std::sync::Arc;
///
/// use bolide_server::{BodyStream, FilePiece, FileVersion, Pull, SharedFile};
///
/// /// A file, from its beginning to its end.
/// #[derive(Debug)]
/// struct Download {
///     file: File,
///     shared: Arc<SharedFile>,
///     sent: u64,
/// }
///
/// impl Download {
///     fn new(file: File) -> std::io::Result<Self> {
///         let version = FileVersion::of(&file)?;
///         let shared = SharedFile::new(Arc::new(file.try_clone()?.into()), version);
///         Ok(Self { file, shared: Arc::new(shared), sent: 0 })
///     }
/// }
///
/// impl BodyStream for Download {
///     fn length(&self) -> Option<u64> {
///         Some(self.shared.version().length)
///     }
///
///     fn pull(&mut self, bytes_max: usize) -> Pull {
///         let mut piece = vec![0; bytes_max];
///         match self.file.read_at(&mut piece, self.sent) {
///             Ok(0) if self.sent == self.shared.version().length => Pull::End,
///             Ok(0) | Err(_) => Pull::Failed,
///             Ok(count) => {
///                 piece.truncate(count);
///                 self.sent += count as u64;
///                 Pull::Data(piece.into())
///             }
///         }
///     }
///
///     fn pull_file(&mut self, bytes_max: usize) -> Option<FilePiece> {
///         let left = self.shared.version().length - self.sent;
///         let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max);
///         if !self.shared.is_cached(self.sent, bytes) {
///             return None;
///         }
///         let (file, offset) = (Arc::clone(&self.shared), self.sent);
///         self.sent += bytes as u64;
///         Some(FilePiece { file, offset, bytes, is_last: bytes as u64 == left })
///     }
/// }
/// # let mut download = Download::new(File::open("/dev/null")?)?;
/// # assert!(download.pull_file(1).is_none() && matches!(download.pull(1), Pull::End));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilePiece {
    /// The file, and the version of it that was promised. Once it has become another, the connection is reset.
    pub file: Arc<SharedFile>,
    /// Offset of the piece in it, in bytes.
    pub offset: u64,
    /// Its length in bytes, all of which the file must have. Not 0, unless it is the last piece.
    pub bytes: usize,
    /// True if the body ends with it.
    pub is_last: bool,
}
