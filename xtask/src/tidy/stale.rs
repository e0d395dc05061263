//! A generated page equals what `cargo xtask generate` writes.

use super::Finding;
use crate::generate;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "stale";

/// Checks every generated page.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let stale = generate::pages(tree)
        .into_iter()
        .filter(|(path, wanted)| tree.file(path).is_none_or(|file| file.text != *wanted));
    let message = "is stale: run `cargo xtask generate`";
    stale.map(|(path, _)| Finding::new(NAME, path, 0, message.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_page_is_found() {
        let limits = "/// A. Default: 1. Unit: bytes. Reason: b. Against: none.\n\
                      pub const A_BYTES: u8 = 1;\n";
        let old = Tree::of(&[("a/src/limits.rs", limits), ("docs/LIMITS.md", "old")]);
        assert_eq!(check(&old)[0].path, "docs/LIMITS.md");
        let pages = generate::pages(&old);
        let fresh = Tree::of(&[("a/src/limits.rs", limits), ("docs/LIMITS.md", &pages[0].1)]);
        assert!(check(&fresh).is_empty());
    }
}
