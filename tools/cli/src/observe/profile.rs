//! `bolide serve`: where the CPU time goes.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use bolide::Server;
use bolide::metrics::{PROFILE_ONE_IN, Profile};

use crate::writable;

/// One turn in how many can be measured.
pub(crate) const PROFILE_RANGE: RangeInclusive<u32> = 1..=1_000_000;

/// The arguments about the profile.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Measure where the CPU time of requests goes, by stage, in one of ONE_IN turns of the event loops (64 if no
    /// number is given), and print a table at the end. With --admin, it is also on /metrics and in `bolide top`,
    /// and PUT and DELETE /profile turn it on and off.
    #[arg(
        long,
        value_name = "ONE_IN",
        num_args = 0..=1,
        require_equals = true,
        value_parser = clap::value_parser!(u32)
            .range(i64::from(*PROFILE_RANGE.start())..=i64::from(*PROFILE_RANGE.end()))
    )]
    profile: Option<Option<u32>>,

    /// Write the result of --profile to this file at the end, as JSON.
    #[arg(long, value_name = "FILE")]
    profile_json: Option<PathBuf>,

    /// Send the time that a response took in a Server-Timing field, in milliseconds: route and handler if the
    /// handler responded immediately, else the total.
    #[arg(long)]
    server_timing: bool,
}

/// The profile of the server, while it runs.
#[derive(Debug)]
pub(crate) struct Profiling {
    profile: Profile,
    prints: bool,
    json: Option<PathBuf>,
}

impl Arguments {
    /// One turn in how many is to be measured, if the flags say so.
    pub(super) fn one_in(&self) -> Option<u32> {
        self.profile.map(|given| given.unwrap_or(PROFILE_ONE_IN))
    }

    /// The profile. It is there in any case, for it may be asked for later.
    pub(super) fn start(&self, one_in: Option<u32>) -> Profiling {
        Profiling {
            profile: Profile::new(one_in.unwrap_or(0)),
            prints: one_in.is_some(),
            json: self.profile_json.clone(),
        }
    }

    /// Checks whether its file can be written.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(path) = &self.profile_json else { return Ok(()) };
        writable::check(path).map_err(|error| failed(path, &error))
    }

    /// Returns whether what is measured is to be written to a file.
    pub(super) fn has_file(&self) -> bool {
        self.profile_json.is_some()
    }

    pub(super) fn server_timing(&self) -> bool {
        self.server_timing
    }
}

impl Profiling {
    pub(crate) fn watch(&self, server: Server) -> Server {
        server.profile(&self.profile)
    }

    /// From here on, measures one turn in so many, or none.
    pub(super) fn change(&mut self, one_in: Option<u32>) {
        self.prints |= one_in.is_some();
        self.profile.set_one_in(one_in.unwrap_or(0));
    }

    /// The server has ended: says what was measured, if a flag or the file ever asked for it.
    pub(crate) fn finish(self) -> Result<(), String> {
        let snapshot = self.profile.snapshot();
        if self.prints {
            eprint!("{}", snapshot.table());
        }
        let Some(path) = self.json else { return Ok(()) };
        std::fs::write(&path, snapshot.json() + "\n").map_err(|error| failed(&path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("--profile-json {}: can't be written: {error}", path.display())
}
