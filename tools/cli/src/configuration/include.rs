//! `include`: further files with listeners, upstreams and routes.

use std::fs;
use std::path::{Path, PathBuf};

use super::document::{Document, Section};

/// Reads the files that `include` names, sorted by name: each a path, or a path whose last part has one `*`. They don't
/// include others.
pub(super) fn read(root: &mut Section<'_>) -> Result<Vec<Document>, String> {
    let mut documents: Vec<Document> = Vec::new();
    for (given, at) in root.texts("include")? {
        let path = root.path(&given);
        let files = match given.contains('*') {
            true => matching(&path)
                .map_err(|what| at.mistake(format!("`include` is `{given}`: {what}")))?,
            false => vec![path],
        };
        for file in files {
            let document = Document::read(&file).map_err(|error| {
                let what = error.strip_prefix("--config ").unwrap_or(&error);
                at.mistake(format!("`include` is `{given}`: {what}"))
            })?;
            if documents.iter().any(|other| other.name() == document.name()) {
                let what = format!("`include` names {} twice", document.name());
                return Err(at.mistake(what));
            }
            documents.push(document);
        }
    }
    Ok(documents)
}

/// Takes the sections of an included file.
pub(super) fn sections<'d>(
    document: &'d Document,
    into: [&mut Vec<Section<'d>>; 3],
) -> Result<(), String> {
    let mut section = document.section()?;
    if section.has("include") {
        let what = "an included file can't include others: name them in the first file";
        return Err(section.place_of("include").mistake(what));
    }
    for (key, list) in ["listen", "upstream", "route"].into_iter().zip(into) {
        list.extend(section.sections(key, None)?);
    }
    section.finish()
}

/// The files that a path with a `*` in its last part names, sorted. None is no mistake: a directory of sites may be empty.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let name = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let directory = pattern.parent().unwrap_or_else(|| Path::new(""));
    let parts = name.split_once('*').filter(|(_, end)| !end.contains('*'));
    let Some((beginning, end)) = parts.filter(|_| !directory.to_string_lossy().contains('*'))
    else {
        return Err("one `*` may stand in the file's name: write sites/*.toml".to_owned());
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = fs::read_dir(directory)
        .map_err(|error| format!("can't read the directory {}: {error}", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let rest = name.strip_prefix(beginning).and_then(|rest| rest.strip_suffix(end));
        if rest.is_some() && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
