//! The modules of a crate don't use each other in circles: what two need is in a third.
//!
//! An edge is a path that begins with `crate` or `super`, outside of tests; a name that the root exports stands for its module. That a
//! module names its own children is no edge.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::tree::{SourceFile, Tree};

/// The rule's name.
pub(super) const NAME: &str = "circles";

/// Modules by path, such as `a::b`, each with those that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks every crate: one finding names all of its modules that are in circles.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    let directories = manifests.map(|file| file.path.trim_end_matches("Cargo.toml").to_owned());
    directories.filter_map(|directory| of_crate(tree, &directory)).collect()
}

fn of_crate(tree: &Tree, directory: &str) -> Option<Finding> {
    let graph = graph(tree, &format!("{directory}src/"));
    let circles = circles(&graph);
    if circles.is_empty() {
        return None;
    }
    let count: usize = circles.iter().map(BTreeSet::len).sum();
    let named = |circle: &BTreeSet<&str>| {
        format!("`{}`", circle.iter().copied().collect::<Vec<_>>().join("`, `"))
    };
    let lists: Vec<String> = circles.iter().map(named).collect();
    let message = format!("{count} modules use each other in circles: {}", lists.join("; "));
    Some(Finding::new(NAME, &format!("{directory}Cargo.toml"), 0, message))
}

/// Returns what the modules below `source` use of each other.
fn graph(tree: &Tree, source: &str) -> Graph {
    let files: Vec<(Vec<&str>, &SourceFile)> = tree
        .files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
        .filter_map(|file| Some((module(file.path.strip_prefix(source)?), file)))
        .collect();
    let modules: BTreeSet<String> = files
        .iter()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, _)| path.join("::"))
        .collect();
    let roots = files.iter().filter(|(path, _)| path.is_empty());
    let exported: BTreeMap<String, String> =
        roots.flat_map(|(_, file)| exported(&file.text, &modules)).collect();
    let mut graph = Graph::new();
    for (path, file) in files.iter().filter(|(path, _)| !path.is_empty()) {
        let own = path.join("::");
        let used = used(without_tests(&file.text), path);
        let places = used.iter().filter_map(|name| match name.split_once("::") {
            None if !modules.contains(name) => exported.get(name).cloned(),
            _ => longest(name, &modules),
        });
        let edges = places.filter(|place| *place != own).collect();
        graph.insert(own, edges);
    }
    graph
}

/// The module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`, the root is empty.
fn module(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("lib" | "main" | "mod"))) {
        parts.pop();
    }
    parts
}

/// The text up to the module with the tests.
fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
}

/// The names that the root exports, with their modules.
fn exported(text: &str, modules: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        for path in paths(text[at + 4..].trim_start_matches("crate::").trim_start_matches("self::"))
        {
            let Some((place, name)) = path.rsplit_once("::") else { continue };
            if let Some(place) = longest(place, modules) {
                found.push((name.to_owned(), place));
            }
        }
    }
    found
}

/// The absolute paths that a module's text names.
fn used(text: &str, own: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    for (at, word) in code.match_indices("crate::") {
        if is_start(&code, at) {
            found.extend(paths(&code[at + word.len()..]));
        }
    }
    let parent = own[..own.len().saturating_sub(1)].join("::");
    for (at, word) in code.match_indices("super::") {
        if is_start(&code, at) {
            let inner = paths(&code[at + word.len()..]);
            found.extend(inner.into_iter().map(|path| match parent.as_str() {
                "" => path,
                parent => format!("{parent}::{path}"),
            }));
        }
    }
    found
}

/// Returns whether no other path or word goes on here.
fn is_start(code: &str, at: usize) -> bool {
    let before = code[..at].chars().next_back();
    before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':')
}

/// The paths that begin here: one, or several in braces.
fn paths(text: &str) -> Vec<String> {
    let end =
        text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let head = text[..end].trim_end_matches(':');
    let Some(list) =
        text[end..].strip_prefix('{').filter(|_| end == 0 || text[..end].ends_with("::"))
    else {
        return if head.is_empty() { Vec::new() } else { vec![head.to_owned()] };
    };
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let inner = paths(list[start..at].trim_start());
                found.extend(inner.into_iter().map(|path| match (head, path.as_str()) {
                    ("", path) => path.to_owned(),
                    (head, "self") => head.to_owned(),
                    (head, path) => format!("{head}::{path}"),
                }));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// The longest beginning of a path that is a module.
fn longest(path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut path = path;
    loop {
        if modules.contains(path) {
            return Some(path.to_owned());
        }
        path = path.rsplit_once("::")?.0;
    }
}

/// The largest sets of modules each of which leads to every other.
fn circles(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached(graph, module))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (module, its) in &reached {
        if !its.contains(module) || found.iter().any(|circle| circle.contains(module)) {
            continue;
        }
        let back = |other: &&&str| reached.get(**other).is_some_and(|there| there.contains(module));
        found.push(its.iter().filter(back).copied().collect());
    }
    found
}

/// The modules that one leads to.
fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(module) = next.pop() {
        let used = graph.get(module).into_iter().flatten().map(String::as_str);
        let new: Vec<&str> = used.filter(|used| !found.contains(used)).collect();
        found.extend(new.iter().copied());
        next.extend(new);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let manifest = [("a/Cargo.toml", "")];
        let tree = Tree::of(&[&manifest[..], files].concat());
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn modules_in_a_circle_are_named() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\nmod d;\npub use b::{B, Other};\n"),
            ("a/src/b.rs", "use crate::c::{self, d::{E, F}};\n"),
            ("a/src/c/mod.rs", "// crate::d\nuse super::d::G;\n"),
            ("a/src/d.rs", "fn f(b: &crate::B) {}\n"),
            ("a/src/e.rs", "use crate::B;\n"),
        ];
        assert_eq!(found(&files), ["3 modules use each other in circles: `b`, `c`, `d`"]);
    }

    #[test]
    fn modules_without_a_circle_are_not() {
        let files = [
            ("a/src/main.rs", "mod b;\nmod c;\n"),
            ("a/src/b.rs", "use crate::c::C;\n\n#[cfg(test)]\nmod tests {}\n"),
            ("a/src/c.rs", "pub struct C;\n\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"),
            ("a/src/c/inner.rs", "use super::C;\n"),
        ];
        assert!(found(&files).is_empty(), "{:?}", found(&files));
    }

    #[test]
    fn paths_in_braces_are_taken_apart() {
        assert_eq!(paths("a::{self, b::{c, d}, e as f};"), ["a", "a::b::c", "a::b::d", "a::e"]);
        assert_eq!(paths("{a, b::c}"), ["a", "b::c"]);
        assert_eq!(paths("a::b(1)"), ["a::b"]);
        assert!(paths("*").is_empty());
    }
}
