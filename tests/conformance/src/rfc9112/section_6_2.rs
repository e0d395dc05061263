//! RFC 9112 §6.2, RFC 9110 §8.6: Content-Length.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [fine(), wrong(), several(), short()].concat()
}

fn post(fields: &str, content: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{content}")
}

fn fine() -> Vec<Case> {
    let next = "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n";
    vec![
        Case::accepted("length", post("Content-Length: 5", "hello")).content("hello"),
        Case::accepted("length-0", post("Content-Length: 0", "")).content(""),
        Case::accepted("no-length", post("X-A: b", "")).content("").or(&[&[411]], After::Any),
        Case::accepted("length-with-spaces-around", post("Content-Length: \t 5 \t", "hello"))
            .content("hello"),
        Case::either("length-with-leading-zeros", post("Content-Length: 0005", "hello")),
        Case::accepted("length-then-request", post("Content-Length: 5", "hello") + next)
            .answers(&[&[200], &[200]])
            .content("pong"),
        Case::accepted(
            "get-with-content",
            "GET /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".to_owned() + next,
        )
        .answers(&[&[200], &[200]])
        // A server that doesn't want the content may answer at once and close.
        .or(&[&[200]], After::Closed)
        .content("pong"),
        Case::accepted(
            "head-with-content",
            "HEAD /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".to_owned() + next,
        )
        .answers(&[&[200], &[200]])
        .heads(&[0])
        .or(&[&[200]], After::Closed)
        .content("pong"),
        Case::accepted(
            "content-for-unknown-path",
            "POST /nobody HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".to_owned() + next,
        )
        .answers(&[&[404, 405], &[200]])
        .or(&[&[404, 405]], After::Closed),
    ]
}

fn wrong() -> Vec<Case> {
    let wrong = [
        ("length-negative", "-5"),
        ("length-with-plus", "+5"),
        ("length-hexadecimal", "0x5"),
        ("length-with-letters", "5a"),
        ("length-with-exponent", "5e0"),
        ("length-with-point", "5.0"),
        ("length-with-space", "5 5"),
        ("length-with-underscore", "5_0"),
        ("length-quoted", "\"5\""),
        ("length-with-semicolon", "5;"),
        ("length-with-bare-cr", "5\r1"),
        ("length-with-nul", "5\0"),
        ("length-with-vertical-tab", "\x0b5"),
        ("length-other-digits", "\u{665}"),
        ("length-word", "five"),
        ("length-2^64-plus-5", "18446744073709551621"),
        ("length-beyond-all", "99999999999999999999999999999999999"),
    ];
    let mut cases = wrong
        .map(|(name, value)| {
            // 413 is as good for what is too large to be counted.
            let case = Case::refused(name, post(&format!("Content-Length: {value}"), "hello"));
            case.tolerates(&[&[413]], After::Closed)
        })
        .to_vec();
    cases.push(Case::ambiguous("length-empty", post("Content-Length:", "")));
    cases
}

fn several() -> Vec<Case> {
    vec![
        Case::refused("two-lengths", post("Content-Length: 5\r\nContent-Length: 6", "hello")),
        Case::ambiguous(
            "two-equal-lengths",
            post("Content-Length: 5\r\nContent-Length: 5", "hello"),
        ),
        Case::refused("length-list", post("Content-Length: 5, 6", "hello")),
        Case::ambiguous("length-list-of-equals", post("Content-Length: 5, 5", "hello")),
        Case::refused(
            "two-lengths-apart",
            post("Content-Length: 0\r\nX-A: b\r\ncontent-length: 5", "hello"),
        ),
        Case::ambiguous("length-before-comma", post("Content-Length: 5,", "hello")),
        Case::refused(
            "good-and-bad-length",
            post("Content-Length: 5\r\nContent-Length: five", "hello"),
        ),
    ]
}

/// Content that ends before its length: never a whole request.
fn short() -> Vec<Case> {
    let request = post("Content-Length: 10", "hello");
    vec![
        Case::refused("content-cut-short", request)
            .half_closed()
            .statuses(&[400, 408])
            .or(&[], After::Closed),
    ]
}
