//! `docs/REQUEST.md` tells the truth: each file of its tables exists and defines the row's symbols.

use super::Finding;
use crate::tree::{SourceFile, Tree};

/// The rule's name.
pub(super) const NAME: &str = "references";

const PAGE: &str = "docs/REQUEST.md";
const ITEMS: &[&str] =
    &["fn", "struct", "trait", "enum", "type", "const", "static", "mod", "macro_rules!"];

/// Checks each row: the paths of its column `file` exist, and the names of its column `symbol` are
/// defined there.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Finding::new(NAME, PAGE, 0, "is missing".to_owned())];
    };
    let mut findings = Vec::new();
    // Each table says which of its columns these are.
    let (mut columns, mut any) = (None, false);
    for (index, line) in page.text.lines().enumerate() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some((file, symbol)) = columns else {
            let column = |name| cells.iter().position(|cell| *cell == name);
            columns = column("file").zip(column("symbol"));
            any |= columns.is_some();
            continue;
        };
        let mut find = |message: String| {
            findings.push(Finding::new(NAME, PAGE, index + 1, message));
        };
        let mut files: Vec<&SourceFile> = Vec::new();
        let paths: Vec<String> = quoted(cells.get(file)).flat_map(spread).collect();
        for path in &paths {
            let before = files.len();
            files.extend(tree.files_of(path));
            if files.len() == before {
                find(format!("`{path}` doesn't exist"));
            }
        }
        for name in quoted(cells.get(symbol)).filter_map(self::symbol) {
            if !files.is_empty() && !files.iter().any(|file| defines(&file.text, name)) {
                find(format!("`{name}` is not defined in the files of its row"));
            }
        }
    }
    if !any {
        let message = "has no table with the columns `file` and `symbol`".to_owned();
        findings.push(Finding::new(NAME, PAGE, 0, message));
    }
    findings
}

/// Returns what stands between backticks.
fn quoted<'a>(cell: Option<&&'a str>) -> impl Iterator<Item = &'a str> {
    cell.copied().unwrap_or_default().split('`').skip(1).step_by(2)
}

/// `a/{b,c}/d` stands for `a/b/d` and `a/c/d`.
fn spread(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}').map(|(choices, after)| (before, choices, after))
    });
    match parts {
        Some((before, choices, after)) => {
            choices.split(',').map(|choice| format!("{before}{}{after}", choice.trim())).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// The last part of a Rust path, if the text is one.
fn symbol(text: &str) -> Option<&str> {
    let text = text.strip_suffix("()").unwrap_or(text);
    let is_path = !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':')
        && !text.starts_with(|c: char| c.is_ascii_digit());
    is_path.then(|| text.rsplit("::").next().unwrap_or(text))
}

/// Returns whether an item, a field, or a variant of this name is defined in the text.
fn defines(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let field = line.strip_prefix("pub ").unwrap_or(line).strip_prefix(name);
        let is_variant = name.starts_with(char::is_uppercase)
            && field.is_some_and(|rest| rest.starts_with([',', '(', ' ']) && !rest.contains('='));
        is_variant || ITEMS.iter().any(|item| defines_item(line, item, name))
    })
}

fn defines_item(line: &str, item: &str, name: &str) -> bool {
    line.match_indices(item).any(|(at, _)| {
        let begins = at == 0 || line.as_bytes()[at - 1] == b' ';
        let rest =
            line[at + item.len()..].strip_prefix(' ').and_then(|rest| rest.strip_prefix(name));
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        begins && rest.is_some_and(ends)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(row: &str) -> Vec<String> {
        let page = format!("| # | file | symbol |\n| --- | --- | --- |\n{row}\n");
        let tree = Tree::of(&[
            (PAGE, &page),
            (
                "protocol/h1/src/connection.rs",
                "pub struct Connection;\n    pub fn poll(&self) {}\n",
            ),
            ("protocol/h2/src/connection.rs", "pub enum Output {\n    Event(u8),\n}\n"),
        ]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_exists_is_no_finding() {
        let row = "| 6 | `protocol/{h1,h2}/src/connection.rs` | `Connection::poll()`, `Event` |";
        assert!(found(row).is_empty(), "{:?}", found(row));
    }

    #[test]
    fn a_symbol_or_file_that_is_gone_is_found() {
        let symbol = "| 6 | `protocol/h1/src/connection.rs` | `Connection::receive` |";
        assert_eq!(found(symbol), ["`receive` is not defined in the files of its row"]);
        let file = "| 6 | `protocol/h1/src/parser.rs` | `poll` |";
        assert_eq!(found(file), ["`protocol/h1/src/parser.rs` doesn't exist"]);
    }

    #[test]
    fn a_missing_page_or_table_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
        assert_eq!(check(&Tree::of(&[(PAGE, "Prose only.\n")])).len(), 1);
    }
}
