//! The limits of header compression. What a whole field section may take is HTTP/2's to say.

/// The dynamic table, in either direction, as RFC 7541 §4.1 counts it (names, values and 32 bytes
/// for each entry). Default: 4096. Unit: bytes. Reason: the protocol's initial value; more helps
/// few and costs memory on every connection. Against: hpack-bomb.
pub const TABLE_BYTES: u32 = 4096;

/// The largest table size that the decoder can be told to allow. Default: 65535. Unit: bytes.
/// Reason: an entry's lengths are kept in 16 bits. Against: hpack-bomb.
pub const TABLE_CEILING_BYTES: u32 = 65_535;

/// The largest length, size or index in a block. Default: 268435456. Unit: bytes (of an index:
/// entries). Reason: 28 bits are far more than any that can be right. Against: integer-overflow.
pub const LENGTH_CEILING_BYTES: u32 = 1 << 28;

/// Bytes of an integer after its prefix. Default: 5. Unit: bytes. Reason: 28 bits need four; one
/// more is tolerated. Against: integer-overflow.
pub const INTEGER_BYTES_COUNT: usize = 5;

/// Table size updates at the beginning of a block. Default: 2. Unit: updates. Reason: the smallest size since the
/// last block and the final one are all that an encoder has to signal (RFC 7541 §4.2). Against: size-update-flood.
pub const SIZE_UPDATES_COUNT: u32 = 2;
