//! Names that somebody may have meant.

/// The one of `known` that is nearest to `word`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1) + 1;
    known
        .into_iter()
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A sentence that names the nearest, or all when none is near.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known: {}", known.join(", ")),
    }
}

/// Insertions, deletions and replacements that lead from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["ping", "static-4k", "protocols"];
        assert_eq!(nearest("pnig", known), Some("ping"));
        assert_eq!(nearest("static4k", known), Some("static-4k"));
        assert_eq!(nearest("Protocol", known), Some("protocols"));
        assert_eq!(nearest("zebra", known), None);
        assert_eq!(suggestion("zebra", &["a", "b"]), "known: a, b");
    }
}
