//! A file has at most 600 lines, tests 1000; a file that outgrows them holds two subjects.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "file-length";

const LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 1000;

/// Checks every Rust file that is written by hand.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files.iter().filter(|file| file.is_rust() && !file.is_generated());
    files
        .filter_map(|file| {
            let most = if file.is_test() { TEST_LINES_MAX } else { LINES_MAX };
            let lines = file.text.lines().count();
            let message = format!("{lines} lines, more than {most}");
            (lines > most).then(|| Finding::new(NAME, &file.path, 0, message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found() {
        let (long, very_long) = ("//\n".repeat(601), "//\n".repeat(1001));
        let fits = "//\n".repeat(600);
        let tree = Tree::of(&[
            ("src/long.rs", &long),
            ("src/fits.rs", &fits),
            ("src/tests.rs", &long),
            ("src/tests/long.rs", &very_long),
            ("src/generated/table.rs", &very_long),
            ("docs/long.md", &very_long),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["src/long.rs", "src/tests/long.rs"]);
    }
}
