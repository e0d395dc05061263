//! A file or directory is named after its subject, and a type by the words of the field (ARCHITECTURE.md).

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "names";

const DRAWERS: &[&str] = &["util", "utils", "common", "shared", "helper", "helpers", "misc"];

/// Types that were called so, each something else than a reader would expect.
const RIDDLES: &[&str] =
    &["Desk", "Office", "Letter", "Ticket", "Door", "Lent", "Crossing", "Passage", "Sheet"];

/// Checks every part of every path, and the names of types.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.is_rust() {
            findings.extend(riddles(&file.path, &file.text));
        }
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

fn riddles(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let declares = |word: &str| ["struct", "enum", "trait", "type"].contains(&word);
        let name = words.find(|word| declares(word)).and_then(|_| words.next());
        if let Some(name) = name.filter(|name| RIDDLES.contains(name)) {
            let message = format!("`{name}` is a riddle: say what it is");
            findings.push(Finding::new(NAME, path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_riddle_is_found() {
        let text = ["pub(crate) struct", " Door<K> {\n    a: Desk,\n}\nstruct Doorway;\n"].concat();
        let found = check(&Tree::of(&[("src/a.rs", &text), ("docs/a.md", &text)]));
        let places: Vec<_> =
            found.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(places, [("src/a.rs", 1)]);
    }

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
