//! Source of the contenders' files: a directory here or above, else this program itself.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::Contender;

/// The directory `contenders/` as it was when this program was built.
static CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// A directory of contenders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sources {
    /// A directory on disk.
    Directory(PathBuf),
    /// Files that this program carries.
    Carried,
}

impl Sources {
    /// `given`, or `contenders/` here or in a directory above, or what the program carries.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, String> {
        if let Some(directory) = given {
            if !directory.is_dir() {
                return Err(format!("--contenders {}: is not a directory", directory.display()));
            }
            let directory = fs::canonicalize(directory)
                .map_err(|error| format!("--contenders {}: {error}", directory.display()))?;
            return Ok(Self::Directory(directory));
        }
        let here = env::current_dir().unwrap_or_default();
        let found = here.ancestors().map(|above| above.join("contenders")).find(|directory| {
            fs::read_dir(directory).is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|entry| is_toml(&entry.path())))
            })
        });
        Ok(found.map_or(Self::Carried, Self::Directory))
    }

    /// Returns where that is, for the manifest: results are passed on, and others don't have the directories above.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Directory(directory) => {
                let name = directory.file_name().unwrap_or(directory.as_os_str());
                format!("the directory {}", name.display())
            }
            Self::Carried => "carried by the program".to_owned(),
        }
    }

    /// The directory on disk, if there is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Carried => None,
        }
    }

    /// Names and contents of the files that a build takes from elsewhere.
    pub(crate) fn beside(&self, names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files = Vec::new();
        for name in names {
            let Some(directory) = self.directory() else {
                return Err("it is built in a checkout of Bolide: race there".to_owned());
            };
            let path = directory.join(name);
            let missing = |error| format!("`contenders/{name}`, of which it is made: {error}");
            let mut found = Vec::new();
            if path.is_dir() {
                walk(&path, &path, true, &mut found).map_err(missing)?;
            } else {
                found.push((String::new(), fs::read(&path).map_err(missing)?));
            }
            found.sort();
            files.extend(found.into_iter().map(|(file, text)| (format!("{name}/{file}"), text)));
        }
        Ok(files)
    }

    /// All contenders in their order.
    pub(crate) fn contenders(&self) -> Result<Vec<Contender>, String> {
        let mut contenders: Vec<Contender> = Vec::new();
        for (name, text) in self.files("")? {
            if name.contains('/') || !is_toml(Path::new(&name)) {
                continue;
            }
            let text = String::from_utf8(text).map_err(|_| format!("{name}: is not UTF-8"))?;
            let contender = Contender::parse(&text, &name)?;
            if contenders.iter().any(|known| known.name == contender.name) {
                let twice = &contender.name;
                return Err(format!("{name}: the name `{twice}` is taken by another file"));
            }
            contenders.push(contender);
        }
        contenders.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        Ok(contenders)
    }

    /// One file's text.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let bytes = match self {
            Self::Directory(directory) => {
                fs::read(directory.join(name)).map_err(|error| error.to_string())
            }
            Self::Carried => CARRIED
                .iter()
                .find(|(path, _)| *path == name)
                .map(|(_, bytes)| bytes.to_vec())
                .ok_or_else(|| "is not there".to_owned()),
        };
        bytes
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()))
            .map_err(|error| format!("contenders/{name}: {error}"))
    }

    /// Names and contents of all files below `directory` (empty: the top level only), sorted.
    pub(crate) fn files(&self, directory: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files = Vec::new();
        match self {
            Self::Carried => {
                let prefix =
                    if directory.is_empty() { String::new() } else { format!("{directory}/") };
                files.extend(CARRIED.iter().filter_map(|(path, bytes)| {
                    let rest = path.strip_prefix(&prefix)?;
                    Some((rest.to_owned(), bytes.to_vec()))
                }));
            }
            Self::Directory(root) => {
                let start = root.join(directory);
                let walked = walk(&start, &start, !directory.is_empty(), &mut files);
                walked.map_err(|error| format!("{}: {error}", start.display()))?;
            }
        }
        files.sort();
        Ok(files)
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Returns whether a path is left out: what builds leave behind is not part of the sources.
fn is_left_out(name: &str) -> bool {
    matches!(name, "target" | "node_modules" | "out") || name.starts_with('.')
}

fn walk(
    root: &Path,
    directory: &Path,
    deep: bool,
    files: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_left_out(&name) {
            continue;
        }
        if !path.is_dir() {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            files.push((name, fs::read(&path)?));
        } else if deep {
            walk(root, &path, deep, files)?;
        }
    }
    Ok(())
}
