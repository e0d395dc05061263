//! A limit says what it limits, its default, unit and reason, and which attack it is against.

use super::Finding;
use crate::generate::limits::Limit;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "limits";

/// Units of a number that a name may hold; a `Duration` needs none.
const UNITS: &[&str] = &["BYTES", "COUNT", "PER_SECOND", "PERCENT", "DIGITS"];

/// Checks every constant of every `limits.rs`.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for limit in Limit::all(tree) {
        let mut find = |message: String| {
            findings.push(Finding::new(NAME, &limit.path, limit.line, message));
        };
        for (part, text) in [
            ("Default:", &limit.default),
            ("Unit:", &limit.unit),
            ("Reason:", &limit.reason),
            ("Against:", &limit.attacks),
        ] {
            if text.is_empty() {
                find(format!("`{}` doesn't say `{part} …`", limit.name));
            }
        }
        if limit.purpose.is_empty() {
            find(format!("`{}` doesn't say what it limits", limit.name));
        }
        let has_unit = limit.is_duration || UNITS.iter().any(|unit| limit.name.contains(unit));
        if !has_unit {
            find(format!("`{}` has no unit in its name: one of {}", limit.name, UNITS.join(", ")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_its_reason_is_found() {
        let text = "/// The longest line. Default: 16 KiB. Unit: bytes. Against: slow-head.\n\
                    pub const LINE_BYTES: usize = 16 * 1024;\n\
                    /// Fields. Default: 100. Unit: fields. Reason: as others. Against: none.\n\
                    pub const FIELDS: usize = 100;\n";
        let found = check(&Tree::of(&[("protocol/h1/src/limits.rs", text)]));
        let found: Vec<_> = found.into_iter().map(|finding| finding.message).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`LINE_BYTES` doesn't say `Reason: …`"), "{found:?}");
        assert!(found[1].contains("`FIELDS` has no unit"), "{found:?}");
    }
}
