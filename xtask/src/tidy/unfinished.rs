//! Nothing unfinished lands: what is missing is an issue, not a comment.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "unfinished";

// Written in two halves, or this file would be found by its own rule.
const WORDS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("unimple", "mented!("),
    concat!("to", "do!("),
];

/// Checks every line of every file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(word) = WORDS.iter().find(|word| has_word(line, word)) {
                let message = format!("`{word}`: finish it, or open an issue");
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            }
        }
    }
    findings
}

/// Returns whether the word stands alone: hashes in lock files hold any letters.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let after =
            word.ends_with(char::is_alphanumeric) && letter(line[at + word.len()..].chars().next());
        !letter(line[..at].chars().next_back()) && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unfinished_is_found() {
        let text = format!("// {}: later\nlet a = b;\n", WORDS[0]);
        let hash = format!("checksum = \"a{}b\"\n", WORDS[0]);
        let tree = Tree::of(&[("src/lib.rs", &text), ("Cargo.lock", &hash)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("src/lib.rs", 1));
    }
}
