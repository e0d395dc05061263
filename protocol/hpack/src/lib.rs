//! HPACK (RFC 7541): header compression for HTTP/2.
//!
//! [`Decoder`] turns header blocks into [sections of fields](FieldSection), [`Encoder`] turns fields into header
//! blocks. Each holds one dynamic table and owns no memory until something is put into it.
//!
//! This crate must never know frames, streams, or what a field means.

mod decoder;
mod encoder;
mod error;
mod huffman;
mod integer;
pub mod limits;
mod lookup;
mod policy;
mod section;
mod static_table;
mod table;

pub use bolide_semantics::{FieldSection, Line, NameKind, Note, Pseudo};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::Error;
pub use section::{DecodedField, EachField};
