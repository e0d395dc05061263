//! CPU time of a contender by stage: a run of its own after the timed rounds, for those that can say it.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Race, Started};
use crate::catalogue::Kind;
use crate::outcome::{CellOutcome, Fate, StageTime};

/// File that a contender writes into `{run}` at its end, as `start.profile` tells it to.
const FILE: &str = "profile.json";

/// That file. What else it says is its own.
#[derive(Debug, Deserialize)]
struct Profile {
    stages: Vec<StageTime>,
}

impl Race<'_> {
    /// Profiles everybody who was timed and can be.
    pub(super) fn profiles(
        &mut self,
        outcome: &mut CellOutcome,
        started: &mut [Started<'_>],
        say: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        if matches!(outcome.cell.load, Kind::Idle) || !self.settings.profiles {
            return Ok(());
        }
        for server in started {
            let entrant = &outcome.entrants[server.index];
            let Some(profiled) = server.present.profiled(&outcome.cell) else { continue };
            if entrant.fate != Fate::Timed || entrant.is_twin {
                continue;
            }
            say(&format!("profiling {}", entrant.label()));
            let label = format!("{}-profiled", entrant.name);
            let (cell, behind) =
                (&outcome.cell, server.backend.as_ref().map(|backend| backend.address));
            let profile = match self.start(&profiled, &label, cell, behind) {
                Ok((running, content_type)) => {
                    let mut alone = Started {
                        present: &profiled,
                        running,
                        index: 0,
                        backend: None,
                        content_type,
                    };
                    let job = self.job(&alone, cell, None, self.seed_of(0))?;
                    let ran = self.generator.run(&job, self.ground.interrupt, &mut || {});
                    self.ground.interrupt.check()?;
                    alone.running.process.stop();
                    ran.and_then(|_| {
                        read(&self.place.directory(&format!("run-{label}"))?.join(FILE))
                    })
                }
                Err(fate) => Err(format!("{fate:?}")),
            };
            let entrant = &mut outcome.entrants[server.index];
            match profile {
                Ok(stages) => entrant.profile = stages,
                Err(why) => entrant.remarks.push(format!("it could not be profiled: {why}")),
            }
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Vec<StageTime>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let profile: Profile =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(profile.stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_writes_is_read() {
        let directory = std::env::temp_dir().join(format!("bolide-profile-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join(FILE);
        let stage = r#"{"stage":"send","ns":200000,"us_per_request":2.5,"share":0.4}"#;
        fs::write(&file, format!(r#"{{"one_in":64,"stages":[{stage}]}}"#)).unwrap();
        let read_back = read(&file).unwrap();
        assert_eq!(read_back, [StageTime { stage: "send".to_owned(), us_per_request: 2.5 }]);
        fs::write(&file, "{}").unwrap();
        assert!(read(&file).unwrap_err().contains("missing field `stages`"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
