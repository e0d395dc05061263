//! The limits of the access log.

use std::time::Duration;

use bolide_limits::limits;

/// The longest value in a line of the access log; what is longer is cut. Default: 2 KiB. Unit: bytes. Reason:
/// real targets and user agents are shorter, and a request must not cost more log than itself. Against:
/// log-flood.
pub const LOG_FIELD_BYTES: usize = 2048;

/// The longest beginning of a line of the access log, in JSON, that a connection keeps for its next lines; a longer one
/// is made for each. Default: 512 bytes. Unit: bytes. Reason: an address, what TLS agreed on, a host and the user
/// agent of a browser take some 350. Against: log-flood.
pub const LOG_STAMP_BYTES: usize = 512;

limits! {
    /// Lines of the access log that a worker keeps before they are written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct LogLimits named "LOG_" {
        /// After how many bytes a worker hands its lines of the access log over. Default: 256 KiB. Unit: bytes. Reason: some
        /// thousand lines, so that the thread that writes is woken seldom, and the kernel takes many pages at once. Against: none.
        block_bytes: usize [from 1024 to 1 << 24] = 256 * 1024,

        /// How many blocks of lines may wait for the disk before more are dropped and counted. Default: 64. Unit: blocks. Reason:
        /// 16 MiB, some fifteenth of a second of the fastest log; a disk that is slower for longer must not fill the memory.
        /// Against: log-flood.
        queue_count: usize [to 65_536] = 64,

        /// How long a line of the access log waits at most before it is handed over. Default: 100 ms. Unit: time. Reason: who
        /// watches the log doesn't notice. Against: none.
        delay: Duration = Duration::from_millis(100),
    }
}
