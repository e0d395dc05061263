//! RFC 9110 §14: ranges of a file of ten digits.

use crate::Case;

const THEN: &str = "Wed, 01 Jan 2020 00:00:00 GMT";

fn request(method: &str, fields: &str) -> String {
    format!("{method} /files/a.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")
}

fn part(name: &'static str, range: &str, content: &str, content_range: &'static str) -> Case {
    Case::accepted(name, request("GET", &format!("Range: {range}")))
        .statuses(&[206])
        .content(content)
        .field("content-range", content_range)
}

/// A range that can't be read: it is ignored, or rejected (§14.2).
fn invalid(name: &'static str, range: &str) -> Case {
    Case::accepted(name, request("GET", &format!("Range: {range}")))
        .statuses(&[200, 400, 416])
        .content("0123456789")
}

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    let unsatisfied = |name, range: &str| {
        Case::accepted(name, request("GET", &format!("Range: {range}")))
            .statuses(&[416])
            .field("content-range", "bytes */10")
    };
    let with_condition = |name, condition: &str| {
        let fields = format!("Range: bytes=2-4\r\nIf-Range: {condition}");
        Case::accepted(name, request("GET", &fields))
    };
    vec![
        Case::accepted("accept-ranges", request("GET", "Accept: */*"))
            .field("accept-ranges", "bytes")
            .content("0123456789"),
        part("range-first-byte", "bytes=0-0", "0", "bytes 0-0/10"),
        part("range-inside", "bytes=2-4", "234", "bytes 2-4/10"),
        part("range-open", "bytes=7-", "789", "bytes 7-9/10"),
        part("range-suffix", "bytes=-3", "789", "bytes 7-9/10"),
        part("range-beyond-the-end", "bytes=8-99", "89", "bytes 8-9/10"),
        part("range-suffix-beyond-the-start", "bytes=-99", "0123456789", "bytes 0-9/10"),
        part("range-last-of-64-bits", "bytes=8-18446744073709551615", "89", "bytes 8-9/10"),
        part("range-unit-in-other-case", "Bytes=2-4", "234", "bytes 2-4/10"),
        Case::accepted("range-of-several", request("GET", "Range: bytes=0-1, -2"))
            .statuses(&[206])
            .field("content-type", ""),
        unsatisfied("range-from-the-end", "bytes=10-"),
        unsatisfied("range-far-beyond", "bytes=100-200"),
        unsatisfied("range-suffix-of-nothing", "bytes=-0"),
        invalid("range-backwards", "bytes=5-2"),
        invalid("range-without-numbers", "bytes=-"),
        invalid("range-of-letters", "bytes=a-b"),
        invalid("range-without-unit", "2-4"),
        Case::accepted("range-in-other-unit", request("GET", "Range: lines=2-4"))
            .content("0123456789"),
        Case::accepted("range-of-head", request("HEAD", "Range: bytes=2-4"))
            .heads(&[0])
            .statuses(&[200])
            .tolerates(&[&[206]], crate::After::Open),
        with_condition("if-range-date", THEN).statuses(&[206]).content("234"),
        with_condition("if-range-other-date", "Tue, 31 Dec 2019 23:59:59 GMT")
            .content("0123456789"),
        with_condition("if-range-other-tag", "\"other\"").content("0123456789"),
        with_condition("if-range-weak-tag", "W/\"other\"").content("0123456789"),
        Case::accepted(
            "range-of-what-the-client-has",
            request("GET", "Range: bytes=2-4\r\nIf-None-Match: *"),
        )
        .statuses(&[304]),
    ]
}
