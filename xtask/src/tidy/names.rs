//! No drawers: a file or folder is named after its subject.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "names";

const DRAWERS: &[&str] = &["util", "utils", "common", "shared", "helper", "helpers", "misc"];

/// Checks every part of every path.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or(part).to_ascii_lowercase();
            if DRAWERS.contains(&stem.as_str()) {
                let message = format!("`{part}` says nothing: name it after what it holds");
                findings.push(Finding::new(NAME, &file.path, 0, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawer_is_found() {
        let tree = Tree::of(&[
            ("src/utils.rs", ""),
            ("src/common/mod.rs", ""),
            ("docs/misc.md", ""),
            ("src/utility_of_it.rs", ""),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["src/utils.rs", "src/common/mod.rs", "docs/misc.md"]);
    }
}
