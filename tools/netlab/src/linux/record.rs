//! Record of a lab outside of it: a directory for each, which tells a later run what to remove.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::Mistake;
use crate::linux::verify::Report;
use crate::linux::{namespace, processes, topology};
use crate::spec::{Node, Spec};

/// The variable that holds the record in processes that were sent into a lab's user namespace, where
/// the directory of the records may not be seen.
pub(crate) const INSIDE: &str = "BOLIDE_NETLAB_RECORD";

/// A lab as it is known outside of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) spec: Spec,
    /// The process that keeps it.
    pub(crate) keeper: u32,
    /// When that started, in ticks since boot.
    pub(crate) started: u64,
    /// Identities of its namespaces, once they are there.
    pub(crate) namespaces: Vec<u64>,
    /// The process that it ends with, and when that started.
    #[serde(default)]
    pub(crate) owner: Option<(u32, u64)>,
    /// Measurements after set-up.
    pub(crate) report: Option<Report>,
}

/// Keeps others from making or removing labs until it goes out of scope, or its process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take() -> Result<Self, Mistake> {
        let path = directory()?.join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(Mistake::io(path.display()))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| Mistake::Failed(format!("{}: {error}", path.display())))?;
        Ok(Self { _file: file })
    }
}

/// Returns where the records of this user are.
fn directory() -> Result<PathBuf, Mistake> {
    let user = geteuid();
    let path = if user.is_root() {
        PathBuf::from("/run/bolide/net")
    } else if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") {
        PathBuf::from(runtime).join("bolide/net")
    } else {
        std::env::temp_dir().join(format!("bolide-net-{}", user.as_raw()))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .map_err(Mistake::io(path.display()))?;
    // Where every user may write, another may have made it first.
    let owner = fs::symlink_metadata(&path).map_err(Mistake::io(path.display()))?;
    if !owner.is_dir() || owner.uid() != user.as_raw() {
        return Err(Mistake::Failed(format!(
            "{} doesn't belong to this user: set XDG_RUNTIME_DIR to a directory of this user",
            path.display()
        )));
    }
    Ok(path)
}

/// The directory of a lab of that name.
pub(crate) fn place(name: &str) -> Result<PathBuf, Mistake> {
    Ok(directory()?.join(name))
}

impl Record {
    /// Reads the record of a lab; `None` if there is none.
    pub(crate) fn find(name: &str) -> Result<Option<Self>, Mistake> {
        if let Some(text) = std::env::var(INSIDE).ok().filter(|text| !text.is_empty()) {
            let record: Option<Self> = serde_json::from_str(&text).ok();
            return Ok(record.filter(|record| record.spec.name == name));
        }
        Ok(read(&place(name)?))
    }

    /// All of them, by name.
    pub(crate) fn all() -> Result<Vec<Self>, Mistake> {
        let mut names: Vec<PathBuf> = fs::read_dir(directory()?)
            .map_err(Mistake::io("the records of labs"))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        names.sort();
        Ok(names.iter().filter_map(|path| read(path)).collect())
    }

    /// Writes it, whole or not at all.
    pub(crate) fn save(&self) -> Result<(), Mistake> {
        let place = place(&self.spec.name)?;
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Mistake::Failed(format!("the record: {error}")))?;
        let (draft, whole) = (place.join("draft"), place.join("record.json"));
        fs::write(&draft, text).map_err(Mistake::io(draft.display()))?;
        fs::rename(&draft, &whole).map_err(Mistake::io(whole.display()))
    }

    /// Returns whether the process that keeps it lives.
    pub(crate) fn is_kept(&self) -> bool {
        processes::started(self.keeper) == Some(self.started)
    }

    /// Returns whether it was to end with a process that is not there any more.
    pub(crate) fn is_orphan(&self) -> bool {
        self.owner.is_some_and(|(id, started)| processes::started(id) != Some(started))
    }

    /// Removes the lab and everything that runs in it.
    pub(crate) fn remove(&self) -> Result<(), Mistake> {
        let mut inodes = self.namespaces.clone();
        if !self.spec.rootless {
            let now =
                Node::ALL.iter().filter_map(|node| namespace::inode(&self.spec.namespace(*node)));
            inodes.extend(now);
        }
        processes::end(&processes::in_namespaces(&inodes));
        if self.is_kept() {
            processes::end(&[(self.keeper, self.started)]);
        }
        if !self.spec.rootless {
            topology::remove(&self.spec)?;
        }
        let place = place(&self.spec.name)?;
        fs::remove_dir_all(&place).map_err(Mistake::io(place.display()))
    }
}

fn read(place: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(place.join("record.json")).ok()?).ok()
}

/// Removes labs without a keeper: their names.
pub(crate) fn remove_leftovers() -> Result<Vec<String>, Mistake> {
    let mut names = Vec::new();
    for record in
        Record::all()?.into_iter().filter(|record| !record.is_kept() || record.is_orphan())
    {
        record.remove()?;
        names.push(record.spec.name);
    }
    // A directory without a record is of a run that was killed before it made anything.
    for entry in fs::read_dir(directory()?).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && read(&path).is_none() {
            fs::remove_dir_all(&path).map_err(Mistake::io(path.display()))?;
        }
    }
    Ok(names)
}
