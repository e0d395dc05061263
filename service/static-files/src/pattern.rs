//! Patterns of paths: `*` stands for any characters.

/// Returns whether the whole text matches. Takes time in proportion to the product of the lengths at most.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where the last star stands, and up to where it has been tried.
    let mut star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                star = Some((at_pattern, at_text));
                at_pattern += 1;
            }
            Some(byte) if *byte == text[at_text] => {
                at_pattern += 1;
                at_text += 1;
            }
            _ => {
                let Some((place, tried)) = star else { return false };
                star = Some((place, tried + 1));
                at_pattern = place + 1;
                at_text = tried + 1;
            }
        }
    }
    pattern[at_pattern..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "/a/b", true),
            ("", "", true),
            ("", "a", false),
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("*.css", "/a/b.css", true),
            ("*.css", "/a/b.css.map", false),
            ("/assets/*", "/assets/", true),
            ("/assets/*", "/other/assets/", false),
            ("/*/x*.js", "/a/b/xyz.js", true),
            ("*a*b*", "xxaxxb", true),
            ("*a*b*", "xxbxxa", false),
            ("*aab", "aaaab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
