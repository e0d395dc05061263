//! RFC 9110 §9.3, §15.5.6: methods, and which of them a resource allows.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
    vec![
        Case::accepted("head", request("HEAD /ping")).heads(&[0]),
        Case::accepted("head-has-length-of-get", request("HEAD /ping"))
            .heads(&[0])
            .field("content-length", "4"),
        Case::accepted("head-of-large", request("HEAD /echo?size=100000"))
            .heads(&[0])
            .field("content-length", "100000"),
        Case::accepted("head-of-unknown-path", request("HEAD /nobody"))
            .statuses(&[404])
            .heads(&[0]),
        Case::accepted("method-not-allowed", request("DELETE /ping"))
            .statuses(&[405])
            .field("allow", ""),
        Case::accepted(
            "method-not-allowed-with-content",
            "PUT /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        )
        .statuses(&[405])
        .field("allow", "")
        .after(After::Any),
        Case::accepted("options", request("OPTIONS /ping"))
            .statuses(&[200, 204])
            .tolerates(&[&[405]], After::Open),
        Case::accepted("trace", request("TRACE /ping"))
            .statuses(&[405, 501])
            .after(After::Any)
            .tolerates(&[&[400]], After::Any),
    ]
}
