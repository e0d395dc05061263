//! A module of `protocol/` says in its first line which RFC it follows, and where.

use super::Finding;
use crate::tree::{SourceFile, Tree};

/// The rule's name.
pub(super) const NAME: &str = "sections";

/// Documents about the crate itself, not about a section.
const WITHOUT: &[&str] =
    &["lib.rs", "error.rs", "limits.rs", "deadlines.rs", "stats.rs", "tests.rs"];

/// The crate below all protocols, which follows no RFC.
const BUFFERS: &str = "protocol/buffers/";

/// Checks the sources of the protocol crates.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files.iter().filter(|file| must_cite(file));
    files
        .filter_map(|file| {
            let first = file.text.lines().next().unwrap_or_default();
            let cites = first.strip_prefix("//! RFC ").is_some_and(|rest| {
                rest.len() > 4 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit)
            });
            let message = "the first line cites no section: `//! RFC 9113 §6.5: …`".to_owned();
            (!cites).then(|| Finding::new(NAME, &file.path, 1, message))
        })
        .collect()
}

fn must_cite(file: &SourceFile) -> bool {
    file.is_rust()
        && file.path.starts_with("protocol/")
        && !file.path.starts_with(BUFFERS)
        && file.is_under("src")
        && !file.is_test()
        && !file.is_generated()
        && !WITHOUT.contains(&file.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_its_section_is_found() {
        let tree = Tree::of(&[
            ("protocol/h2/src/ping.rs", "//! Pings.\n"),
            ("protocol/h2/src/goaway.rs", "//! RFC 9113 §6.8: GOAWAY.\n"),
            ("protocol/h2/src/short.rs", "//! RFC x\n"),
            ("protocol/h2/src/limits.rs", "//! Limits.\n"),
            ("protocol/h2/src/tests/ping.rs", "//! Pings.\n"),
            ("protocol/buffers/src/send_queue.rs", "//! A queue.\n"),
            ("eventloop/src/worker.rs", "//! A worker.\n"),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["protocol/h2/src/ping.rs", "protocol/h2/src/short.rs"]);
    }
}
