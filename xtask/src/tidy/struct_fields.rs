//! A struct has at most 16 fields: one with more has parts that have names of their own.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "struct-fields";

const FIELDS_MAX: usize = 16;

/// Checks every struct of every Rust file that is not generated.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && !file.is_generated()) {
        let lines: Vec<&str> = file.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = struct_name(line) else { continue };
            let count = fields(&lines[start..]);
            if count > FIELDS_MAX {
                let message = format!("{count} fields in `{name}`, more than {FIELDS_MAX}");
                findings.push(Finding::new(NAME, &file.path, start + 1, message));
            }
        }
    }
    findings
}

/// The name of the struct with named fields that begins on this line.
fn struct_name(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| c != ' ').trim_start(),
        None => item,
    };
    let rest = item.strip_prefix("struct ")?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!line.ends_with(';')).then_some(name)
}

/// How many fields the struct has that begins on the first of these lines. rustfmt puts its closing brace under its
/// first letter, and its fields four columns to the right.
fn fields(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let inner = lines[1..].iter().take_while(|line| {
        line.is_empty()
            || !line.trim_start().starts_with('}')
            || line.len() - line.trim_start().len() > indent
    });
    inner.filter(|line| line.len() > indent + 4 && is_field(&line[indent..])).count()
}

/// Returns whether a line, whose struct begins at the margin, declares a field.
fn is_field(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("    ") else { return false };
    let rest = match rest.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| c != ' ').trim_start(),
        None => rest,
    };
    let name =
        rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    name.len() < rest.len() && name.starts_with(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("src/lib.rs", text)]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_struct_with_many_fields_is_found() {
        let fields = |count: usize, indent: &str| -> String {
            (0..count)
                .map(|at| {
                    format!("{indent}    /// One: of many.\n{indent}    pub(crate) a{at}: u8,\n")
                })
                .collect()
        };
        let of = |count| {
            format!("pub struct Many<T>\nwhere\n    T: Copy,\n{{\n{}}}\n", fields(count, ""))
        };
        assert_eq!(found(&of(17)), ["17 fields in `Many`, more than 16"]);
        assert!(found(&of(16)).is_empty());
        let two =
            format!("struct A {{\n{}}}\n\nstruct B {{\n{}}}\n", fields(16, ""), fields(16, ""));
        assert!(found(&two).is_empty(), "{:?}", found(&two));
        let declared =
            format!("limits! {{\n    pub struct C {{\n{}    }}\n}}\n", fields(20, "    "));
        assert_eq!(found(&declared), ["20 fields in `C`, more than 16"]);
        assert!(found("struct D;\nstruct E(u8);\nlet a: u8 = 1;\n").is_empty());
    }
}
