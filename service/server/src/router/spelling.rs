//! RFC 3986 §6.2.2: paths that are the same in other words.

/// A path with the escapes that no client needs decoded, the others in capitals, backslashes as slashes, and several slashes as
/// one: what servers behind may take it for. `None`: the path is written so.
pub(super) fn usual(path: &[u8]) -> Option<Vec<u8>> {
    let is_plain = |pair: &[u8]| !matches!(pair, [b'%' | b'\\', _] | [b'/', b'/']);
    if path.windows(2).all(is_plain) && path.last() != Some(&b'\\') {
        return None;
    }
    let mut usual: Vec<u8> = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        let (byte, length) = match (first, escaped(after)) {
            (b'%', Some(byte)) => (byte, 3),
            _ => (*first, 1),
        };
        let (piece, others) = rest.split_at(length);
        rest = others;
        match byte {
            b'/' | b'\\' if usual.last() == Some(&b'/') => {}
            b'/' | b'\\' => usual.push(b'/'),
            _ if length == 1 || is_literal(byte) => usual.push(byte),
            _ => usual.extend(piece.iter().map(u8::to_ascii_uppercase)),
        }
    }
    (usual != path).then_some(usual)
}

/// The byte that two hexadecimal digits stand for.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Bytes that a path may have without an escape (RFC 3986 §3.3).
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_needs_no_escape_has_none() {
        for (path, expected) in [
            ("/%61dmin/x", "/admin/x"),
            ("//admin", "/admin"),
            ("/%2Fadmin", "/admin"),
            ("/%5cadmin", "/admin"),
            ("\\admin\\", "/admin/"),
            ("/caf%c3%a9%2e", "/caf%C3%A9."),
            ("/%7Euser/%20", "/~user/%20"),
            ("/%%61", "/%a"),
        ] {
            assert_eq!(usual(path.as_bytes()).as_deref(), Some(expected.as_bytes()), "{path}");
        }
        for path in ["", "/", "/a/b;c=1", "/%20", "/caf%C3%A9", "/100%", "/%4", "/%zz", "/~user"] {
            assert_eq!(usual(path.as_bytes()), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_made_usual_in_one_step_or_two(path in "[/a%25\\\\0-9A-Fa-f.]{0,24}") {
            // An escaped percent sign stays escaped, so nothing is decoded twice.
            let once = usual(path.as_bytes()).unwrap_or_else(|| path.into_bytes());
            if !once.contains(&b'%') {
                prop_assert_eq!(usual(&once), None);
            }
        }
    }
}
