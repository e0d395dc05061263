//! Scenarios from files: written as TOML, recorded by a browser (HAR), or logged by a server.

mod data;
mod file;
mod har;
mod replay;

pub(crate) use self::file::{Steps, read};
pub(crate) use self::har::read as read_har;
pub(crate) use self::replay::{Replay, read as read_replay};

/// Most kinds of users, and steps of them all together.
const STEPS_COUNT: usize = 10_000;

/// Most servers that the steps of a scenario go to.
const SERVERS_COUNT: usize = 32;
