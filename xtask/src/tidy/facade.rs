//! The crate `bolide` has few names in its root: everything else is in the module of its subject.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "facade";

const FILE: &str = "bolide/src/lib.rs";

const NAMES_MAX: usize = 20;

/// Counts what the root exports.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.files.iter().find(|file| file.path == FILE) else { return Vec::new() };
    let names = root_names(&file.text);
    if names.len() <= NAMES_MAX {
        return Vec::new();
    }
    let message = format!("{} names in the root, more than {NAMES_MAX}: {names:?}", names.len());
    vec![Finding::new(NAME, FILE, 0, message)]
}

/// The names that `pub use` and `pub mod` give the root. rustfmt begins these lines at the margin.
fn root_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (start, _) in text.match_indices("\npub ") {
        let item = &text[start + "\npub ".len()..];
        if let Some(module) = item.strip_prefix("mod ") {
            names.extend(module.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        } else if let Some(used) = item.strip_prefix("use ") {
            let used = &used[..used.find(';').unwrap_or(used.len())];
            let list = used.split_once('{').map_or(used, |(_, list)| list);
            let each = list.split(',').map(|name| name.trim_end_matches('}').trim());
            names
                .extend(each.filter_map(|name| name.rsplit("::").next()).filter(|n| !n.is_empty()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! A crate.\n\npub use ::http;\npub use a::{\n    B, C,\n    d,\n};\n\
         mod private;\npub mod tls {\n    pub use a::{E, F};\n}\n#[cfg(x)]\npub mod files {}\n";

    #[test]
    fn modules_and_names_of_the_root_count_and_what_is_in_modules_does_not() {
        assert_eq!(root_names(ROOT), ["http", "B", "C", "d", "tls", "files"]);
    }

    #[test]
    fn too_many_are_found() {
        let names: Vec<_> = (0..21).map(|n| format!("N{n}")).collect();
        let many = format!("\npub use a::{{{}}};\n", names.join(", "));
        assert_eq!(check(&Tree::of(&[(FILE, &many)])).len(), 1);
        assert!(check(&Tree::of(&[(FILE, ROOT), ("other/src/lib.rs", &many)])).is_empty());
    }
}
