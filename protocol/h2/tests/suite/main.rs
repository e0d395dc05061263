//! RFC 9113, RFC 9218, RFC 8441: the connection from outside, in memory and in virtual time.
//!
//! Frames are written and read by code of the tests' own, since tests must send what the connection
//! would never build.

#![allow(clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

mod attacks;
mod deadlines;
mod memory;
mod orders;
mod pair;
mod priorities;
mod raw;
mod runs;
mod section_3_4_preface;
mod section_4_frames;
mod section_5_1_states;
mod section_5_2_windows;
mod section_6_5_settings;
mod section_6_8_goaway;
mod section_6_control_frames;
mod section_8_1_messages;
mod section_8_1_whole_bodies;
mod section_8_5_connect;
mod splits;
mod stalls;
mod subject;
mod whole_responses;
