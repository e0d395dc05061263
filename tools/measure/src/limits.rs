//! Limits of what the measuring client takes from a server in addition to payload.

/// The description of measurement resources at `/.well-known/nq`; what is longer is cut off and can't be read then.
/// Default: 64 KiB. Unit: bytes. Reason: three URLs and a host's name take less than 1 KiB.
/// Against: none.
pub const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;

/// One measurement in a text message of ndt7; a longer one ends the subtest.
/// Default: 64 KiB. Unit: bytes. Reason: all of TCPInfo in JSON takes about 1.5 KiB.
/// Against: none.
pub const MEASUREMENT_BYTES_MAX: usize = 64 * 1024;
