//! Every attack that a limit is against is a test by its name.

use super::Finding;
use crate::generate::limits::Limit;
use crate::tree::Tree;

/// The rule's name.
pub(super) const NAME: &str = "attacks";

/// Looks for a function with the attack's name in its own.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for limit in Limit::all(tree) {
        for attack in limit.attacks() {
            let name = attack.replace('-', "_");
            let tested = tree.files.iter().filter(|file| file.is_rust()).any(|file| {
                file.text.lines().any(|line| {
                    line.trim_start().strip_prefix("fn ").is_some_and(|rest| {
                        rest.split('(').next().is_some_and(|function| function.contains(&name))
                    })
                })
            });
            if !tested {
                let message = format!(
                    "`{}` is against {attack}, but no test is named after it (`fn …{name}…`)",
                    limit.name
                );
                findings.push(Finding::new(NAME, &limit.path, limit.line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "/// Pings. Default: 10. Unit: frames. Reason: enough. Against: \
                          ping-flood, none.\npub const PING_COUNT: u32 = 10;\n";

    #[test]
    fn an_attack_without_a_test_is_found() {
        let untested = Tree::of(&[("protocol/h2/src/limits.rs", LIMITS)]);
        assert!(check(&untested)[0].message.contains("is against ping-flood"));
        let tested = Tree::of(&[
            ("protocol/h2/src/limits.rs", LIMITS),
            ("protocol/h2/src/tests.rs", "    fn a_ping_flood_ends_the_connection() {\n"),
        ]);
        assert!(check(&tested).is_empty());
    }
}
