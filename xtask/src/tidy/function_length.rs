//! A function has at most 70 lines. rustfmt puts the closing brace of a function under its first
//! letter, so that counting needs no parser.

use super::Finding;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "function-length";

const LINES_MAX: usize = 70;

/// Checks every Rust file that is neither only tests nor generated.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if !file.is_rust() || file.is_test() || file.is_generated() {
            continue;
        }
        let lines: Vec<&str> = file.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            let length = length(&lines[start..]);
            if length > LINES_MAX {
                let message = format!("{length} lines in `{name}`, more than {LINES_MAX}");
                findings.push(Finding::new(NAME, &file.path, start + 1, message));
            }
        }
    }
    findings
}

/// The name of the function whose signature begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            return name.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        }
        let (word, after) = rest.split_once(' ')?;
        let qualifies = matches!(word, "const" | "async" | "unsafe" | "extern" | "default")
            || word.starts_with("pub")
            || word.starts_with('"');
        if !qualifies {
            return None;
        }
        rest = after;
    }
}

/// How many lines the function has that begins on the first of these.
fn length(lines: &[&str]) -> usize {
    let first = lines[0];
    if first.ends_with('}') || first.ends_with(';') {
        return 1;
    }
    let indent = &first[..first.len() - first.trim_start().len()];
    let mut in_signature = !first.ends_with('{');
    for (index, line) in lines.iter().enumerate().skip(1) {
        let Some(rest) = line.strip_prefix(indent) else { continue };
        if rest == "}" {
            return index + 1;
        }
        let outdented = !rest.starts_with(' ');
        if in_signature && outdented && (rest.ends_with(';') || rest.ends_with('}')) {
            return index + 1;
        }
        if outdented && rest.ends_with('{') {
            in_signature = false;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("src/lib.rs", text)]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_long_function_is_found() {
        let body = "    let a = 1;\n".repeat(69);
        let long = format!("pub(crate) fn long(\n    a: u8,\n) {{\n{body}}}\n");
        assert_eq!(found(&long), ["73 lines in `long`, more than 70"]);
        let method = format!("impl A {{\n    async fn b(&self) {{\n{}    }}\n}}\n", body.repeat(2));
        assert_eq!(found(&method), ["140 lines in `b`, more than 70"]);
    }

    #[test]
    fn a_short_function_is_not() {
        let body = "    let a = 1;\n".repeat(60);
        let two = format!("fn a() {{\n{body}}}\n\nconst fn b() {{\n{body}}}\n");
        assert!(found(&two).is_empty(), "{:?}", found(&two));
        let declarations = format!("fn a();\nfn b(\n    c: u8,\n);\nfn d() {{}}\n{body}{body}");
        assert!(found(&declarations).is_empty(), "{:?}", found(&declarations));
        assert!(found("let fn_of = 1;\n// fn a() {\n").is_empty());
    }
}
