//! What somebody may have meant.

/// The candidate that `given` is likely a slip of.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let given = given.to_ascii_lowercase().replace('_', "-");
    let slips_max = 1 + given.chars().count() / 4;
    candidates
        .map(|candidate| (distance(&given, candidate), candidate))
        .filter(|(slips, candidate)| *slips <= slips_max || is_part(&given, candidate))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Whether one is a part of the other, such as `file` of `files`.
fn is_part(given: &str, candidate: &str) -> bool {
    given.len() >= 4
        && candidate.len() >= 4
        && (given.contains(candidate) || candidate.contains(given))
}

/// How many letters have to be put in, left out, changed, or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, slips) in
            [("", "", 0), ("a", "", 1), ("htpp", "http", 1), ("hppt", "http", 2), ("abc", "bcd", 2)]
        {
            assert_eq!(distance(a, b), slips, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_is_found_and_nothing_for_what_is_far() {
        let known = ["root", "proxy", "builtin", "body-bytes-max"];
        let found = |given: &str| nearest(given, known.iter().copied());
        assert_eq!(found("rot"), Some("root"));
        assert_eq!(found("porxy"), Some("proxy"));
        assert_eq!(found("body_bytes_max"), Some("body-bytes-max"));
        assert_eq!(found("BuiltIn"), Some("builtin"));
        assert_eq!(found("completely"), None);
    }
}
