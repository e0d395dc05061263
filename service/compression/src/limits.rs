//! The limits of compressed responses.

/// The smallest response that is compressed, where its length is known. Default: 1 KiB. Unit: bytes. Reason: a smaller one
/// fits into one packet with its head, compressed or not. Against: none.
pub const COMPRESS_MIN_BYTES: u64 = 1024;

/// Threads that compress what is too large for the event loops, for all workers together. Default: 4. Unit: threads.
/// Reason: they share the cores with the workers; a response waits for its turn and holds one piece meanwhile.
/// Against: compression-flood.
pub const COMPRESS_THREADS_COUNT: usize = 4;

/// The largest content that is compressed on the event loop at a time into zstd and gzip; more is compressed by other
/// threads. Default: 32 KiB. Unit: bytes. Reason: 0.1 ms; handing over costs 20 µs and more where cores are few.
/// Against: compression-flood.
pub const FAST_INLINE_BYTES: usize = 32 * 1024;
