//! RFC 9112 §3.2.1: whatever a request's target is, and whatever rules a configuration could be read with, what comes out
//! is a target without new dot segments, a location of one host, or nothing; and conditions see the path that was sent.
//!
//! Lines: a pattern, a template, a prefix, a location, a value to test, and the target.

#![no_main]

use bolide_semantics::{Head, HeadKind, has_dot_segment, is_valid_target};
use bolide_site::{Conditions, Facts, Pattern, Redirect, Rewrite, Template, Test};
use http::{HeaderValue, StatusCode, Version};
use libfuzzer_sys::fuzz_target;

fn path_of(target: &str) -> &[u8] {
    target.split('?').next().unwrap_or_default().as_bytes()
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.splitn(6, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let [from, to, prefix, location, value, target] = std::array::from_fn(|_| line());
    // The protocols let no other target in.
    if !target.starts_with('/') || !is_valid_target(target.as_bytes()) || target.contains('#') {
        return;
    }
    let mut head = Head::default();
    head.clear(HeadKind::Request, Version::HTTP_11);
    let span = head.push_text(target.as_bytes());
    head.set_path(span);
    let host = head.push_text(b"a.example:80");
    head.set_authority(host);
    head.append("x-a", value.as_bytes());
    let facts = Facts { head: &head, client: None, accepted: None, is_secure: false, user: None };

    let Ok(pattern) = Pattern::new(from) else { return };
    let conditions = Conditions {
        fields: vec![("x-a".to_owned(), Test::of(value))],
        query: vec![(value.to_owned(), Test::Present)],
        pattern: Some(pattern.clone()),
        ..Conditions::default()
    };
    let _ = conditions.hold(&facts);
    let mut rewrite = Rewrite::default();
    if let Ok(stripping) = rewrite.clone().strip_prefix(prefix) {
        rewrite = stripping;
    }
    if let Ok(to) = Template::parse(to, pattern.captures()) {
        let value = to.expand(&facts, &[]);
        assert!(value.is_none_or(|value| HeaderValue::try_from(value).is_ok()));
        // Rewriting and matching see the same path.
        let only = Conditions { pattern: Some(pattern.clone()), ..Conditions::default() };
        if let Ok(replacing) = Rewrite::default().replace(pattern.clone(), to.clone())
            && !only.hold(&facts)
        {
            assert!(replacing.target(&facts).is_ok_and(|new| new.as_deref() == Some(target)));
        }
        if let Ok(replacing) = rewrite.clone().replace(pattern.clone(), to) {
            rewrite = replacing;
        }
    }
    if let Ok(Some(new)) = rewrite.target(&facts) {
        assert!(new.starts_with('/') && is_valid_target(new.as_bytes()), "{new}");
        assert!(!has_dot_segment(path_of(&new)) || has_dot_segment(path_of(target)), "{new}");
    }
    if let Ok(to) = Template::parse(location, pattern.captures())
        && let Ok(redirect) = Redirect::new(to, "/", StatusCode::FOUND)
        && let Some(to) = redirect.captured(pattern).location(&facts)
    {
        assert!(HeaderValue::try_from(&to).is_ok(), "{to:?}");
        assert!(!to.starts_with("//") && !to.starts_with("/\\"), "{to}");
    }
});
