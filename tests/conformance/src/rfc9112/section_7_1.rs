//! RFC 9112 §7.1: the chunked transfer coding.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [fine(), sizes(), line_ends(), extensions(), trailers(), short()].concat()
}

fn post(content: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{content}")
}

fn fine() -> Vec<Case> {
    let fine = [
        ("chunks-several", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
        ("chunk-size-lower-case", "b\r\nhello world\r\n0\r\n\r\n", "hello world"),
        ("chunk-size-upper-case", "B\r\nhello world\r\n0\r\n\r\n", "hello world"),
        ("chunk-size-with-leading-zeros", "0005\r\nhello\r\n0\r\n\r\n", "hello"),
        ("chunk-last-with-zeros", "5\r\nhello\r\n000\r\n\r\n", "hello"),
        ("chunk-extension", "5;a=b\r\nhello\r\n0\r\n\r\n", "hello"),
        ("chunk-extension-without-value", "5;a\r\nhello\r\n0\r\n\r\n", "hello"),
        ("chunk-extension-quoted", "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("chunk-extensions-on-last", "5\r\nhello\r\n0;a=b;c=d\r\n\r\n", "hello"),
        ("trailer", "5\r\nhello\r\n0\r\nX-A: b\r\n\r\n", "hello"),
        ("trailers", "5\r\nhello\r\n0\r\nX-A: b\r\nX-B:\r\n\r\n", "hello"),
        ("chunk-with-crlf-inside", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"),
        ("chunk-like-last-inside", "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n"),
    ];
    fine.map(|(name, content, read)| Case::accepted(name, post(content)).content(read)).to_vec()
}

fn sizes() -> Vec<Case> {
    let wrong = [
        ("chunk-size-with-plus", "+5"),
        ("chunk-size-negative", "-5"),
        ("chunk-size-with-0x", "0x5"),
        ("chunk-size-with-underscore", "0_5"),
        ("chunk-size-letter", "g"),
        ("chunk-size-empty", ""),
        ("chunk-size-after-space", " 5"),
        ("chunk-size-with-space-inside", "0 5"),
        ("chunk-size-with-point", "5.0"),
        ("chunk-size-with-comma", "5,5"),
        ("chunk-size-with-nul", "5\0"),
        ("chunk-size-2^64-plus-5", "10000000000000005"),
        ("chunk-size-beyond-all", "fffffffffffffffffffffffffffffff5"),
    ];
    let mut cases = wrong
        .map(|(name, size)| Case::refused(name, post(&format!("{size}\r\nhello\r\n0\r\n\r\n"))))
        .to_vec();
    for case in &mut cases {
        // Too large to be counted is also too large.
        *case = case.clone().tolerates(&[&[413]], After::Closed);
    }
    cases.push(Case::ambiguous("chunk-size-before-space", post("5 \r\nhello\r\n0\r\n\r\n")));
    cases.push(Case::ambiguous("chunk-size-before-tab", post("5\t\r\nhello\r\n0\r\n\r\n")));
    let zeros = format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(1000));
    cases.push(Case::ambiguous("chunk-size-of-1000-digits", post(&zeros)));
    cases
}

fn line_ends() -> Vec<Case> {
    let wrong = [
        ("chunk-size-ends-in-lf", "5\nhello\r\n0\r\n\r\n"),
        ("chunk-size-ends-in-cr", "5\rhello\r\n0\r\n\r\n"),
        ("chunk-data-ends-in-lf", "5\r\nhello\n0\r\n\r\n"),
        ("chunk-data-ends-in-cr", "5\r\nhello\r0\r\n\r\n"),
        ("chunk-data-without-end", "5\r\nhello0\r\n\r\n"),
        ("chunk-data-too-long", "5\r\nhelloworld\r\n0\r\n\r\n"),
        ("chunk-data-too-short", "5\r\nhel\r\n0\r\n\r\n"),
        ("chunk-last-ends-in-lf", "5\r\nhello\r\n0\n\r\n"),
        ("chunk-extension-ends-in-lf", "5;a=b\nhello\r\n0\r\n\r\n"),
    ];
    let mut cases = wrong.map(|(name, content)| Case::refused(name, post(content))).to_vec();
    cases
        .push(Case::ambiguous("chunked-content-ends-in-lf", post("5\r\nhello\r\n0\r\n\n\r\n\r\n")));
    cases
}

fn extensions() -> Vec<Case> {
    let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(200_000));
    let many = format!("{}0\r\n\r\n", format!("1;{}\r\nx\r\n", "a".repeat(90)).repeat(5000));
    vec![
        Case::ambiguous("chunk-extension-with-control-byte", post("5;a\x01\r\nhello\r\n0\r\n\r\n")),
        Case::ambiguous("chunk-extension-with-nul", post("5;a\0b\r\nhello\r\n0\r\n\r\n")),
        Case::ambiguous("chunk-extension-with-bare-cr", post("5;a\rb\r\nhello\r\n0\r\n\r\n")),
        Case::refused(
            "chunk-extension-hides-a-line",
            post("5;a\n6\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"),
        ),
        Case::ambiguous("chunk-extension-of-200000-bytes", post(&long))
            .or(&[&[413, 431]], After::Closed),
        Case::ambiguous("chunk-extensions-of-450000-bytes", post(&many))
            .or(&[&[413, 431]], After::Closed),
    ]
}

fn trailers() -> Vec<Case> {
    let many: String = (0..20_000).map(|index| format!("X-{index}: b\r\n")).collect();
    vec![
        Case::ambiguous("trailer-with-space-before-colon", post("0\r\nX-A : b\r\n\r\n")),
        Case::ambiguous("trailer-without-colon", post("0\r\nX-A\r\n\r\n")),
        Case::ambiguous("trailer-folded", post("0\r\nX-A: b\r\n c\r\n\r\n")),
        Case::ambiguous("trailer-ends-in-lf", post("0\r\nX-A: b\n\r\n\r\n")),
        Case::ambiguous("trailer-with-nul", post("0\r\nX-A: b\0\r\n\r\n")),
        Case::ambiguous("trailers-20000", post(&format!("0\r\n{many}\r\n")))
            .or(&[&[413, 431]], After::Closed),
        Case::either(
            "trailer-content-length",
            post("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"),
        ),
        Case::either(
            "trailer-transfer-encoding",
            post("5\r\nhello\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n"),
        ),
    ]
}

fn short() -> Vec<Case> {
    let cut = |name, content: &str| {
        let case = Case::refused(name, post(content)).half_closed();
        case.statuses(&[400, 408]).or(&[], After::Closed)
    };
    vec![
        cut("chunk-cut-short", "5\r\nhel"),
        cut("chunks-without-last", "5\r\nhello\r\n"),
        cut("chunk-size-cut-short", "5"),
        cut("trailers-cut-short", "5\r\nhello\r\n0\r\nX-A: b\r\n"),
    ]
}
