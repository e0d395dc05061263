//! RFC 9110 §4.2.3, RFC 3986 §2.1, §3.3: the path of a target as a name of something below a root.

use std::borrow::Cow;

use percent_encoding::{percent_decode, percent_decode_str};

/// Decodes a path and checks that it can only name what lies below a root: it begins with a slash, no
/// segment is empty but the last, none is `.` or `..`, and none has a slash, a backslash or a control
/// byte in it, however they were written. `None` is any other path.
///
/// What comes back is one name for each thing, but for the slash that a directory ends with; without an
/// escape it is the path itself.
#[must_use]
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    let decoded = if path.as_bytes().contains(&b'%') {
        Cow::Owned(decode_escapes(path)?)
    } else {
        Cow::Borrowed(path)
    };
    let segments = decoded.strip_prefix('/')?;
    if segments.bytes().any(|byte| byte < 0x20 || byte == 0x7f || byte == b'\\') {
        return None;
    }
    let mut rest = segments.split('/').peekable();
    while let Some(segment) = rest.next() {
        let is_last = rest.peek().is_none();
        if segment == "." || segment == ".." || (segment.is_empty() && !is_last) {
            return None;
        }
    }
    Some(decoded)
}

/// How often escapes are decoded to find a dot segment: servers that decode the path of a decoded target read `%252e` as a dot.
const DECODINGS_COUNT: usize = 2;

/// Returns whether a server could leave the directory that a path names, or name it in another way: a segment is `.` or `..`, as
/// it is sent or decoded, once or twice. Slashes and backslashes end a segment, escaped ones too; what follows `;`, `?`,
/// `#`, a space or a control character does not count, for some servers cut a segment there.
#[must_use]
pub fn has_dot_segment(path: &[u8]) -> bool {
    if names_dots(path) {
        return true;
    }
    let mut decoded = Cow::Borrowed(path);
    for _ in 0..DECODINGS_COUNT {
        if !decoded.contains(&b'%') {
            return false;
        }
        decoded = Cow::Owned(percent_decode(&decoded).collect());
        if names_dots(&decoded) {
            return true;
        }
    }
    false
}

/// Returns whether a segment is `.` or `..` as it stands.
fn names_dots(path: &[u8]) -> bool {
    path.contains(&b'.')
        && path.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| {
            let is_cut = |byte: &u8| *byte <= b' ' || matches!(byte, b';' | b'?' | b'#' | 0x7f);
            let end = segment.iter().position(is_cut).unwrap_or(segment.len());
            matches!(&segment[..end], b"." | b"..")
        })
}

/// Decodes `%` and two digits; refuses what is half an escape, a slash in disguise, or no UTF-8.
fn decode_escapes(path: &str) -> Option<String> {
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let digits = rest.as_bytes().get(at + 1..at + 3)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) || digits.eq_ignore_ascii_case(b"2f") {
            return None;
        }
        rest = &rest[at + 3..];
    }
    percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_names_something() {
        for (path, expected) in [
            ("/", "/"),
            ("/a", "/a"),
            ("/a/b.html", "/a/b.html"),
            ("/a/", "/a/"),
            ("/a%20b", "/a b"),
            ("/%61", "/a"),
            ("/100%25", "/100%"),
            ("/%C3%A9", "/é"),
            ("/..a/b..", "/..a/b.."),
            ("/...", "/..."),
            ("/a:b", "/a:b"),
        ] {
            assert_eq!(decode_path(path).as_deref(), Some(expected), "{path}");
        }
        assert!(matches!(decode_path("/plain"), Some(Cow::Borrowed("/plain"))));
    }

    #[test]
    fn what_could_lead_elsewhere_names_nothing() {
        for path in [
            "",
            "a",
            "*",
            "/..",
            "/../a",
            "/a/..",
            "/a/../b",
            "/.",
            "/a/./b",
            "//",
            "//a",
            "/a//b",
            "/%2e%2e",
            "/%2E%2e/a",
            "/.%2e/a",
            "/a/%2e",
            "/a%2fb",
            "/..%2f",
            "/a%2Fb",
            "/%2f",
            "/a%5cb",
            "/..%5c",
            "/a\\b",
            "/\\",
            "/a%00",
            "/%00",
            "/a%0a",
            "/a%7f",
            "/%",
            "/%a",
            "/a%g0",
            "/%+1",
            "/%ff",
            "/%c0%ae",
            "/%e2%80",
            "/%252e%252e%2f",
        ] {
            assert_eq!(decode_path(path), None, "{path}");
        }
        assert_eq!(decode_path("/%252e%252e").as_deref(), Some("/%2e%2e"), "decoded once");
    }

    #[test]
    fn dot_segments_are_found_however_they_are_written() {
        for dots in [
            "..",
            ".",
            "%2e%2e",
            ".%2E",
            "%2e",
            "..;",
            "..;a=b",
            "..%3bx",
            "..%2f",
            "%2e%2e%2f",
            "..%5c",
            "\\..",
            "\\..\\..",
            "%5c..",
            "..\\",
            ".%2f",
            "%252e%252e",
            "..%252f",
            "..%255c",
            "%25%32%65.",
            "..%00",
            "..%20",
            "..%23",
            "..%3f",
        ] {
            for path in
                [format!("/api/{dots}/secret"), format!("/api/{dots}"), format!("/{dots}/x")]
            {
                assert!(has_dot_segment(path.as_bytes()), "{path}");
            }
        }
        for path in [
            "/",
            "/api/a.b",
            "/api/..a",
            "/api/a..",
            "/api/...",
            "/.well-known/x",
            "/a;..",
            "/a;b=..",
            "/%2e%2ea",
            "/a%2eb",
            "/100%",
            "/%zz..",
            "/%",
            "*",
            "",
        ] {
            assert!(!has_dot_segment(path.as_bytes()), "{path}");
        }
    }

    proptest! {
        #[test]
        fn what_has_no_dot_segment_names_the_same_for_servers_that_resolve_dots(
            path in "/(/|%2[eEfF5]|%5[cC]|%252[eEfF]|\\.|\\\\|;|a|%){0,16}",
        ) {
            // Servers that decode once, twice or never, and take backslashes for slashes, or cut parameters.
            for decodings in 0..=2 {
                let mut decoded = path.clone().into_bytes();
                for _ in 0..decodings {
                    decoded = percent_decode(&decoded).collect();
                }
                let read = String::from_utf8_lossy(&decoded).replace('\\', "/");
                let resolves = read.split('/').any(|segment| {
                    let bare = segment.split(';').next().unwrap();
                    [segment, bare].iter().any(|name| matches!(*name, "." | ".."))
                });
                prop_assert!(!resolves || has_dot_segment(path.as_bytes()), "{}", path);
            }
        }

        #[test]
        fn a_name_stays_below_its_root(
            path in "(/|%2[eEfF5]|%5[cC]|\\.|\\\\|%00|a|é|%){0,16}",
        ) {
            for path in [path.clone(), format!("/{path}")] {
                let Some(name) = decode_path(&path) else { continue };
                let below = name.strip_prefix('/').unwrap();
                let inner: Vec<_> = below.trim_end_matches('/').split('/').collect();
                prop_assert!(!inner.contains(&"..") && !inner.contains(&"."), "{}", name);
                prop_assert!(!name.contains('\0') && !name.contains('\\') && !name.contains("//"));
            }
        }
    }
}
