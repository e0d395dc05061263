//! Pages that are written by a program from their source.

pub(crate) mod keys;
pub(crate) mod limits;

use std::process::ExitCode;

use crate::tree::Tree;

/// Every generated page: its path and what belongs there.
pub(crate) fn pages(tree: &Tree) -> Vec<(&'static str, String)> {
    let mut pages = vec![("docs/LIMITS.md", limits::page(tree))];
    pages.extend(keys::page(tree).map(|page| (keys::PAGE, page)));
    pages
}

/// Writes the pages; with `--check`, says which of them are stale and fails if any is.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let check = match arguments {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => {
            eprintln!("cargo xtask generate knows --check only");
            return ExitCode::from(2);
        }
    };
    let tree = Tree::read(&crate::root());
    let mut stale = false;
    for (path, text) in pages(&tree) {
        if tree.file(path).is_some_and(|file| file.text == text) {
            continue;
        }
        stale = true;
        if check {
            println!("{path} is stale");
        } else if let Err(error) = std::fs::write(tree.root.join(path), text) {
            eprintln!("{path} can't be written: {error}");
            return ExitCode::FAILURE;
        } else {
            println!("{path} written");
        }
    }
    if check && stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
