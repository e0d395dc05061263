//! The limits of compressed responses.

/// The smallest response that is compressed, where its length is known. Default: 1 KiB. Unit: bytes. Reason: a smaller one
/// fits into one packet with its head, compressed or not. Answers: none.
pub const COMPRESS_MIN_BYTES: u64 = 1024;

/// Threads that compress what is too large for the event loops, for all workers together. Default: 4. Unit: threads.
/// Reason: they share the cores with the workers; a response waits for its turn and holds one piece meanwhile.
/// Answers: compression-flood.
pub const COMPRESS_THREADS_COUNT: usize = 4;
