//! `bolide serve`: where the CPU time goes.

use std::path::PathBuf;

use bolide::{PROFILE_ONE_IN, Profile, Server};

/// The arguments about the profile.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Measure where the CPU time of requests goes, by stage, in one turn of the loops of ONE_IN (64 if no number
    /// is given), and print a table at the end. With --admin, it stands on /metrics and in `bolide top`, too, and
    /// PUT and DELETE /profile turn it on and off.
    #[arg(
        long,
        value_name = "ONE_IN",
        num_args = 0..=1,
        require_equals = true,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    profile: Option<Option<u32>>,

    /// Write what --profile has measured to this file at the end, in JSON.
    #[arg(long, value_name = "FILE", requires = "profile")]
    profile_json: Option<PathBuf>,

    /// Tell clients what their answer took here, in a Server-Timing field: route and handler where the handler
    /// answered at once, else the total, in milliseconds.
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
    /// The profile, if there is one: `is_watched` when somebody may turn it on later.
    pub(crate) fn start(&self, is_watched: bool) -> Option<Profiling> {
        let one_in = self.profile.map(|given| given.unwrap_or(PROFILE_ONE_IN));
        (one_in.is_some() || is_watched).then(|| Profiling {
            profile: Profile::new(one_in.unwrap_or(0)),
            prints: one_in.is_some(),
            json: self.profile_json.clone(),
        })
    }

    pub(crate) fn server_timing(&self) -> bool {
        self.server_timing
    }
}

impl Profiling {
    pub(crate) fn watch(&self, server: Server) -> Server {
        server.profile(&self.profile)
    }

    /// The server has ended: says what was measured.
    pub(crate) fn finish(self) {
        let snapshot = self.profile.snapshot();
        if self.prints {
            eprint!("{}", snapshot.table());
        }
        if let Some(path) = self.json
            && let Err(error) = std::fs::write(&path, snapshot.json() + "\n")
        {
            eprintln!("bolide: --profile-json {}: can't be written: {error}", path.display());
        }
    }
}
