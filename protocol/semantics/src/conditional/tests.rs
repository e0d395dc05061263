//! The rules of each field alone, and of several together.

use http::Version;
use proptest::prelude::*;

use super::*;
use crate::HeadKind;

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const SECOND: u64 = 784_111_777;

const PERFORM: Precondition = Precondition::Perform { range: false };
const PART: Precondition = Precondition::Perform { range: true };

fn head(fields: &[(&str, &str)]) -> Head {
    let mut head = Head::default();
    head.clear(HeadKind::Request, Version::HTTP_11);
    for (name, value) in fields {
        let known = FieldName::lookup(name.as_bytes()).unwrap();
        head.push_field(known, value.as_bytes());
    }
    head
}

fn ours() -> Validators<'static> {
    Validators {
        entity_tag: EntityTag::parse(b"\"a\""),
        last_modified: Some(SECOND),
        last_modified_is_strong: true,
    }
}

fn evaluated(method: &Method, fields: &[(&str, &str)]) -> Precondition {
    Conditions::of(&head(fields)).evaluate(method, &ours())
}

fn got(fields: &[(&str, &str)]) -> Precondition {
    evaluated(&Method::GET, fields)
}

#[test]
fn if_match_compares_strongly() {
    for (value, expected) in [
        ("\"a\"", PERFORM),
        ("\"b\", \"a\"", PERFORM),
        ("*", PERFORM),
        ("W/\"a\"", Precondition::Failed),
        ("\"b\"", Precondition::Failed),
        ("nonsense", Precondition::Failed),
        ("", Precondition::Failed),
    ] {
        assert_eq!(got(&[("if-match", value)]), expected, "{value}");
    }
}

#[test]
fn if_none_match_compares_weakly() {
    for (value, expected) in [
        ("\"a\"", Precondition::NotModified),
        ("W/\"a\"", Precondition::NotModified),
        ("\"b\", W/\"a\"", Precondition::NotModified),
        ("*", Precondition::NotModified),
        ("\"b\"", PERFORM),
        ("nonsense", PERFORM),
    ] {
        assert_eq!(got(&[("if-none-match", value)]), expected, "{value}");
    }
    assert_eq!(evaluated(&Method::PUT, &[("if-none-match", "*")]), Precondition::Failed);
    assert_eq!(evaluated(&Method::HEAD, &[("if-none-match", "\"a\"")]), Precondition::NotModified);
}

#[test]
fn a_list_may_come_on_several_lines() {
    let lines = [("if-none-match", "\"a\""), ("if-none-match", "\"b\"")];
    assert_eq!(got(&lines), Precondition::NotModified);
    let lines = [("if-match", "\"a\""), ("if-match", "\"b\"")];
    assert_eq!(got(&lines), PERFORM);
}

#[test]
fn dates() {
    let name = "if-modified-since";
    assert_eq!(got(&[(name, BEFORE)]), PERFORM);
    assert_eq!(got(&[(name, THEN)]), Precondition::NotModified);
    assert_eq!(got(&[(name, AFTER)]), Precondition::NotModified);
    assert_eq!(got(&[(name, "yesterday")]), PERFORM);
    assert_eq!(got(&[(name, AFTER), (name, AFTER)]), PERFORM, "twice, it is no date");
    assert_eq!(evaluated(&Method::PUT, &[(name, AFTER)]), PERFORM);
    let name = "if-unmodified-since";
    assert_eq!(got(&[(name, BEFORE)]), Precondition::Failed);
    assert_eq!(got(&[(name, THEN)]), PERFORM);
    assert_eq!(got(&[(name, "Sunday, 06-Nov-94 08:49:36 GMT")]), Precondition::Failed);
    assert_eq!(got(&[(name, "yesterday")]), PERFORM);
}

#[test]
fn a_tag_counts_before_a_date() {
    assert_eq!(got(&[("if-none-match", "\"b\""), ("if-modified-since", AFTER)]), PERFORM);
    assert_eq!(got(&[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)]), PERFORM);
    let both = [("if-match", "\"b\""), ("if-none-match", "\"a\"")];
    assert_eq!(got(&both), Precondition::Failed);
    let both = [("if-match", "\"a\""), ("if-none-match", "\"a\"")];
    assert_eq!(got(&both), Precondition::NotModified);
}

#[test]
fn if_range_needs_a_strong_validator() {
    let with = |value: &str| got(&[("range", "bytes=0-1"), ("if-range", value)]);
    assert_eq!(got(&[("range", "bytes=0-1")]), PART);
    assert_eq!(with("\"a\""), PART);
    assert_eq!(with("W/\"a\""), PERFORM);
    assert_eq!(with("\"b\""), PERFORM);
    assert_eq!(with(THEN), PART);
    assert_eq!(with(AFTER), PERFORM, "the date has to be the same");
    assert_eq!(with("nonsense"), PERFORM);
    let head = head(&[("range", "bytes=0-1"), ("if-range", THEN)]);
    let fresh = Validators { last_modified_is_strong: false, ..ours() };
    assert_eq!(Conditions::of(&head).evaluate(&Method::GET, &fresh), PERFORM);
    assert_eq!(got(&[("if-range", "\"a\"")]), PERFORM, "without a range it says nothing");
}

#[test]
fn a_range_given_twice_asks_for_nothing() {
    let head = head(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
    assert_eq!(Conditions::of(&head).range(), None);
}

proptest! {
    #[test]
    fn no_field_is_too_strange(
        fields in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
                    "if-range", "range",
                ]),
                "[ -~]{0,40}",
            ),
            0..6,
        ),
    ) {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let decided = got(&fields);
        // A client that states no wish about versions gets what it asked for.
        if fields.iter().all(|(name, _)| *name == "range") {
            prop_assert_eq!(decided, Precondition::Perform { range: !fields.is_empty() });
        }
        // Only If-None-Match and If-Modified-Since can end in 304.
        if !fields.iter().any(|(name, _)| matches!(*name, "if-none-match" | "if-modified-since")) {
            prop_assert_ne!(decided, Precondition::NotModified);
        }
    }
}
