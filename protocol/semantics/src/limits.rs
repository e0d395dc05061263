//! The limits of what a request's fields may ask for.

/// The most ranges of a `Range` field; a request for more gets the whole representation.
/// Default: 16. Unit: ranges. Reason: a reader of a large document asks for a handful at a time; each costs a part with its own head.
/// Against: many-ranges.
pub const RANGES_COUNT: usize = 16;

/// Size that all ranges of a request may ask for together, in times the length of the representation; more gets it whole.
/// Default: 2. Unit: times the length. Reason: overlapping ranges are sent once, but who asks for the same bytes many times wants no part.
/// Against: overlapping-ranges.
pub const RANGES_TOTAL_COUNT: u64 = 2;

/// The most entity tags of an `If-Match` or `If-None-Match` field that are looked at; later ones match nothing.
/// Default: 64. Unit: tags. Reason: a cache holds a few versions of a resource.
/// Against: many-entity-tags.
pub const ENTITY_TAGS_COUNT: usize = 64;
