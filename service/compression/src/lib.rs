//! Content codings of responses that are made or passed on while they are sent: zstd, br and gzip.
//!
//! [`Compression`] says which responses are worth a coding; [`Codec`](bolide_server::Codec)s of
//! [`Compression::choose`] encode them.

mod codecs;
mod compression;
pub mod files;
pub mod limits;

pub use compression::{Compression, TypeError};
