//! Scenarios from files: written as TOML, recorded by a browser (HAR), or logged by a server.

mod data;
mod file;
mod har;
mod replay;

use http::HeaderName;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};

pub(crate) use self::file::{Steps, read};
pub(crate) use self::har::{Recording, read as read_har};
pub(crate) use self::replay::{Replay, read as read_replay};

/// Most kinds of users, and steps of them all together.
const STEPS_COUNT: usize = 10_000;

/// Most servers that the steps of a scenario go to.
const SERVERS_COUNT: usize = 32;

/// Returns whether a field of the command line is for the server of the URL alone.
fn is_secret(name: &HeaderName) -> bool {
    [AUTHORIZATION, PROXY_AUTHORIZATION].contains(name)
}
