//! Outputs of a run.

pub use bolide_semantics::{in_lines, in_one_line};

pub mod csv;
pub mod hdr_log;
pub mod html;
pub mod junit;
pub mod live;
pub mod metrics;
pub mod push;
pub mod records;
mod samples;
pub mod text;
