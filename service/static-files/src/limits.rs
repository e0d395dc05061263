//! The limits of static files.

use std::time::Duration;

use bolide_limits::limits;

/// The largest file that is compressed on the fly, where that is turned on.
/// Default: 1 MiB. Unit: bytes. Reason: 20 ms of a thread of the pool, once for each version of the file.
/// Against: compression-flood.
pub const COMPRESSED_FILE_BYTES: usize = 1024 * 1024;

/// The largest piece of a file that is read at once.
/// Default: 256 KiB. Unit: bytes. Reason: beyond it a read gains nothing, and a slow client holds one of them.
/// Against: slow-download.
pub const PIECE_BYTES: usize = 256 * 1024;

/// The first piece, and every piece once [`PIECES_BYTES`] are out.
/// Default: 16 KiB. Unit: bytes. Reason: one TLS record, one HTTP/2 frame.
/// Against: slow-download.
pub const PIECE_MIN_BYTES: usize = 16 * 1024;

/// The smallest range of a file that goes by sendfile where it can; a smaller one is read.
/// Default: 128 KiB. Unit: bytes. Reason: a sixth of a server's work is saved there and a third at twice the size; below, nothing for sure.
/// Against: none.
pub const SENDFILE_BYTES: u64 = 128 * 1024;

/// Memory that pieces that were read and not yet sent may take together before they become small.
/// Default: 64 MiB. Unit: bytes. Reason: 256 fast downloads at full size; a crowd of slow ones costs 16 KiB each.
/// Against: slow-download.
pub const PIECES_BYTES: usize = 64 * 1024 * 1024;

/// How many entries of a directory a listing names.
/// Default: 5000. Unit: entries. Reason: a megabyte of HTML; who has more wants a search.
/// Against: large-listing.
pub const LISTING_COUNT: usize = 5000;

limits! {
    /// Memory and time that the files of a directory may take of a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FilesLimits {
        /// Size that one worker keeps of files in memory, their metadata included; the least used make place. Default: 32 MiB. Unit:
        /// bytes. Reason: the files of a large site's front page a few times over, and little next to a worker's connections.
        /// Against: cache-flood.
        cache_bytes: usize [from 0] = 32 * 1024 * 1024,

        /// How many files one worker keeps in memory. Default: 4096. Unit: files. Reason: a file may be empty, and yet has a name
        /// and fields. Against: cache-flood.
        cache_files_count: usize [from 0] = 4096,

        /// The largest file that is kept in memory. Default: 64 KiB. Unit: bytes. Reason: beyond it a read costs less than what it
        /// would push out. Against: cache-flood.
        cached_file_bytes: usize [from 0 to 1 << 30] = 64 * 1024,

        /// How long a file in memory is served without a look at the disk. Default: 1 s. Unit: time. Reason: who changes a file
        /// sees it changed before he has reloaded the page. Against: none.
        fresh: Duration [from 0] = Duration::from_secs(1),

        /// Memory that the requests of one worker may hold that wait for the disk; beyond it the response is 503. Default: 64
        /// MiB. Unit: bytes. Reason: 200,000 plain requests; those whose clients have gone hold theirs until the disk responds.
        /// Against: hung-disk.
        waiting_bytes: usize = 64 * 1024 * 1024,
    }
}
