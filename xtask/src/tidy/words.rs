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

/// Words that no line of code has, but for names that others gave.
const NAMES: &[(&str, &str, &[&str])] = &[
    ("octet", "byte", &["octet-stream", ".octets()", "octets="]),
    ("folder", "directory", &[]),
    ("an answer", "a response", &[]),
    ("the answer", "the response", &[]),
];

/// Words of pages that a comment may have: to answer is what a server does.
const VERBS: &[&str] = &["answer", "answers", "answered"];

/// Checks the text of every page, without what is code in it; comments, the beginning of doc comments, and names in code.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // This file has all of them.
    let is_code = |path: &str| path.ends_with(".rs") || path.ends_with("Cargo.toml");
    let has_all = |path: &str| path.ends_with("tidy/words.rs");
    for file in tree.files.iter().filter(|file| is_code(&file.path) && !has_all(&file.path)) {
        let mut goes_on = false;
        for (index, line) in file.text.lines().enumerate() {
            let doc = doc(line);
            let comment = || line.split_once("//").map_or("", |(_, comment)| comment);
            let words = found(doc.unwrap_or_else(comment))
                .into_iter()
                .filter(|(word, _)| !VERBS.contains(word));
            for (word, instead) in words.chain(names(line)) {
                let message = format!("`{word}`: write {instead}");
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            }
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

/// Those of a line of code, but for names that others gave.
fn names(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = line.to_ascii_lowercase();
    let is_ours = move |word: &str, others: &[&str]| {
        let given: usize = others.iter().map(|other| line.matches(other).count()).sum();
        line.matches(word).count() > given
    };
    let ours = NAMES.iter().filter(move |(word, _, others)| is_ours(word, others));
    ours.map(|(word, instead, _)| (*word, *instead))
}

/// The text of a line of a doc comment, or of a crate's description.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "description = \""]
        .iter()
        .find_map(|start| line.strip_prefix(start))
        .map(str::trim_start)
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
        let code = "// The answer\n// Somebody.\nlet folder = octets(ip.octets());\nlet ip = ip.octets();\n";
        let manifest = "description = \"Asks somebody\"\n";
        let found = check(&Tree::of(&[
            ("docs/a.md", page),
            ("src/a.rs", code),
            ("a/Cargo.toml", manifest),
        ]));
        let places: Vec<_> =
            found.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
        let expected = [
            (1, "`the answer`: write the response"),
            (2, "`somebody`: write the client, the peer, the caller"),
            (3, "`octet`: write byte"),
            (3, "`folder`: write directory"),
            (1, "`somebody`: write the client, the peer, the caller"),
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
