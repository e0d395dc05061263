//! RFC 9110 §10.1.1: Expect.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    let post = |version: &str, expect: &str, length: &str| {
        format!("POST /echo HTTP/{version}\r\nHost: a\r\nExpect: {expect}\r\n{length}\r\n\r\n")
    };
    vec![
        Case::accepted("continue", post("1.1", "100-continue", "Content-Length: 5"))
            .then("hello")
            .content("hello"),
        Case::accepted("continue-in-any-case", post("1.1", "100-Continue", "Content-Length: 5"))
            .then("hello")
            .content("hello"),
        Case::accepted(
            "continue-chunked",
            post("1.1", "100-continue", "Transfer-Encoding: chunked"),
        )
        .then("5\r\nhello\r\n0\r\n\r\n")
        .content("hello"),
        Case::accepted(
            "continue-not-awaited",
            post("1.0", "100-continue", "Content-Length: 5") + "hello",
        )
        .after(After::Closed)
        .content("hello"),
        Case::accepted(
            "continue-without-content",
            "GET /ping HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        )
        .content("pong"),
        Case::accepted("expectation-unknown", post("1.1", "tea", "Content-Length: 5") + "hello")
            .statuses(&[417])
            .after(After::Any)
            .tolerates(&[&[200]], After::Open),
    ]
}
