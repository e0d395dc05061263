//! The limits of field compression. What a whole section may take is HTTP/3's to say.

/// The dynamic table, in either direction, as RFC 9204 §3.2.1 counts it (names, values and 32 bytes
/// for each entry). Default: 4096. Unit: bytes. Reason: as in HPACK; more helps few and costs memory on every
/// connection. Against: qpack-bomb.
pub const TABLE_BYTES: u32 = 4096;

/// Streams whose sections may wait for instructions of the peer's encoder. Default: 16. Unit: streams. Reason: an
/// encoder that risks blocking does so for the first few requests. Against: blocked-stream-hold.
pub const BLOCKED_STREAMS_COUNT: u32 = 16;

/// Instructions of the peer's encoder between two sections that refer to the table. Default: 4096. Unit:
/// instructions. Reason: an encoder that fills the whole table before it uses it needs 129; the byte that duplicates an
/// entry makes us copy the entry. Against: encoder-stream-flood.
pub const INSTRUCTIONS_COUNT: u32 = 4096;

/// Sections of ours that refer to the table and are not acknowledged. Default: 128. Unit: sections. Reason: more than
/// most peers have requests open; what is sent beyond that refers to nothing. Against: acknowledgement-withheld.
pub const OUTSTANDING_SECTIONS_COUNT: usize = 128;
