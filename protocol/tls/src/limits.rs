//! The limits of TLS.

/// Size that the records that are opened in one turn may take beyond their content before the others have their turn. Default: 48 KiB. Unit: bytes.
/// Reason: some 2,000 records of one byte, which take less than a millisecond; full records of a megabyte take 1.4 KiB. Against: one-byte-records.
pub(crate) const PASS_OVERHEAD_BYTES: usize = 48 * 1024;

/// How much plaintext is opened before it is parsed. Default: 128 KiB. Unit: bytes. Reason: what a connection whose output is full leaves of it is
/// copied, and a read can bring a megabyte. Against: none.
pub(crate) const PART_BYTES: usize = 128 * 1024;

/// How many sessions a listener keeps of clients that may send early data; beyond it the oldest is forgotten, and its client
/// begins in full. Default: 8192. Unit: sessions. Reason: two megabytes; some clients are back before as many others came. Against: replay.
pub(crate) const EARLY_SESSIONS_COUNT: usize = 8192;

/// How many tickets a client keeps of one server; beyond it the oldest is forgotten. Default: 1024. Unit: tickets. Reason: connections
/// of a load, which are begun at once, each need one. Against: none.
pub(crate) const TICKETS_COUNT: usize = 1024;

/// Of how many servers a client keeps tickets. Default: 32. Unit: servers. Reason: as many as a scenario has. Against: none.
pub(crate) const TICKETS_SERVERS_COUNT: usize = 32;
