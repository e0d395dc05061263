//! RFC 9110 §13: conditional requests, of a file that was modified at the beginning of 2020.

use crate::{After, Case};

const BEFORE: &str = "Tue, 31 Dec 2019 23:59:59 GMT";
const THEN: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
const AFTER: &str = "Wed, 01 Jan 2020 00:00:01 GMT";

fn request(method: &str, fields: &str) -> String {
    format!("{method} /files/a.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")
}

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    let get = |fields: &str| request("GET", fields);
    let sent = |name, fields: &str| Case::accepted(name, get(fields)).content("0123456789");
    let status = |name, fields: &str, status| Case::accepted(name, get(fields)).statuses(&[status]);
    let failed = |name, fields: &str| status(name, fields, 412).after(After::Any);
    vec![
        sent("validators", "Accept: */*").field("last-modified", THEN).field("etag", ""),
        sent("if-match-any", "If-Match: *"),
        failed("if-match-other", "If-Match: \"other\""),
        failed("if-match-weak-other", "If-Match: W/\"other\""),
        status("if-none-match-any", "If-None-Match: *", 304).field("etag", ""),
        sent("if-none-match-other", "If-None-Match: \"other\", W/\"another\""),
        Case::accepted("if-none-match-of-head", request("HEAD", "If-None-Match: *"))
            .statuses(&[304])
            .heads(&[0]),
        status("if-modified-since-then", &format!("If-Modified-Since: {THEN}"), 304)
            .field("etag", ""),
        status("if-modified-since-after", &format!("If-Modified-Since: {AFTER}"), 304),
        sent("if-modified-since-before", &format!("If-Modified-Since: {BEFORE}")),
        status(
            "if-modified-since-in-rfc850-form",
            "If-Modified-Since: Wednesday, 01-Jan-20 00:00:00 GMT",
            304,
        ),
        status(
            "if-modified-since-in-asctime-form",
            "If-Modified-Since: Wed Jan  1 00:00:00 2020",
            304,
        ),
        sent("if-modified-since-no-date", "If-Modified-Since: yesterday"),
        sent("if-unmodified-since-then", &format!("If-Unmodified-Since: {THEN}")),
        sent("if-unmodified-since-after", &format!("If-Unmodified-Since: {AFTER}")),
        failed("if-unmodified-since-before", &format!("If-Unmodified-Since: {BEFORE}")),
        sent("if-unmodified-since-no-date", "If-Unmodified-Since: yesterday"),
        sent(
            "if-none-match-counts-before-the-date",
            &format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {THEN}"),
        ),
        sent(
            "if-match-counts-before-the-date",
            &format!("If-Match: *\r\nIf-Unmodified-Since: {BEFORE}"),
        ),
        failed("if-match-counts-before-if-none-match", "If-Match: \"other\"\r\nIf-None-Match: *"),
        Case::accepted(
            "conditions-about-nothing",
            "GET /files/missing HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
        )
        .statuses(&[404]),
    ]
}
