//! The table of every key in `docs/configuration.md`, from the list that a test of the program compares with its parser.

use std::fmt::Write as _;

use super::limits::Limit;
use crate::tree::Tree;

/// The page that has the table.
pub(super) const PAGE: &str = "docs/configuration.md";

const LIST: &str = "tools/cli/src/configuration/keys.txt";

/// Mark before the table on the page.
const BEGIN: &str = "<!-- keys: written by `cargo xtask generate` -->\n";
const END: &str = "<!-- end of the keys -->\n";

/// The page with its table; `None`: there is no list, or no place for the table.
pub(super) fn page(tree: &Tree) -> Option<String> {
    let (page, list) = (&tree.file(PAGE)?.text, &tree.file(LIST)?.text);
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", tables(list, &Limit::all(tree))))
}

fn tables(list: &str, limits: &[Limit]) -> String {
    let mut text = String::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix("@ ") {
            let section =
                if section.starts_with('[') { format!("`{section}`") } else { section.into() };
            let head = "| key | type | unit | default | example |\n| --- | --- | --- | --- | --- |";
            writeln!(text, "\n**{section}**\n\n{head}").expect("a string takes all");
        } else if let Some((key, place)) = line.split_once(" = ").filter(|_| !line.contains(" | "))
        {
            row(&mut text, &of_limit(key, place, limits));
        } else if let [key, kind, default, example] = line.split(" | ").collect::<Vec<_>>()[..] {
            let unit = unit(kind);
            row(&mut text, &[key, kind, unit, default, example].map(str::to_owned));
        }
    }
    text.push('\n');
    text
}

fn row(text: &mut String, [key, kind, unit, default, example]: &[String; 5]) {
    let code = |cell: &str| match cell {
        "–" => cell.to_owned(),
        cell => format!("`{}`", cell.replace('|', "\\|")),
    };
    let (key, example) = (code(key), code(example));
    let row = [&key, kind, unit, default, &example].map(|cell| cell.as_str());
    writeln!(text, "| {} |", row.join(" | ")).expect("a string takes all");
}

/// The unit of a type.
fn unit(kind: &str) -> &'static str {
    match kind {
        "time" => "ms, s, min, h",
        "bytes" => "B, KiB, MiB, GiB",
        _ => "–",
    }
}

/// The row of a limit, whose constant is named by its directory and its name.
fn of_limit(key: &str, place: &str, limits: &[Limit]) -> [String; 5] {
    let (directory, name) = place.split_once(' ').unwrap_or((place, ""));
    let path = format!("{directory}/src/limits.rs");
    let is_it = |limit: &&Limit| limit.path == path && limit.name == name;
    let Some(limit) = limits.iter().find(is_it) else {
        return [key, "", "", &format!("{place} is no limit"), "–"].map(str::to_owned);
    };
    let kind = match limit.unit.as_str() {
        _ if limit.is_duration => "time",
        "bytes" => "bytes",
        _ => "number",
    };
    let unit = if kind == "number" { &limit.unit } else { unit(kind) };
    let example =
        written(&limit.default).map_or_else(|| "–".to_owned(), |value| format!("{key} = {value}"));
    [key, kind, unit, &limit.default, &example].map(str::to_owned)
}

/// A default as a file writes it: `60 s`, `1 MiB`, `1,000`, `0 s, which is off`. `None`: it is said in words.
fn written(default: &str) -> Option<String> {
    let value = default.split(", ").next().unwrap_or_default();
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let number = number.replace(',', "");
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match unit {
        "" | "bytes" if is_number => Some(number),
        "ms" | "s" | "min" | "h" | "KiB" | "MiB" | "GiB" if is_number => {
            Some(format!("\"{number}{unit}\""))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "/// The longest. Default: 16 KiB. Unit: bytes.\n/// Reason: a. Against: none.\n\
        pub const LINE_BYTES: usize = 16 * 1024;\n";

    #[test]
    fn the_table_stands_between_its_marks() {
        let page_before = format!("# A\n{BEGIN}old\n{END}after\n");
        let list = "# What it is.\n@ [limits]\nline-bytes = protocol/h1 LINE_BYTES\n\
                    a | time | \"30s\" | a = \"1s\"\nb | x | none | –\n";
        let files =
            [(PAGE, page_before.as_str()), (LIST, list), ("protocol/h1/src/limits.rs", LIMITS)];
        let page = page(&Tree::of(&files)).unwrap();
        assert!(page.starts_with(&format!("# A\n{BEGIN}\n**`[limits]`**\n")), "{page}");
        assert!(page.ends_with(&format!("{END}after\n")) && !page.contains("old"), "{page}");
        for row in [
            "| `line-bytes` | bytes | B, KiB, MiB, GiB | 16 KiB | `line-bytes = \"16KiB\"` |",
            "| `a` | time | ms, s, min, h | \"30s\" | `a = \"1s\"` |",
            "| `b` | x | – | none | – |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }

    #[test]
    fn defaults_are_written_as_a_file_has_them() {
        for (default, value) in [
            ("60 s", Some("\"60s\"")),
            ("1,000", Some("1000")),
            ("512 bytes", Some("512")),
            ("0 s, which is off", Some("\"0s\"")),
            ("none", None),
        ] {
            assert_eq!(written(default).as_deref(), value, "{default}");
        }
    }
}
