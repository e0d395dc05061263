//! The limits of a site's rules.

use std::time::Duration;

/// The longest target, redirect or field value that a template may become; a longer target or redirect is a 400, and
/// a longer field is left out. Default: 8 KiB. Unit: bytes. Reason: as long as most servers let a target be; ten captures of
/// a long path must not multiply it. Against: template-growth.
pub const EXPANDED_BYTES: usize = 8 * 1024;

/// The longest pattern of a rewrite or a redirect. Default: 1 KiB. Unit: bytes. Reason: patterns take linear time in the
/// path, with a factor that grows with the pattern. Against: none.
pub const PATTERN_BYTES: usize = 1024;

/// The largest error page or maintenance page. Default: 256 KiB. Unit: bytes. Reason: it stays in memory, and is sent
/// when the server has other worries. Against: none.
pub const PAGE_BYTES: usize = 256 * 1024;

/// How often a worker looks whether the file of `while-file` exists. Default: 1 s. Unit: time. Reason: no
/// system call for each request, and an operator does not notice. Against: none.
pub const SWITCH_PERIOD: Duration = Duration::from_secs(1);
