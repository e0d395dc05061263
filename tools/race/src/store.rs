//! `race.db`: every race with every round, in SQLite; a race that was stopped goes on from here.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::manifest::Manifest;
use crate::outcome::CellOutcome;

/// How long to wait for another race that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The tables. `user_version` is their format.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS race (
        id INTEGER PRIMARY KEY,
        started_unix_s INTEGER NOT NULL,
        finished_unix_s INTEGER,
        fingerprint TEXT NOT NULL,
        manifest TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS cell (
        race INTEGER NOT NULL REFERENCES race (id),
        key TEXT NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (race, key)
    );
    PRAGMA user_version = 1;
";

/// The results of all races.
#[derive(Debug)]
pub(crate) struct Store(Connection);

/// A race, as `bolide race list` shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: i64,
    pub(crate) is_finished: bool,
    pub(crate) cells: usize,
    pub(crate) manifest: Manifest,
}

impl Store {
    /// Opens the file, and makes it if it isn't there.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: rusqlite::Error| format!("{}: {error}", path.display());
        let connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        Ok(Self(connection))
    }

    /// Opens the file if it is there.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, String> {
        if !path.is_file() {
            return Err(format!("{}: there are no races yet", path.display()));
        }
        Self::open(path)
    }

    /// Writes a new race down.
    pub(crate) fn begin(&self, manifest: &Manifest) -> Result<i64, String> {
        let text = serde_json::to_string(manifest).map_err(|error| error.to_string())?;
        let values = params![manifest.started_unix_s.cast_signed(), manifest.fingerprint(), text];
        self.0
            .execute(
                "INSERT INTO race (started_unix_s, fingerprint, manifest) VALUES (?1, ?2, ?3)",
                values,
            )
            .map_err(failed)?;
        Ok(self.0.last_insert_rowid())
    }

    /// The latest race like this one, if it was not finished.
    pub(crate) fn unfinished(
        &self,
        manifest: &Manifest,
    ) -> Result<Option<(i64, Manifest)>, String> {
        let found: Option<(i64, Option<i64>, String)> = self
            .0
            .query_row(
                "SELECT id, finished_unix_s, manifest FROM race WHERE fingerprint = ?1 \
                 ORDER BY id DESC LIMIT 1",
                params![manifest.fingerprint()],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()
            .map_err(failed)?;
        match found {
            Some((id, None, text)) => Ok(Some((id, Manifest::parse(&text)?))),
            _ => Ok(None),
        }
    }

    /// Writes a finished cell down.
    pub(crate) fn put(&self, race: i64, outcome: &CellOutcome) -> Result<(), String> {
        let text = serde_json::to_string(outcome).map_err(|error| error.to_string())?;
        self.0
            .execute(
                "INSERT OR REPLACE INTO cell (race, key, outcome) VALUES (?1, ?2, ?3)",
                params![race, outcome.cell.key(), text],
            )
            .map(drop)
            .map_err(failed)
    }

    /// All cells of the race are there.
    pub(crate) fn finish(&self, race: i64, now_unix_s: u64) -> Result<(), String> {
        self.0
            .execute(
                "UPDATE race SET finished_unix_s = ?2 WHERE id = ?1",
                params![race, now_unix_s.cast_signed()],
            )
            .map(drop)
            .map_err(failed)
    }

    /// The cells of a race, in the order in which they were run.
    pub(crate) fn cells(&self, race: i64) -> Result<Vec<CellOutcome>, String> {
        let mut statement = self
            .0
            .prepare("SELECT outcome FROM cell WHERE race = ?1 ORDER BY rowid")
            .map_err(failed)?;
        let rows =
            statement.query_map(params![race], |row| row.get::<_, String>(0)).map_err(failed)?;
        rows.map(|text| {
            serde_json::from_str(&text.map_err(failed)?)
                .map_err(|error| format!("race.db: a cell can't be read: {error}"))
        })
        .collect()
    }

    /// All races, the oldest first.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, String> {
        let mut statement = self
            .0
            .prepare(
                "SELECT id, finished_unix_s IS NOT NULL, manifest, \
                 (SELECT count(*) FROM cell WHERE race = id) FROM race ORDER BY id",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map([], |row| {
                let cells: i64 = row.get(3)?;
                Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, cells))
            })
            .map_err(failed)?;
        rows.map(|row| {
            let (id, is_finished, text, cells) = row.map_err(failed)?;
            let manifest =
                Manifest::parse(&text).map_err(|error| format!("race {id}: it {error}"))?;
            Ok(Listed { id, is_finished, cells: usize::try_from(cells).unwrap_or(0), manifest })
        })
        .collect()
    }

    /// One race by its number, or the latest.
    pub(crate) fn race(&self, id: Option<i64>) -> Result<Listed, String> {
        let mut all = self.list()?;
        let Some(id) = id else {
            return all.pop().ok_or_else(|| "there are no races yet".to_owned());
        };
        let numbers: Vec<String> = all.iter().map(|race| race.id.to_string()).collect();
        all.into_iter()
            .find(|race| race.id == id)
            .ok_or_else(|| format!("no race {id}; there are: {}", numbers.join(", ")))
    }
}

fn failed(error: rusqlite::Error) -> String {
    format!("race.db: {error}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::manifest::{Entry, FORMAT, Machine};
    use crate::rounds::Settings;

    pub(crate) fn manifest() -> Manifest {
        let text =
            "name = 'bolide'\nprotocols = ['h1']\nroutes = ['ping']\n[start]\ncommand = ['b']\n";
        let contender = crate::contender::Contender::parse(text, "b.toml").unwrap();
        Manifest {
            format: FORMAT,
            program: "0.1.0".to_owned(),
            started_unix_s: 1_790_000_000,
            seed: 7,
            tables: vec!["T20".to_owned()],
            is_quick: true,
            settings: Settings::full(),
            generator: Generator::Bolide,
            generator_versions: Vec::new(),
            reference: "bolide".to_owned(),
            contenders: vec![Entry { contender, version: "bolide <1>".to_owned(), skipped: None }],
            sources: "carried by the program".to_owned(),
            machine: Machine::default(),
            warnings: vec!["others use 0.70 cores".to_owned()],
        }
    }

    #[test]
    fn a_race_that_was_stopped_goes_on_and_one_that_ended_does_not() {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let manifest = manifest();
        assert_eq!(store.unfinished(&manifest).unwrap(), None);
        let id = store.begin(&manifest).unwrap();
        let outcome = crate::outcome::tests::outcome();
        store.put(id, &outcome).unwrap();
        let later = Manifest { started_unix_s: 1_790_000_900, seed: 8, ..manifest.clone() };
        assert_eq!(store.unfinished(&later).unwrap(), Some((id, manifest.clone())));
        assert_eq!(store.cells(id).unwrap(), [outcome]);
        let other = Manifest { tables: vec!["T1".to_owned()], ..manifest.clone() };
        assert_eq!(store.unfinished(&other).unwrap(), None);
        store.finish(id, 1_790_000_999).unwrap();
        assert_eq!(store.unfinished(&later).unwrap(), None);
        let listed = store.race(None).unwrap();
        assert!(listed.is_finished && listed.cells == 1 && listed.manifest == manifest);
        assert!(store.race(Some(99)).unwrap_err().contains("there are: 1"));
    }

    #[test]
    fn a_file_that_is_no_database_is_an_error() {
        let file = std::env::temp_dir().join(format!("bolide-no-db-{}", std::process::id()));
        std::fs::write(&file, "this is text, and long enough to be no header of a database")
            .unwrap();
        assert!(Store::open(&file).unwrap_err().contains("not a database"));
        std::fs::remove_file(&file).unwrap();
        assert!(Store::open_existing(&file).unwrap_err().contains("no races yet"));
    }
}
