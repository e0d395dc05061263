//! RFC 9204: both roles, by example, by property, and against a foreign codec.

mod appendix_b;
mod errors;
mod foreign;
mod properties;
mod vectors;
