//! Check that what the documents tell a reader to type or to open exists.

use super::Finding;
use crate::TASKS;
use crate::tree::{SourceFile, Tree};

/// The rule's name.
pub(super) const NAME: &str = "links";

/// The sources of the program, where its commands are defined.
const PROGRAM: &str = "tools/cli/src";

/// Checks the commands and the relative links of every Markdown file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let mut find = |message: String| {
                findings.push(Finding::new(NAME, &file.path, index + 1, message));
            };
            for task in words_after(line, "cargo xtask ") {
                if !TASKS.iter().any(|known| known.name == task) {
                    find(format!("there is no `cargo xtask {task}`"));
                }
            }
            for command in words_after(line, "cargo run --release -- ") {
                if !is_command(tree, command) {
                    find(format!("`bolide` has no command `{command}`"));
                }
            }
            if !fenced {
                for target in links(line).filter(|target| !exists(tree, file, target)) {
                    find(format!("the link to {target} leads nowhere"));
                }
            }
        }
    }
    findings
}

/// The lower-case word after each occurrence of `prefix`.
fn words_after<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).filter_map(move |(at, _)| {
        let rest = &line[at + prefix.len()..];
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
        (end > 0 && !rest.starts_with('-')).then_some(&rest[..end])
    })
}

/// Returns whether the program has this command: as an enum's variant, or a module of its name.
fn is_command(tree: &Tree, command: &str) -> bool {
    let mut variant = command.to_owned();
    variant[..1].make_ascii_uppercase();
    tree.files_of(PROGRAM).any(|file| {
        let own = [format!("{PROGRAM}/{command}.rs"), format!("{PROGRAM}/{command}/mod.rs")];
        own.contains(&file.path)
            || file.text.lines().any(|line| {
                line.trim_start()
                    .strip_prefix(&variant)
                    .is_some_and(|rest| rest.starts_with(['(', ',', ' ']))
            })
    })
}

/// The targets of `[text](target)` that are files of ours.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let target = line[at + 2..].split(')').next()?;
        let path = target.split('#').next()?;
        (!path.is_empty() && !path.contains(':')).then_some(path)
    })
}

fn exists(tree: &Tree, from: &SourceFile, target: &str) -> bool {
    let mut parts: Vec<&str> = from.path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    path.is_empty() || tree.files_of(&path).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(readme: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("README.md", readme),
            ("docs/TESTING.md", "[back](../README.md)"),
            ("tools/cli/src/main.rs", "enum Command {\n    Serve(Serve),\n}\n"),
        ]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn commands_and_links_that_exist_are_fine() {
        let text = "```sh\ncargo run --release -- serve\ncargo xtask test\n```\n\
                    See [testing](docs/TESTING.md#fuzzing) and [docs](docs/).\n";
        assert!(found(text).is_empty(), "{:?}", found(text));
    }

    #[test]
    fn commands_and_links_that_do_not_exist_are_found() {
        assert_eq!(found("`cargo xtask teest`"), ["there is no `cargo xtask teest`"]);
        assert_eq!(found("cargo run --release -- swerve"), ["`bolide` has no command `swerve`"]);
        assert_eq!(found("[a](docs/NONE.md)"), ["the link to docs/NONE.md leads nowhere"]);
    }
}
