//! `races/N`: a directory of JSON for each race, with its manifest and a file for each cell; a race that was stopped goes on from here.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::manifest::Manifest;
use crate::outcome::CellOutcome;

/// The description of a race, in its directory.
const MANIFEST: &str = "manifest.json";

/// Marks a race of which all cells are there.
const FINISHED: &str = "finished";

/// The cells of a race, in its directory.
const CELLS: &str = "cells";

/// The results of all races.
#[derive(Debug)]
pub(crate) struct Store(PathBuf);

/// A race, as `bolide race list` shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: u32,
    pub(crate) is_finished: bool,
    pub(crate) cells: usize,
    pub(crate) manifest: Manifest,
}

impl Store {
    /// The races below a directory. Makes the directory if it isn't there.
    pub(crate) fn open(out: &Path) -> Result<Self, String> {
        let root = out.join("races");
        fs::create_dir_all(&root).map_err(failed(&root))?;
        Ok(Self(root))
    }

    /// The races below a directory, if there are any.
    pub(crate) fn open_existing(out: &Path) -> Result<Self, String> {
        let root = out.join("races");
        if !root.is_dir() {
            return Err(format!("{}: there are no races yet", root.display()));
        }
        Ok(Self(root))
    }

    /// Stores a new race. Its number is one that no other race has, even if another begins at the same time.
    pub(crate) fn begin(&self, manifest: &Manifest) -> Result<u32, String> {
        let mut id = self.ids()?.last().map_or(1, |last| last + 1);
        loop {
            let race = self.race_directory(id);
            match fs::create_dir(&race) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => id += 1,
                Err(error) => return Err(failed(&race)(error)),
            }
        }
        let cells = self.race_directory(id).join(CELLS);
        fs::create_dir(&cells).map_err(failed(&cells))?;
        let text = serde_json::to_string_pretty(manifest).map_err(|error| error.to_string())?;
        write(&self.race_directory(id).join(MANIFEST), &text)?;
        Ok(id)
    }

    /// The latest race like this one, if it was not finished.
    pub(crate) fn unfinished(
        &self,
        manifest: &Manifest,
    ) -> Result<Option<(u32, Manifest)>, String> {
        let mut races = self.list()?.into_iter().rev();
        let latest = races.find(|race| race.manifest.fingerprint() == manifest.fingerprint());
        Ok(latest.filter(|race| !race.is_finished).map(|race| (race.id, race.manifest)))
    }

    /// Stores a finished cell.
    pub(crate) fn put(&self, race: u32, outcome: &CellOutcome) -> Result<(), String> {
        let text = serde_json::to_string(outcome).map_err(|error| error.to_string())?;
        let number = self.cell_files(race)?.len() + 1;
        let name = format!("{number:04}-{}.json", outcome.cell.key());
        write(&self.race_directory(race).join(CELLS).join(name), &text)
    }

    /// All cells of the race are there.
    pub(crate) fn finish(&self, race: u32) -> Result<(), String> {
        write(&self.race_directory(race).join(FINISHED), "")
    }

    /// The cells of a race, in the order in which they were run.
    pub(crate) fn cells(&self, race: u32) -> Result<Vec<CellOutcome>, String> {
        let files = self.cell_files(race)?;
        files.iter().map(|file| read(file, |text| Ok(serde_json::from_str(text)?))).collect()
    }

    /// All races, the oldest first. A race that another process has begun and not described yet is left out.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, String> {
        let ids = self.ids()?.into_iter();
        ids.filter(|id| self.race_directory(*id).join(MANIFEST).exists())
            .map(|id| {
                let directory = self.race_directory(id);
                Ok(Listed {
                    id,
                    is_finished: directory.join(FINISHED).exists(),
                    cells: self.cell_files(id)?.len(),
                    manifest: read(&directory.join(MANIFEST), |text| Ok(Manifest::parse(text)?))?,
                })
            })
            .collect()
    }

    /// One race by its number, or the latest.
    pub(crate) fn race(&self, id: Option<u32>) -> Result<Listed, String> {
        let mut all = self.list()?;
        let Some(id) = id else {
            return all.pop().ok_or_else(|| "there are no races yet".to_owned());
        };
        let numbers: Vec<String> = all.iter().map(|race| race.id.to_string()).collect();
        all.into_iter()
            .find(|race| race.id == id)
            .ok_or_else(|| format!("no race {id}; there are: {}", numbers.join(", ")))
    }

    fn race_directory(&self, id: u32) -> PathBuf {
        self.0.join(id.to_string())
    }

    /// The numbers of all races, the smallest first.
    fn ids(&self) -> Result<Vec<u32>, String> {
        let mut ids: Vec<u32> =
            names(&self.0)?.iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn cell_files(&self, race: u32) -> Result<Vec<PathBuf>, String> {
        let directory = self.race_directory(race).join(CELLS);
        let mut names = names(&directory)?;
        names.retain(|name| name.ends_with(".json"));
        names.sort();
        Ok(names.iter().map(|name| directory.join(name)).collect())
    }
}

/// The names in a directory.
fn names(directory: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(directory).map_err(failed(directory))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(failed(directory))).collect()
}

/// Writes a file that is there as a whole or not at all, also after the machine has stopped.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&new, path)).map_err(failed(path))
}

/// Reads a file and understands it.
fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Box<dyn std::error::Error>>,
) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(failed(path))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
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

    /// A directory that goes when the test ends.
    struct Directory(PathBuf);

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn directory(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("bolide-races-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Directory(path)
    }

    #[test]
    fn a_race_that_was_stopped_goes_on_and_one_that_ended_does_not() {
        let out = directory("stopped");
        let store = Store::open(&out.0).unwrap();
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
        store.finish(id).unwrap();
        assert_eq!(store.unfinished(&later).unwrap(), None);
        let listed = store.race(None).unwrap();
        assert!(listed.is_finished && listed.cells == 1 && listed.manifest == manifest);
        assert!(store.race(Some(99)).unwrap_err().contains("there are: 1"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let out = directory("unreadable");
        assert!(Store::open_existing(&out.0).unwrap_err().contains("no races yet"));
        let store = Store::open(&out.0).unwrap();
        assert!(store.race(None).unwrap_err().contains("no races yet"));
        let id = store.begin(&manifest()).unwrap();
        store.put(id, &crate::outcome::tests::outcome()).unwrap();
        let cell = store.cell_files(id).unwrap().remove(0);
        fs::write(&cell, "{").unwrap();
        let error = store.cells(id).unwrap_err();
        assert!(error.contains(cell.to_str().unwrap()), "{error}");
        fs::write(store.race_directory(id).join(MANIFEST), "{}").unwrap();
        assert!(store.list().unwrap_err().contains("manifest.json: "));
    }

    #[test]
    fn races_that_begin_at_the_same_time_have_numbers_of_their_own() {
        let out = directory("numbers");
        let stores = [Store::open(&out.0).unwrap(), Store::open(&out.0).unwrap()];
        let begun = std::thread::scope(|scope| {
            let begin = |store| scope.spawn(move || Store::begin(store, &manifest()).unwrap());
            stores.each_ref().map(begin).map(|thread| thread.join().unwrap())
        });
        assert_ne!(begun[0], begun[1]);
        // Another process has begun a race and not described it yet.
        fs::create_dir(stores[0].race_directory(3)).unwrap();
        let numbers: Vec<u32> = stores[0].list().unwrap().iter().map(|race| race.id).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(stores[0].begin(&manifest()).unwrap(), 4);
    }
}
