//! `docs/LIMITS.md`, from the doc comments of the constants in every `limits.rs`, and of the fields that `limits!` declares.

use std::fmt::Write as _;

use crate::tree::{SourceFile, Tree};

const HEAD: &str = "# Limits\n\nEvery limit of Bolide: what it is for, and which attack it counters. \
    Each attack is a test by its name.\n\nThis page is written by `cargo xtask generate` from the \
    declarations in each `limits.rs`.\n";

/// One limit of a `limits.rs`: a constant, or a field that `limits!` declares.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    /// The file.
    pub(crate) path: String,
    /// The line that declares it, from 1.
    pub(crate) line: usize,
    /// The constant's name; of a field, in capitals, behind what the struct's names begin with.
    pub(crate) name: String,
    /// True if it is a time.
    pub(crate) is_duration: bool,
    /// Purpose of the limit.
    pub(crate) purpose: String,
    /// In words.
    pub(crate) default: String,
    /// Of the value.
    pub(crate) unit: String,
    /// Why this value.
    pub(crate) reason: String,
    /// The attacks, separated by commas.
    pub(crate) attacks: String,
}

impl Limit {
    /// Every limit of the repository, by file.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let files = tree.files.iter().filter(|file| {
            file.name() == "limits.rs" && !file.is_test() && !file.path.starts_with("xtask/")
        });
        files.flat_map(Self::of).collect()
    }

    /// The attacks that it is against.
    pub(crate) fn attacks(&self) -> impl Iterator<Item = &str> {
        let names = self.attacks.split([',', ' ']).map(str::trim);
        names.filter(|name| !matches!(*name, "" | "none" | "and"))
    }

    fn of(file: &SourceFile) -> Vec<Self> {
        let mut limits = Vec::new();
        let mut comment = String::new();
        // What the names of fields begin with, within a struct of limits.
        let mut fields: Option<String> = None;
        for (index, line) in file.text.lines().enumerate() {
            let inner = line.trim_start();
            if let Some(text) = inner.strip_prefix("///") {
                comment.push_str(text);
                continue;
            }
            if inner.starts_with("#[") {
                continue;
            }
            if let Some(head) = line.strip_prefix("    pub struct ") {
                fields = Some(head.split('"').nth(1).unwrap_or_default().to_owned());
            } else if line.starts_with("    }") || line.starts_with('}') {
                fields = None;
            }
            let declared = match &fields {
                Some(prefix) => field(line)
                    .map(|(name, kind)| (format!("{prefix}{}", name.to_ascii_uppercase()), kind)),
                None => constant(line).map(|(name, kind)| (name.to_owned(), kind)),
            };
            if let Some((name, kind)) = declared {
                let mut limit = Self::described(&comment);
                limit.path.clone_from(&file.path);
                limit.line = index + 1;
                limit.name = name;
                limit.is_duration = kind.trim_start().starts_with("Duration");
                limits.push(limit);
            }
            comment.clear();
        }
        limits
    }

    /// Takes a comment apart: `What. Default: … Unit: … Reason: … Against: ….`
    fn described(comment: &str) -> Self {
        let comment = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        let (rest, attacks) = cut(&comment, "Against:");
        let (rest, reason) = cut(rest, "Reason:");
        let (rest, unit) = cut(rest, "Unit:");
        let (purpose, default) = cut(rest, "Default:");
        let owned = |text: &str| text.trim().trim_end_matches('.').to_owned();
        Self {
            purpose: owned(purpose),
            default: owned(default),
            unit: owned(unit),
            reason: owned(reason),
            attacks: owned(attacks),
            ..Self::default()
        }
    }
}

/// Returns what stands before the marker, and what after it.
fn cut<'a>(text: &'a str, marker: &str) -> (&'a str, &'a str) {
    text.split_once(marker).unwrap_or((text, ""))
}

/// Name and type of the constant on this line.
fn constant(line: &str) -> Option<(&str, &str)> {
    let rest =
        line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    rest.strip_prefix("const ")?.split_once(':')
}

/// Name and type of the field that `limits!` declares on this line.
fn field(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("        ")?.split_once(": ").filter(|(_, rest)| rest.contains(" = "))
}

/// The whole page.
pub(super) fn page(tree: &Tree) -> String {
    let mut page = HEAD.to_owned();
    let mut path = String::new();
    for limit in Limit::all(tree) {
        if limit.path != path {
            path.clone_from(&limit.path);
            let directory = path.trim_end_matches("/src/limits.rs");
            write!(
                page,
                "\n## `{directory}`\n\n| limit | what it limits | default | unit | reason | attacks |\n\
                 | --- | --- | --- | --- | --- | --- |\n"
            )
            .expect("a string takes all");
        }
        let Limit { name, purpose, default, unit, reason, attacks, .. } = &limit;
        let row = [&format!("`{name}`"), purpose, default, unit, reason, attacks];
        let row = row.map(|cell| cell.replace('|', "\\|"));
        writeln!(page, "| {} |", row.join(" | ")).expect("a string takes all");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! Limits.\n\n/// The longest line. Default: 16 KiB. Unit: bytes.\n\
        /// Reason: at least 8000, RFC 9112 §3. Against: slow-head, long-line.\n\
        pub const LINE_BYTES: usize = 16 * 1024;\n\n\
        /// Nothing.\npub const IDLE: Duration = Duration::from_secs(60);\n\n\
        /// A struct.\npub struct Limits {\n    /// [`IDLE`].\n    pub idle: Duration,\n}\n\n\
        limits! {\n    /// Times.\n    pub struct Times named \"LOG_\" {\n        /// How long. Default: 1 s. Unit: time.\n        \
        /// Reason: short. Against: none.\n        wait: Duration [from 0] = Duration::from_secs(1),\n    }\n    with {\n        \
        /// Others.\n        others: Others = Others::DEFAULT,\n    }\n}\n";

    #[test]
    fn a_comment_is_taken_apart() {
        let limits = Limit::all(&Tree::of(&[("protocol/h1/src/limits.rs", TEXT)]));
        assert_eq!(limits.len(), 3);
        let line = &limits[0];
        assert_eq!((line.name.as_str(), line.line), ("LINE_BYTES", 5));
        assert_eq!(line.purpose, "The longest line");
        assert_eq!((line.default.as_str(), line.unit.as_str()), ("16 KiB", "bytes"));
        assert_eq!(line.reason, "at least 8000, RFC 9112 §3");
        assert_eq!(line.attacks().collect::<Vec<_>>(), ["slow-head", "long-line"]);
        assert!(limits[1].is_duration && limits[1].default.is_empty());
        let field = &limits[2];
        assert_eq!((field.name.as_str(), field.is_duration), ("LOG_WAIT", true));
        assert_eq!((field.default.as_str(), field.reason.as_str()), ("1 s", "short"));
    }

    #[test]
    fn the_page_has_a_row_for_each() {
        let page = page(&Tree::of(&[("protocol/h1/src/limits.rs", TEXT)]));
        assert!(page.contains("## `protocol/h1`"), "{page}");
        assert!(page.contains("| `LINE_BYTES` | The longest line | 16 KiB | bytes |"), "{page}");
    }
}
