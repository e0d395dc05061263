//! The limits of what a request's fields may ask for.

/// The most ranges of a `Range` field; a request for more gets the whole representation.
/// Default: 16. Unit: ranges. Reason: a reader of a large document asks for a handful at a time; each costs a part with its own head.
/// Answers: many-ranges.
pub const RANGES_COUNT: usize = 16;

/// What all ranges of a request may ask for together, in times the length of the representation; more gets it whole.
/// Default: 2. Unit: times the length. Reason: overlapping ranges are sent once, but who asks for the same bytes many times wants no part.
/// Answers: overlapping-ranges.
pub const RANGES_TOTAL_COUNT: u64 = 2;

/// The most entity tags of an `If-Match` or `If-None-Match` field that are looked at; later ones match nothing.
/// Default: 64. Unit: tags. Reason: a cache holds a few versions of a resource.
/// Answers: many-entity-tags.
pub const ENTITY_TAGS_COUNT: usize = 64;

/// The heads of requests that a worker keeps by the octets that they came in, in case the same octets come again.
/// Default: 256. Unit: heads. Reason: the paths that are asked for most at one time; what comes once pushes out none.
/// Answers: known-heads-flood.
pub const KNOWN_HEADS_COUNT: usize = 256;

/// The octets by which such a head is kept; longer ones are read each time. Default: 96. Unit: bytes. Reason: a
/// browser's request whose fields are in the table, and a path. Answers: known-heads-flood.
pub const KNOWN_OCTETS_BYTES: usize = 96;

/// The decoded head that is kept: its text and its lines; larger ones are read each time. Default: 4096. Unit:
/// bytes. Reason: a browser's request without large cookies. Answers: known-heads-flood.
pub const KNOWN_HEAD_BYTES: usize = 4096;

/// Changes of a table that a worker remembers, so that connections whose peers made the same ones share what is
/// known. Default: 64. Unit: changes. Reason: some programs with some first requests each. Answers: known-states-flood.
pub const KNOWN_STEPS_COUNT: usize = 64;

/// One such change. Default: 1024. Unit: bytes. Reason: the fields of a browser's first request. Answers:
/// known-states-flood.
pub const KNOWN_STEP_BYTES: usize = 1024;
