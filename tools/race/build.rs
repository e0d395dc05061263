//! Puts the directory `contenders/` into the library, so that a program without the sources can race.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names that builds leave behind.
const LEFT_OUT: &[&str] = &["target", "node_modules", "out"];

fn main() -> io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let root = PathBuf::from(manifest).join("../../contenders");
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.display().to_string();
        let path = fs::canonicalize(file)?.display().to_string();
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("carried.rs"), table)?;
    // Cargo tells the profile's name only by the directory: PROFILE/build/PACKAGE/out.
    let profile = out.ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    writeln!(io::stdout(), "cargo::rustc-env=BOLIDE_PROFILE={}", profile.display())?;
    writeln!(io::stdout(), "cargo::rerun-if-changed={}", root.display())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if LEFT_OUT.contains(&name.as_str()) || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
