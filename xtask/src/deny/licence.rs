//! SPDX licence expressions: `MIT OR (Apache-2.0 AND ISC)`, and the old `MIT/Apache-2.0`.

/// Returns whether the licences that `allowed` accepts are enough to use what is under `expression`.
pub(super) fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    let result = any(&mut words, allowed);
    result && words.is_empty()
}

/// `all OR all …`
fn any(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = all(words, allowed);
    while take(words, "OR") {
        result |= all(words, allowed);
    }
    result
}

/// `one AND one …`
fn all(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = one(words, allowed);
    while take(words, "AND") {
        result &= one(words, allowed);
    }
    result
}

/// `NAME`, `NAME WITH NAME` or an expression in parentheses.
fn one(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    if take(words, "(") {
        let result = any(words, allowed);
        return take(words, ")") && result;
    }
    let Some((name, rest)) = words.split_first() else { return false };
    *words = rest;
    if take(words, "WITH") {
        let Some((exception, rest)) = words.split_first() else { return false };
        *words = rest;
        return allowed(&format!("{name} WITH {exception}"));
    }
    allowed(name)
}

fn take(words: &mut &[&str], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        let allowed = |one: &str| matches!(one, "MIT" | "ISC" | "Apache-2.0 WITH LLVM-exception");
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND ISC", true),
            ("GPL-3.0 OR MIT AND ISC", true),
            ("(GPL-3.0 OR MIT) AND (ISC OR Zlib)", true),
            ("(GPL-3.0 OR MIT) AND Zlib", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
        }
    }
}
