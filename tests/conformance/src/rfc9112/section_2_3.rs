//! RFC 9112 §2.3: the version.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [known(), unknown()].concat()
}

fn known() -> Vec<Case> {
    vec![
        Case::accepted("version-1.0", "GET /ping HTTP/1.0\r\nHost: a\r\n\r\n")
            .after(After::Closed)
            .content("pong"),
        Case::accepted("version-1.0-without-host", "GET /ping HTTP/1.0\r\n\r\n")
            .after(After::Closed)
            .content("pong"),
        Case::accepted("version-1.9", "GET /ping HTTP/1.9\r\nHost: a\r\n\r\n")
            .or(&[&[505]], After::Any),
    ]
}

fn unknown() -> Vec<Case> {
    let wrong = [
        ("version-lower-case", "http/1.1"),
        ("version-mixed-case", "Http/1.1"),
        ("version-without-minor", "HTTP/1"),
        ("version-without-minor-digit", "HTTP/1."),
        ("version-without-slash", "HTTP1.1"),
        ("version-three-parts", "HTTP/1.1.1"),
        ("version-two-digits", "HTTP/1.10"),
        ("version-leading-zero", "HTTP/01.1"),
        ("version-letter", "HTTP/1.x"),
        ("version-comma", "HTTP/1,1"),
        ("version-other-protocol", "HTTQ/1.1"),
        ("version-https", "HTTPS/1.1"),
        ("version-space", "HTTP/ 1.1"),
        ("version-space-inside", "HTTP/1. 1"),
        ("version-negative", "HTTP/-1.1"),
    ];
    let wrong = wrong.map(|(name, version)| {
        Case::refused(name, format!("GET /ping {version}\r\nHost: a\r\n\r\n")).statuses(&[400, 505])
    });
    let mut cases = wrong.to_vec();
    for (name, version) in
        [("version-2.0", "HTTP/2.0"), ("version-3.0", "HTTP/3.0"), ("version-0.9", "HTTP/0.9")]
    {
        let request = format!("GET /ping {version}\r\nHost: a\r\n\r\n");
        cases.push(Case::refused(name, request).statuses(&[505, 400]));
    }
    cases.push(Case::refused("simple-request", "GET /ping\r\n\r\n"));
    cases
}
