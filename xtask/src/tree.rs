//! The files of the repository that are ours: what git tracks or would track.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One file with text in it.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// From the root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl SourceFile {
    /// The name without the directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns whether a directory of this name is on the way to the file.
    pub(crate) fn is_under(&self, directory: &str) -> bool {
        let mut directories = self.path.split('/').rev();
        directories.next();
        directories.any(|name| name == directory)
    }

    /// Returns whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns whether it only tests: `tests.rs`, a file in a `tests` directory, a fuzz target.
    pub(crate) fn is_test(&self) -> bool {
        self.name() == "tests.rs" || self.is_under("tests") || self.is_under("fuzz")
    }

    /// Returns whether a program wrote it.
    pub(crate) fn is_generated(&self) -> bool {
        self.is_under("generated")
    }
}

/// All text files of the repository.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The root directory.
    pub(crate) root: PathBuf,
    /// Sorted by path.
    pub(crate) files: Vec<SourceFile>,
}

impl Tree {
    /// Reads the repository at `root`. What is no text, or lies in a fuzz corpus, is left out.
    pub(crate) fn read(root: &Path) -> Self {
        let mut paths = tracked(root).unwrap_or_else(|| walked(root));
        paths.sort();
        paths.dedup();
        let files = paths
            .into_iter()
            .filter(|path| !path.starts_with("fuzz/corpus/"))
            .filter_map(|path| {
                let text = std::fs::read_to_string(root.join(&path)).ok()?;
                Some(SourceFile { path, text })
            })
            .collect();
        Self { root: root.into(), files }
    }

    /// A repository for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).into() })
            .collect();
        Self { root: PathBuf::from("."), files }
    }

    /// The file with this path.
    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The file with this path, or all files of the directory with this path.
    pub(crate) fn files_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a SourceFile> {
        let directory = path.trim_end_matches('/');
        self.files.iter().filter(move |file| {
            file.path
                .strip_prefix(directory)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Returns what git tracks, and what it would if it were added. `None` without git.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let list = String::from_utf8(output.stdout).ok()?;
    Some(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// All files but those of builds: for a tree that came without its history.
fn walked(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if !["target", ".git", "node_modules"].iter().any(|skipped| name == *skipped) {
                    directories.push(path);
                }
            } else if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                paths.push(path.to_owned());
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_what_git_tracks() {
        let root = crate::root();
        let walked = walked(&root);
        for path in ["Cargo.toml", "xtask/src/tree.rs"] {
            assert!(walked.iter().any(|walked| walked == path), "{path}");
        }
        assert!(!walked.iter().any(|path| path.starts_with("target/")));
    }

    #[test]
    fn tests_are_known_by_their_place() {
        let file = |path: &str| SourceFile { path: path.into(), text: String::new() };
        assert!(file("protocol/h1/src/tests.rs").is_test());
        assert!(file("protocol/h1/src/tests/smuggling.rs").is_test());
        assert!(!file("protocol/h1/src/tests_of.rs").is_test());
        assert!(!file("tests.md").is_under("tests.md"));
    }
}
