//! Errors of a header block.

use thiserror::Error;

/// A header block that can't be decoded: a connection error of type `COMPRESSION_ERROR`
/// (RFC 9113 §4.3). The two tables are out of step from then on, so the decoder must not be used
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// Index 0, or one beyond the tables (RFC 7541 §2.3.3).
    #[error("an index that neither table has")]
    InvalidIndex,
    /// An integer too large or too long (RFC 7541 §5.1).
    #[error("an integer that is too large")]
    IntegerOverflow,
    /// The block ends inside a representation.
    #[error("the block ends inside a field line")]
    Truncated,
    /// Wrong padding, or the EOS symbol (RFC 7541 §5.2).
    #[error("a Huffman-coded string with wrong padding or an EOS symbol")]
    InvalidHuffman,
    /// A table size update above what SETTINGS_HEADER_TABLE_SIZE allows (RFC 7541 §6.3).
    #[error("a table size update above the allowed maximum")]
    SizeUpdateTooLarge,
    /// A table size update after the first field line (RFC 7541 §4.2).
    #[error("a table size update inside a block")]
    MisplacedSizeUpdate,
    /// More table size updates in one block than an encoder can need (RFC 7541 §4.2).
    #[error("more than two table size updates in a block")]
    TooManySizeUpdates,
    /// No table size update in the first block after our reduction was acknowledged
    /// (RFC 9113 §4.3.1).
    #[error("the table size update that a reduction requires is missing")]
    MissingSizeUpdate,
}
