//! Suggestions for what was meant.

use strsim::osa_distance;

/// The candidate that `given` is likely a slip of: few letters are put in, left out, changed, or swapped with their
/// neighbour, or one is a part of the other.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase().replace('_', "-");
    let slips_max = 1 + given.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&given, &candidate.to_lowercase()), candidate))
        .filter(|(slips, candidate)| *slips <= slips_max || is_part(&given, candidate))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Returns whether one is a part of the other, such as `file` of `files`.
fn is_part(given: &str, candidate: &str) -> bool {
    given.len() >= 4
        && candidate.len() >= 4
        && (given.contains(candidate) || candidate.contains(given))
}

/// A sentence that names the nearest, or all when none is near.
pub fn suggestion(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found_and_nothing_for_what_is_far() {
        let known = ["root", "proxy", "builtin", "body-bytes-max", "static-4k", "protocols"];
        for (given, expected) in [
            ("rot", Some("root")),
            ("porxy", Some("proxy")),
            ("body_bytes_max", Some("body-bytes-max")),
            ("BuiltIn", Some("builtin")),
            ("static4k", Some("static-4k")),
            ("Protocol", Some("protocols")),
            ("completely", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
        assert_eq!(suggestion("zebra", &["a", "b"]), "known: a, b");
        assert_eq!(suggestion("bb", &["a", "b"]), "did you mean `b`?");
    }
}
