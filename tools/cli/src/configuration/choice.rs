//! Values that are one of several words.

use bolide_probe::nearest::nearest;

use super::document::Section;
use crate::place::Place;

/// One of several words.
pub(super) fn choice<T: Clone>(
    section: &mut Section<'_>,
    key: &str,
    words: &[(&'static str, T)],
) -> Result<Option<T>, String> {
    let Some((given, place)) = section.placed::<String>(key)? else { return Ok(None) };
    one_of(&given, &place, key, words).map(Some)
}

/// Returns what a word stands for.
pub(super) fn one_of<T: Clone>(
    given: &str,
    place: &Place,
    key: &str,
    words: &[(&'static str, T)],
) -> Result<T, String> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(value.clone());
    }
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let near = nearest(given, all.iter().copied());
    let near = near.map_or(String::new(), |near| format!(" (`{near}`?)"));
    Err(place.mistake(format!("`{key}` is `{given}`{near}: give one of {}", all.join(", "))))
}
