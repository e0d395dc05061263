//! RFC 9112, HTTP/1.1: one file for each section.

pub mod section_2_2;
pub mod section_2_3;
pub mod section_3;
pub mod section_3_2;
pub mod section_5;
pub mod section_6_1;
pub mod section_6_2;
pub mod section_7_1;
pub mod section_9;

use crate::Case;

/// Every case of this RFC.
pub fn all() -> Vec<Case> {
    [
        section_2_2::cases(),
        section_2_3::cases(),
        section_3::cases(),
        section_3_2::cases(),
        section_5::cases(),
        section_6_1::cases(),
        section_6_2::cases(),
        section_7_1::cases(),
        section_9::cases(),
    ]
    .concat()
}
