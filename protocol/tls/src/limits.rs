//! The limits of TLS.

/// What the records that are opened in one turn may take beyond their content before the others have their turn. Default: 48 KiB. Unit: bytes.
/// Reason: some 2,000 records of one byte, which take less than a millisecond; full records of a megabyte take 1.4 KiB. Answers: one-byte-records.
pub(crate) const PASS_OVERHEAD_BYTES: usize = 48 * 1024;
