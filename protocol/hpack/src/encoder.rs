//! RFC 7541 §6, §7.1: from field lines to a header block.

use bolide_semantics::FieldRef;

use crate::Pseudo;

/// Encodes the header blocks of one direction of a connection, in their order.
#[derive(Debug, Default)]
pub struct Encoder {}

impl Encoder {
    /// An encoder that uses 4096 octets of table. Owns no memory until an entry is inserted.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE. The next block begins with the size updates that this
    /// needs (RFC 7541 §4.2).
    pub fn set_peer_table_bytes(&mut self, bytes: u32) {
        let _ = bytes;
    }

    /// Begins a block. Also before a block that is sent from memory.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends `:status`.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let _ = (status, out);
    }

    /// Appends a pseudo-field.
    pub fn pseudo(&mut self, pseudo: Pseudo, value: &[u8], out: &mut Vec<u8>) {
        let _ = (pseudo, value, out);
    }

    /// Appends a field line.
    pub fn field(&mut self, field: &FieldRef<'_>, out: &mut Vec<u8>) {
        let _ = (field, out);
    }

    /// Counts changes of the table. While it is unchanged, a block that itself inserted nothing may
    /// be sent again as it is.
    #[must_use]
    pub fn generation(&self) -> u32 {
        0
    }

    /// The memory that the encoder holds, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        0
    }
}
