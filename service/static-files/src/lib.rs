//! A directory served over HTTP: files from a bounded cache or in pieces from the disk, with conditional
//! requests and ranges (RFC 9110 §13, §14), compressed siblings, and nothing from outside of the root.
//!
//! [`StaticFiles`] says what is served and how; [`StaticFiles::routes`] adds it to a worker's router.
//! No worker ever waits for a disk: what isn't in memory is fetched by a small pool of threads.

mod body;
mod cache;
mod directory;
mod disk;
mod entry;
mod flight;
mod handler;
pub mod limits;
mod listing;
mod load;
mod media_type;
mod pattern;
mod pieces;
mod response;
mod site;

pub use bolide_eventloop::{Offload, OffloadLimits};
pub use disk::{Disk, DiskFile, Found, Listed, Stamp, Time};
pub use site::{RootError, StaticFiles};
