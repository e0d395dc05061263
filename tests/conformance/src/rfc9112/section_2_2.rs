//! RFC 9112 §2.2: message parsing. Lines, and what is no line.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [lines(), bare_cr(), around(), ends()].concat()
}

fn lines() -> Vec<Case> {
    vec![
        Case::accepted("plain-get", "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").content("pong"),
        Case::ambiguous("bare-lf-everywhere", "GET /ping HTTP/1.1\nHost: a\n\n"),
        Case::ambiguous("bare-lf-after-request-line", "GET /ping HTTP/1.1\nHost: a\r\n\r\n"),
        Case::ambiguous("bare-lf-between-fields", "GET /ping HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n"),
        Case::ambiguous("bare-lf-as-empty-line", "GET /ping HTTP/1.1\r\nHost: a\r\n\n"),
        Case::ambiguous(
            "bare-lf-hides-a-field",
            "POST /echo HTTP/1.1\r\nHost: a\r\nX-A: b\nContent-Length: 0\r\n\r\n",
        ),
    ]
}

fn bare_cr() -> Vec<Case> {
    vec![
        Case::ambiguous(
            "bare-cr-in-field-value",
            "GET /ping HTTP/1.1\r\nHost: a\r\nX-A: b\rc\r\n\r\n",
        ),
        Case::refused("bare-cr-in-field-name", "GET /ping HTTP/1.1\r\nHost: a\r\nX\r-A: b\r\n\r\n"),
        Case::refused("bare-cr-in-target", "GET /pi\rng HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case::refused("bare-cr-ends-lines", "GET /ping HTTP/1.1\rHost: a\r\r\n\r\n"),
        Case::refused("bare-cr-in-version", "GET /ping HTTP/1.1\r \r\nHost: a\r\n\r\n"),
        Case::ambiguous("bare-cr-before-crlf", "GET /ping HTTP/1.1\r\nHost: a\r\nX-A: b\r\r\n\r\n"),
        Case::refused("nul-in-target", "GET /pi\0ng HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case::refused("nul-in-field-name", "GET /ping HTTP/1.1\r\nHost: a\r\nX\0A: b\r\n\r\n"),
        Case::ambiguous("nul-in-field-value", "GET /ping HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n"),
    ]
}

/// Returns what stands between messages.
fn around() -> Vec<Case> {
    vec![
        Case::accepted("empty-line-before", "\r\nGET /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case::either("empty-lines-before", "\r\n\r\n\r\nGET /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case::accepted(
            "empty-line-after-content",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\r\n\
             GET /ping HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .answers(&[&[200], &[200]])
        .content("pong"),
        Case::ambiguous(
            "white-space-before-first-field",
            "GET /ping HTTP/1.1\r\n X-A: b\r\nHost: a\r\n\r\n",
        ),
        Case::ambiguous(
            "tab-before-first-field",
            "GET /ping HTTP/1.1\r\n\tX-A: b\r\nHost: a\r\n\r\n",
        ),
        Case::ambiguous("white-space-line-before", " \r\nGET /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case::refused("no-request", "HELLO\r\n\r\n"),
        Case::refused("response-as-request", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Case::refused(
            "tls-on-cleartext",
            b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n".as_slice(),
        )
        .or(&[], After::Closed),
        Case::refused("control-bytes", b"\x01\x02\x03\x04 \x05\r\n\r\n".as_slice()),
        Case::refused("byte-order-mark", "\u{feff}GET /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
    ]
}

/// Clients that end early.
fn ends() -> Vec<Case> {
    vec![
        Case::accepted("half-close-after-request", "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
            .half_closed()
            .after(After::Closed)
            .content("pong"),
        Case::refused("half-close-in-request-line", "GET /ping HT")
            .half_closed()
            .or(&[&[408]], After::Closed)
            .or(&[], After::Closed),
        Case::refused("half-close-in-head", "GET /ping HTTP/1.1\r\nHost: a\r\n")
            .half_closed()
            .or(&[&[408]], After::Closed)
            .or(&[], After::Closed),
        Case::refused("half-close-before-request", "")
            .half_closed()
            .answers(&[])
            .after(After::Closed),
    ]
}
