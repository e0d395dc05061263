//! The rules of style that no compiler knows: one file for each.

mod attacks;
mod circles;
mod exceptions;
mod facade;
mod file_length;
mod function_length;
mod imports;
mod limits;
mod links;
mod machine_paths;
mod names;
mod references;
mod sections;
mod stale;
mod struct_fields;
mod unfinished;
mod words;

use std::fmt;

use crate::manifest;
use crate::tree::Tree;

/// A place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The rule's name, as the exceptions file knows it.
    pub(crate) rule: &'static str,
    /// The file, from the root.
    pub(crate) path: String,
    /// From 1; 0 if the finding is about the whole file.
    pub(crate) line: usize,
    /// Description of the error, and of what would be right.
    pub(crate) message: String,
}

impl Finding {
    fn new(rule: &'static str, path: &str, line: usize, message: String) -> Self {
        Self { rule, path: path.to_owned(), line, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, line, message } = self;
        match line {
            0 => write!(f, "{path}: {message} [{rule}]"),
            _ => write!(f, "{path}:{line}: {message} [{rule}]"),
        }
    }
}

/// A rule looks at the whole repository.
type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    (attacks::NAME, attacks::check),
    (circles::NAME, circles::check),
    (facade::NAME, facade::check),
    (file_length::NAME, file_length::check),
    (function_length::NAME, function_length::check),
    (limits::NAME, limits::check),
    (links::NAME, links::check),
    (machine_paths::NAME, machine_paths::check),
    (names::NAME, names::check),
    (references::NAME, references::check),
    (sections::NAME, sections::check),
    (stale::NAME, stale::check),
    (struct_fields::NAME, struct_fields::check),
    (unfinished::NAME, unfinished::check),
    (words::NAME, words::check),
];

/// Checks every rule; what is left are the findings that no exception excuses.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|(_, rule)| rule(tree)).collect();
    match manifest::ours(&tree.root) {
        Ok(packages) => findings.extend(imports::check(&packages)),
        Err(error) => findings.push(Finding::new(imports::NAME, "Cargo.toml", 0, error)),
    }
    let names: Vec<&str> = RULES.iter().map(|(name, _)| *name).chain([imports::NAME]).collect();
    exceptions::apply(tree, &names, findings).iter().map(Finding::to_string).collect()
}
