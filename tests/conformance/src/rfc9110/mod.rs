//! RFC 9110, HTTP semantics, as far as HTTP/1.1 shows them: one file for each section.

pub mod section_10_1;
pub mod section_13;
pub mod section_14;
pub mod section_17_3;
pub mod section_6_6;
pub mod section_9_3;

use crate::Case;

/// Every case of this RFC.
pub fn all() -> Vec<Case> {
    [section_6_6::cases(), section_9_3::cases(), section_10_1::cases()].concat()
}

/// Those about files, for a server of what is in [`directory`](crate::directory).
pub fn of_files() -> Vec<Case> {
    [section_13::cases(), section_14::cases(), section_17_3::cases()].concat()
}
