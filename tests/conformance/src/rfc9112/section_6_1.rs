//! RFC 9112 §6.1, §6.3: Transfer-Encoding, and requests that two servers would end at two places.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [fine(), with_length(), unknown(), spelling()].concat()
}

fn post(fields: &str, content: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{content}")
}

const EMPTY: &str = "0\r\n\r\n";
const HELLO: &str = "5\r\nhello\r\n0\r\n\r\n";

fn fine() -> Vec<Case> {
    vec![
        Case::accepted("chunked", post("Transfer-Encoding: chunked", HELLO)).content("hello"),
        Case::accepted("chunked-empty", post("Transfer-Encoding: chunked", EMPTY)).content(""),
        Case::accepted("coding-in-any-case", post("TRANSFER-encoding: ChUnKeD", HELLO))
            .content("hello"),
        Case::accepted(
            "chunked-get",
            "GET /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
        .content("pong")
        // A server that doesn't want the content may answer at once and close.
        .or(&[&[200]], After::Closed),
        Case::accepted("chunked-then-request", post("Transfer-Encoding: chunked", HELLO)
            + "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
        .answers(&[&[200], &[200]])
        .content("pong"),
    ]
}

/// Two framings: a strict server refuses; another takes the coding, but must close.
fn with_length() -> Vec<Case> {
    let tail = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let both = |name, request: String| {
        let mut case = Case::refused(name, request);
        case = case.tolerates(&[&[200]], After::Closed);
        case
    };
    vec![
        both("length-and-coding", post("Content-Length: 5\r\nTransfer-Encoding: chunked", HELLO)),
        both("coding-and-length", post("Transfer-Encoding: chunked\r\nContent-Length: 5", HELLO)),
        both(
            "length-beyond-chunks",
            post("Content-Length: 40\r\nTransfer-Encoding: chunked", &format!("{EMPTY}{tail}")),
        ),
        both(
            "chunks-beyond-length",
            post(
                "Content-Length: 4\r\nTransfer-Encoding: chunked",
                &format!("{:x}\r\n{tail}\r\n0\r\n\r\n", tail.len()),
            ),
        ),
        both("length-0-and-coding", post("Content-Length: 0\r\nTransfer-Encoding: chunked", HELLO)),
        both(
            "length-and-coding-in-get",
            format!(
                "GET /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\
                 Transfer-Encoding: chunked\r\n\r\n{HELLO}"
            ),
        ),
        Case::refused(
            "length-and-unknown-coding",
            post("Content-Length: 5\r\nTransfer-Encoding: xchunked", "hello"),
        )
        .statuses(&[400, 501]),
        Case::refused(
            "coding-in-1.0",
            format!(
                "POST /echo HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\
                 Transfer-Encoding: chunked\r\n\r\n{HELLO}"
            ),
        )
        .tolerates(&[&[200, 501]], After::Closed),
    ]
}

/// Codings that can't be decoded here, or that leave the end of the request open.
fn unknown() -> Vec<Case> {
    let wrong = [
        ("coding-unknown", "Transfer-Encoding: lzma"),
        ("coding-identity", "Transfer-Encoding: identity"),
        ("coding-gzip-only", "Transfer-Encoding: gzip"),
        ("coding-chunked-not-last", "Transfer-Encoding: chunked, gzip"),
        ("coding-chunked-twice", "Transfer-Encoding: chunked, chunked"),
        ("coding-chunked-on-two-lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        ("coding-identity-after-chunked", "Transfer-Encoding: chunked, identity"),
        (
            "coding-identity-on-another-line",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        ),
        ("coding-unknown-on-another-line", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x"),
        ("coding-separated-by-space", "Transfer-Encoding: x chunked"),
    ];
    let mut cases = wrong
        .map(|(name, fields)| Case::refused(name, post(fields, HELLO)).statuses(&[400, 501]))
        .to_vec();
    cases.push(
        Case::refused("coding-gzip-then-chunked", post("Transfer-Encoding: gzip, chunked", HELLO))
            .statuses(&[400, 415, 501])
            .tolerates(&[&[200]], After::Any),
    );
    cases
}

/// Returns cases that look like `chunked` to some.
fn spelling() -> Vec<Case> {
    let wrong = [
        ("coding-with-prefix", "Transfer-Encoding: xchunked"),
        ("coding-with-suffix", "Transfer-Encoding: chunkedx"),
        ("coding-quoted", "Transfer-Encoding: \"chunked\""),
        ("coding-with-vertical-tab", "Transfer-Encoding: \x0bchunked"),
        ("coding-with-form-feed", "Transfer-Encoding: chunked\x0c"),
        ("coding-with-nul", "Transfer-Encoding: chunked\0"),
        ("coding-with-bare-cr", "Transfer-Encoding: chunked\rx"),
        ("coding-with-high-byte", "Transfer-Encoding: chun\u{212a}ed"),
        ("coding-in-brackets", "Transfer-Encoding: [chunked]"),
        ("coding-with-semicolon", "Transfer-Encoding: chunked;"),
        ("coding-name-with-space", "Transfer-Encoding : chunked"),
        ("coding-name-with-control-byte", "Transfer-Encoding\x0b: chunked"),
    ];
    let mut cases = wrong
        .map(|(name, fields)| Case::refused(name, post(fields, HELLO)).statuses(&[400, 501]))
        .to_vec();
    // An empty list element is to be ignored (RFC 9110 §5.6.1.2), but many refuse it here.
    for (name, fields) in [
        ("coding-after-comma", "Transfer-Encoding: ,chunked"),
        ("coding-before-comma", "Transfer-Encoding: chunked,"),
        ("coding-empty", "Transfer-Encoding:"),
    ] {
        cases.push(Case::either(name, post(fields, HELLO)).statuses(&[400, 501]));
    }
    cases.push(
        Case::accepted(
            "coding-with-underscore-is-no-coding",
            post("Content-Length: 5\r\nTransfer_Encoding: chunked", "hello"),
        )
        .content("hello")
        .or(&[&[400]], After::Closed),
    );
    cases
}
