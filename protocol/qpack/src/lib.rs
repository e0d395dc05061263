//! QPACK (RFC 9204): field compression for HTTP/3.
//!
//! [`Decoder`] turns encoded field sections into [sections of fields](bolide_semantics::FieldSection), [`Encoder`] turns
//! fields into encoded field sections. Each has a dynamic table that the instructions of the two unidirectional
//! streams keep in step, and owns no memory until something is put into it.
//!
//! This crate must never know frames, streams but for their numbers, or what a field means.

mod decoder;
mod encoder;
mod error;
pub mod limits;
mod static_table;

pub use decoder::{Decoded, Decoder};
pub use encoder::{Encoder, SectionWriter};
pub use error::{Error, ErrorKind};
