//! HPACK (RFC 7541): header compression for HTTP/2.
//!
//! [`Decoder`] turns header blocks into [sections of fields](FieldSection), [`Encoder`] turns fields into header
//! blocks. Each holds one dynamic table and owns no memory until something is put into it.
//!
//! What QPACK (RFC 9204) has in common with HPACK is public: [`huffman`], [`integer`] and [`string`](mod@string) coding, the
//! [`table`], its [`lookup`] and the [`policy`] of what goes into it.
//!
//! This crate must never know frames, streams, or what a field means.

mod decoder;
mod encoder;
mod error;
pub mod huffman;
pub mod integer;
pub mod limits;
pub mod lookup;
pub mod policy;
mod section;
mod static_table;
pub mod string;
pub mod table;

pub use bolide_semantics::{FieldSection, Line, NameKind, Note, Pseudo};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::Error;
pub use section::{DecodedField, EachField};
