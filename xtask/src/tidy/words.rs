//! Check that what people read is written with the field's words (ARCHITECTURE.md, glossary).

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "words";

/// Words that no page has, and what it has instead.
const WORDS: &[(&str, &str)] = &[
    ("answer", "response; to respond"),
    ("answers", "responses; responds"),
    ("answered", "responded to"),
    ("octet", "byte"),
    ("octets", "bytes"),
    ("folder", "directory"),
    ("folders", "directories"),
    ("somebody", "the client, the peer, the caller"),
    ("nobody", "no client, no peer"),
    ("anybody", "any client, any peer"),
    ("whoever", "the client, the peer, the caller"),
    ("beside", "next to; compared with"),
    ("dear", "expensive"),
    ("dearer", "costs more"),
];

/// Words that no doc comment begins with: its first ones name the thing, or say by a verb what it does.
const STARTS: &[&str] = &["Whether", "What", "Who", "Whose", "Where"];

/// Checks the text of every page, without what is code in it, and how doc comments begin.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let mut goes_on = false;
        for (index, line) in file.text.lines().enumerate() {
            let doc = doc(line);
            let start = doc.and_then(|text| text.split(' ').next()).unwrap_or_default();
            if !goes_on && STARTS.contains(&start) {
                let message =
                    format!("a doc comment begins with `{start}`: write a noun or a verb");
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            }
            goes_on = doc.is_some();
        }
    }
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut is_code = false;
        for (index, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code || line.starts_with("    ") {
                continue;
            }
            for (word, instead) in found(line) {
                let message = format!("`{word}`: write {instead}");
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            }
        }
    }
    findings
}

/// The text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
}

/// The words of the list in a line, outside of code and quotations.
fn found(line: &str) -> Vec<(&'static str, &'static str)> {
    let prose = line.split('`').step_by(2).flat_map(|part| part.split('*').step_by(2));
    let words = prose.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '-'));
    words
        .filter_map(|word| {
            let word = word.to_ascii_lowercase();
            WORDS.iter().find(|(known, _)| *known == word).copied()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_list_are_found_where_people_read_them() {
        let page = "An Answer.\n```\nanswer\n```\n    answer\n`answer` *answer* octet-stream\nNobody, `x` nor beside.\n";
        let found = check(&Tree::of(&[("docs/a.md", page), ("src/a.rs", "// answer")]));
        let places: Vec<_> =
            found.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
        let expected = [
            (1, "`answer`: write response; to respond"),
            (7, "`nobody`: write no client, no peer"),
            (7, "`beside`: write next to; compared with"),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn doc_comments_begin_with_nouns_and_verbs() {
        let source = "//! Rules\n//!\n//! What they are.\n\nfn a() {}\n\n    /// Whether it is.\n// What it is.\n/// Returns\n";
        let found = check(&Tree::of(&[("src/a.rs", source)]));
        let places: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(places, [7]);
    }
}
