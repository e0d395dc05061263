//! RFC 7541 §3, §6: from a header block to field lines.

use crate::{DecodedField, Error};

/// Decodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {}

impl Decoder {
    /// A decoder whose peer may use `table_bytes_max` octets of table: 4096 until a setting of ours
    /// was acknowledged. Owns no memory until an entry is inserted.
    #[must_use]
    pub fn new(table_bytes_max: usize) -> Self {
        let _ = table_bytes_max;
        Self {}
    }

    /// Decodes one whole header block and calls `field` for each line in order, until it returns
    /// `false`: the rest is still decoded, since the table must stay in step.
    pub fn decode<F>(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
        field: &mut F,
    ) -> Result<(), Error>
    where
        F: FnMut(DecodedField<'_>) -> bool,
    {
        let _ = (block, scratch, field);
        unimplemented!()
    }

    /// Our SETTINGS_HEADER_TABLE_SIZE was acknowledged.
    pub fn set_table_bytes_max(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// The memory that the decoder holds, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        0
    }
}
