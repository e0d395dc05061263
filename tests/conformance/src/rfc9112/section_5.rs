//! RFC 9112 §5, RFC 9110 §5: field lines.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [names(), values(), folding(), sizes()].concat()
}

fn with_line(line: &str) -> String {
    format!("GET /ping HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n")
}

fn names() -> Vec<Case> {
    vec![
        Case::refused("space-before-colon", with_line("X-A : b")),
        Case::refused("tab-before-colon", with_line("X-A\t: b")),
        Case::refused("space-before-colon-of-host", "GET /ping HTTP/1.1\r\nHost : a\r\n\r\n"),
        Case::refused(
            "space-before-colon-of-length",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
        ),
        Case::refused("no-colon", with_line("X-A")),
        Case::refused("empty-name", with_line(": b")),
        Case::refused("space-in-name", with_line("X A: b")),
        Case::refused("parenthesis-in-name", with_line("X(A): b")),
        Case::refused("slash-in-name", with_line("X/A: b")),
        Case::refused("quote-in-name", with_line("X\"A: b")),
        Case::refused("control-byte-in-name", with_line("X\x01A: b")),
        Case::refused("delete-in-name", with_line("X\x7fA: b")),
        Case::refused("high-byte-in-name", with_line("X\u{e9}A: b")),
        Case::accepted("underscore-in-name", with_line("X_A: b")),
        Case::accepted("odd-token-as-name", with_line("!#$%&'*+-.^_`|~9: b")),
        Case::accepted("names-in-any-case", "GET /ping HTTP/1.1\r\nhOsT: a\r\n\r\n"),
        Case::accepted(
            "length-in-any-case",
            "POST /echo HTTP/1.1\r\nHOST: a\r\ncONTENT-lENGTH: 5\r\n\r\nhello",
        )
        .content("hello"),
    ]
}

fn values() -> Vec<Case> {
    vec![
        Case::accepted("empty-value", with_line("X-A:")),
        Case::accepted("value-without-space", with_line("X-A:b")),
        Case::accepted("value-with-much-space", with_line("X-A: \t  b \t ")),
        Case::accepted("value-with-tab", with_line("X-A: b\tc")),
        Case::accepted("value-with-high-bytes", with_line("X-A: \u{e9}\u{fc}")),
        Case::accepted("value-with-colons", with_line("X-A: b: c:d")),
        Case::ambiguous("value-with-control-byte", with_line("X-A: b\x01c")),
        Case::ambiguous("value-with-delete", with_line("X-A: b\x7fc")),
        Case::ambiguous("value-with-vertical-tab", with_line("X-A: b\x0bc")),
        Case::ambiguous("value-with-escape", with_line("X-A: \x1b[0m")),
    ]
}

fn folding() -> Vec<Case> {
    vec![
        Case::ambiguous("folded-value", with_line("X-A: b\r\n c")),
        Case::ambiguous("folded-value-with-tab", with_line("X-A: b\r\n\tc")),
        Case::ambiguous("folded-value-from-its-start", with_line("X-A:\r\n b")),
        Case::ambiguous("folded-empty", with_line("X-A: b\r\n ")),
        Case::refused("folded-host", "GET /ping HTTP/1.1\r\nHost: a\r\n b\r\n\r\n"),
        Case::ambiguous(
            "folded-coding",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        ),
        Case::ambiguous(
            "folded-length",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\n\r\nhello",
        ),
    ]
}

fn sizes() -> Vec<Case> {
    let fields = |count: usize| {
        let lines: Vec<String> = (0..count).map(|index| format!("X-{index}: b")).collect();
        with_line(&lines.join("\r\n"))
    };
    let large = |bytes: usize| with_line(&format!("X-A: {}", "b".repeat(bytes)));
    vec![
        Case::accepted("fields-60", fields(60)).content("pong"),
        Case::refused("fields-20000", fields(20_000))
            .statuses(&[431])
            .tolerates(&[&[400]], After::Closed),
        Case::accepted("field-6000-bytes", large(6000)).content("pong"),
        Case::refused("field-1000000-bytes", large(1_000_000))
            .statuses(&[431])
            .tolerates(&[&[400]], After::Closed),
        Case::refused(
            "field-without-end",
            "GET /ping HTTP/1.1\r\nX: ".to_owned() + &"a".repeat(1_000_000),
        )
        .statuses(&[431])
        .tolerates(&[&[400]], After::Closed),
    ]
}
