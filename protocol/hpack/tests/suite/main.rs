//! RFC 7541: both roles, by example, by property, and as foreign codecs have it; heads of RFC 9113.

mod appendix_c;
mod heads;
mod properties;
mod vectors;
