//! The limits of the measurement endpoints.

use std::time::Duration;

/// The largest `/{size}`, to download or to upload.
/// Default: 1 TiB. Unit: bytes. Reason: more than an hour at 2 Gbit/s; a typing error must not fill a link for a week.
/// Against: none.
pub const SIZE_BYTES_MAX: u64 = 1 << 40;

/// The length of the query of an ndt7 request, which is kept as metadata; beyond it the response is 400. Default:
/// 4096. Unit: bytes. Reason: the protocol's own limit. Against: long-ndt7-query.
pub(crate) const NDT7_QUERY_BYTES: usize = 4096;

/// How many of a client's measurements are kept for the archive. Default: 256. Unit: messages. Reason: ten a
/// second for as long as a test may last, and more. Against: ndt7-measurement-flood.
pub(crate) const NDT7_MEASUREMENTS_COUNT: usize = 256;

/// The length of a client's measurement; longer ones are not kept. Default: 8192. Unit: bytes. Reason: one with
/// everything that is defined has about 1500. Against: ndt7-measurement-flood.
pub(crate) const NDT7_MEASUREMENT_BYTES: usize = 8192;

/// The client's measurements of one test together; those beyond it are not kept. Default: 512 KiB. Unit: bytes. Reason: as many as are
/// kept, of the usual 1500 bytes, and more. Against: ndt7-measurement-flood.
pub(crate) const NDT7_MEASUREMENTS_BYTES: usize = 512 * 1024;

/// Archive files of one worker that wait to be written; those of tests that end meanwhile are dropped and counted. Default: 64. Unit: files.
/// Reason: one thread writes some hundred in a second, and each may hold 600 KiB until then. Against: ndt7-archive-flood.
pub(crate) const NDT7_ARCHIVE_QUEUE_COUNT: usize = 64;

/// Archive files of one worker, at once; beyond it they are dropped and counted. Default: 200. Unit: files. Reason: tests that began
/// together end together. Against: ndt7-archive-flood.
pub(crate) const NDT7_ARCHIVE_BURST_COUNT: u32 = 200;

/// Archive files of one worker, refill. Default: 20. Unit: files per second. Reason: a test takes ten seconds, and two hundred at a time
/// measure nothing but each other. Against: ndt7-archive-flood.
pub(crate) const NDT7_ARCHIVE_REFILL_COUNT: u32 = 20;

/// How much more than `WEBSOCKET_OUTPUT_BYTES` may wait to be sent on one connection of `/ws` before nothing more is
/// received on it. Default: 16 MiB. Unit: bytes. Reason: the largest message, of a client that reads nothing before it
/// has sent all of it. Against: websocket-hoard.
pub(crate) const ECHO_AHEAD_BYTES: usize = 16 * 1024 * 1024;

/// How much more that may be on all connections of a worker to `/ws` together; beyond it, each waits for its client to
/// read. Default: 64 MiB. Unit: bytes. Reason: four of the largest messages. Against: websocket-hoard.
pub(crate) const ECHO_AHEAD_WORKER_BYTES: usize = 64 * 1024 * 1024;

/// `n` of `/events`, the number of events of a response. Default: 1,000,000. Unit: events. Reason: more than any model says; a typing
/// error must not fill a link for a week. Against: none.
pub(crate) const EVENTS_COUNT_MAX: u64 = 1_000_000;

/// `gap` of `/events`, the time between two events. Default: 60 s. Unit: time. Reason: as long as a silent connection lives.
/// Against: none.
pub(crate) const EVENT_GAP_MAX: Duration = Duration::from_secs(60);

/// `size` of `/events`, the data of one event. Default: 64 KiB. Unit: bytes. Reason: a line that clients accept. Against: none.
pub(crate) const EVENT_SIZE_BYTES_MAX: u64 = 64 * 1024;

/// A piece of events that are due at once; what is beyond it follows when the connection takes more. Default: 16 KiB. Unit: bytes.
/// Reason: a slow reader holds one piece, and a frame of HTTP/2 has that size. Against: slow-reader.
pub(crate) const EVENTS_PIECE_BYTES: usize = 16 * 1024;
