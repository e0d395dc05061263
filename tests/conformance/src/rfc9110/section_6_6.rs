//! RFC 9110 §6.6, §8: what every response says about itself.

use crate::Case;

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    vec![
        Case::accepted("date", "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").field("date", ""),
        Case::accepted("date-of-404", "GET /nobody HTTP/1.1\r\nHost: a\r\n\r\n")
            .statuses(&[404])
            .field("date", ""),
        Case::accepted("length-of-get", "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("content-length", "4")
            .content("pong"),
        Case::accepted("type-of-get", "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("content-type", "")
            .content("pong"),
        Case::accepted("length-of-large-get", "GET /echo?size=100000 HTTP/1.1\r\nHost: a\r\n\r\n")
            .content("x".repeat(100_000)),
        Case::accepted("empty-get", "GET /echo?size=0 HTTP/1.1\r\nHost: a\r\n\r\n")
            .field("content-length", "0")
            .content(""),
    ]
}
