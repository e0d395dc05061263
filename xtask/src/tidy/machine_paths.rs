//! No path of one machine: what lands has to work on every other.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "machine-paths";

// Written in two halves, or this file would be found by its own rule.
const DIRECTORIES: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Checks every line of every file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(directory) =
                DIRECTORIES.iter().find(|directory| is_absolute(line, directory))
            {
                let message = format!("`{directory}` is a path of one machine");
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            }
        }
    }
    findings
}

/// Returns whether the directory begins a path, rather than going on with one.
fn is_absolute(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found() {
        let text = format!("cd {}bolide\nsee net{}x\n", DIRECTORIES[0], DIRECTORIES[0]);
        let tree = Tree::of(&[("README.md", &text)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 1);
    }
}
