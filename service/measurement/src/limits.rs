//! The limits of the measurement endpoints.

/// The largest `/{size}`, to download or to upload.
/// Default: 1 TiB. Unit: bytes. Reason: more than an hour at 2 Gbit/s; a typing error must not fill a link for a week.
/// Answers: none.
pub const SIZE_BYTES_MAX: u64 = 1 << 40;
