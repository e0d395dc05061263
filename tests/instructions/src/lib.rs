//! User instructions of `bolide serve` per request, counted by callgrind: `cargo xtask instructions`.
//!
//! A row is a way to load the server. Each row runs twice, in two lengths that share start, warm-up and end; the
//! difference of their counts is what the requests cost that only the longer run has.

mod baseline;
mod client;
mod count;
mod on_the_way;
mod profile;
mod request;
mod row;
mod table;

pub use baseline::{Baseline, Verdict};
pub use count::{Counted, Valgrind};
pub use on_the_way::{PAGE, check};
pub use profile::{Cost, Place, Profile};
pub use row::{ROWS, Row};
pub use table::{annotated, json, line, title};
