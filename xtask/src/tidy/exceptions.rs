//! Exceptions: `xtask/tidy.toml`. Each has a reason, and one that excuses nothing is an error, so
//! that the list only shrinks.

use toml::{Table, Value};

use super::Finding;
use crate::tree::Tree;

const NAME: &str = "exceptions";
const FILE: &str = "xtask/tidy.toml";

/// One entry of the list.
struct Exception {
    rule: String,
    path: String,
    /// The most lines, if the rule is about lengths.
    lines: Option<usize>,
    used: bool,
}

/// Takes away what is excused; adds what is wrong with the excuses.
pub(super) fn apply(tree: &Tree, rules: &[&str], findings: Vec<Finding>) -> Vec<Finding> {
    let text = tree.file(FILE).map_or("", |file| file.text.as_str());
    let (mut exceptions, mut left) = read(text, rules);
    for finding in findings {
        let excuse = exceptions.iter_mut().find(|exception| {
            exception.rule == finding.rule
                && exception.path == finding.path
                && exception.lines.is_none_or(|most| lines(&finding.message) <= most)
        });
        match excuse {
            Some(exception) => exception.used = true,
            None => left.push(finding),
        }
    }
    for exception in exceptions.iter().filter(|exception| !exception.used) {
        let message = format!(
            "the exception from {} for {} excuses nothing: take it out",
            exception.rule, exception.path
        );
        left.push(Finding::new(NAME, FILE, 0, message));
    }
    left
}

/// The first number in a message about a length.
fn lines(message: &str) -> usize {
    let digits = message.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX)
}

fn read(text: &str, rules: &[&str]) -> (Vec<Exception>, Vec<Finding>) {
    let wrong = |message: String| Finding::new(NAME, FILE, 0, message);
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return (Vec::new(), vec![wrong(error.to_string())]),
    };
    let mut exceptions = Vec::new();
    let mut findings = Vec::new();
    for entry in table.get("exception").and_then(Value::as_array).into_iter().flatten() {
        let text =
            |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (rule, path, reason) = (text("rule"), text("path"), text("reason"));
        if !rules.contains(&rule.as_str()) {
            findings.push(wrong(format!("there is no rule `{rule}`")));
        } else if reason.split_whitespace().count() < 3 {
            findings.push(wrong(format!("the exception from {rule} for {path} needs a reason")));
        } else {
            let lines = entry.get("lines").and_then(Value::as_integer);
            let lines = lines.map(|lines| usize::try_from(lines).unwrap_or(0));
            exceptions.push(Exception { rule, path, lines, used: false });
        }
    }
    (exceptions, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "file-length";

    fn left(list: &str, findings: Vec<Finding>) -> Vec<String> {
        let tree = Tree::of(&[(FILE, list)]);
        apply(&tree, &[LONG], findings).into_iter().map(|finding| finding.message).collect()
    }

    fn long(lines: usize) -> Vec<Finding> {
        vec![Finding::new(LONG, "a.rs", 0, format!("{lines} lines, more than 600"))]
    }

    #[test]
    fn an_exception_excuses_what_it_names_and_no_more() {
        let list = "[[exception]]\nrule = \"file-length\"\npath = \"a.rs\"\nlines = 640\n\
                    reason = \"one long table\"\n";
        assert!(left(list, long(640)).is_empty());
        let grown = left(list, long(641));
        assert_eq!(grown.len(), 2, "{grown:?}");
        let unused = left(list, Vec::new());
        assert!(unused[0].contains("excuses nothing"), "{unused:?}");
    }

    #[test]
    fn an_exception_needs_a_rule_and_a_reason() {
        let no_reason = "[[exception]]\nrule = \"file-length\"\npath = \"a.rs\"\n";
        assert!(left(no_reason, long(700))[0].contains("needs a reason"));
        let no_rule = "[[exception]]\nrule = \"beauty\"\npath = \"a.rs\"\nreason = \"a b c\"\n";
        assert!(left(no_rule, Vec::new())[0].contains("no rule `beauty`"));
    }
}
