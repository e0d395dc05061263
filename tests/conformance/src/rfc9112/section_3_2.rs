//! RFC 9112 §3.2, RFC 9110 §7.2: the request target and Host.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [host(), host_syntax(), origin_form(), absolute_form(), other_forms()].concat()
}

fn host() -> Vec<Case> {
    vec![
        Case::refused("missing-host", "GET /ping HTTP/1.1\r\n\r\n"),
        Case::refused("missing-host-with-other-fields", "GET /ping HTTP/1.1\r\nX-A: b\r\n\r\n"),
        Case::refused("two-hosts", "GET /ping HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        Case::refused("two-equal-hosts", "GET /ping HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        Case::refused(
            "two-hosts-in-other-case",
            "GET /ping HTTP/1.1\r\nHost: a\r\nX-A: b\r\nhOST: c\r\n\r\n",
        ),
        Case::refused("two-hosts-in-1.0", "GET /ping HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    ]
}

fn host_syntax() -> Vec<Case> {
    let bad = [
        ("host-with-space", "a b"),
        ("host-with-slash", "a/b"),
        ("host-with-user", "user@a"),
        ("host-with-question-mark", "a?b"),
        ("host-with-fragment", "a#b"),
        ("host-with-backslash", "a\\b"),
        ("host-with-bad-escape", "a%zz"),
        ("host-with-high-byte", "a\u{e9}"),
        ("host-port-alpha", "a:http"),
        ("host-two-ports", "a:80:81"),
        ("host-port-negative", "a:-80"),
        ("host-bad-ipv6", "[::1"),
        ("host-ipv6-without-colons", "[1]"),
        ("host-ipv6-with-tail", "[::1]a"),
        ("host-scheme", "http://a"),
        ("host-list-with-space", "a, b"),
    ];
    let good = [
        ("host-with-port", "a:8080"),
        ("host-with-empty-port", "a:"),
        ("host-ipv4", "127.0.0.1:80"),
        ("host-ipv6", "[::1]"),
        ("host-ipv6-with-port", "[2001:db8::1]:443"),
        ("host-upper-case", "EXAMPLE.COM"),
        ("host-with-spaces-around", "  a \t "),
        ("host-with-underscore", "a_b"),
    ];
    let request = |host: &str| format!("GET /ping HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let bad = bad.map(|(name, host)| Case::refused(name, request(host)));
    let good = good.map(|(name, host)| Case::accepted(name, request(host)).content("pong"));
    let mut cases = [bad.as_slice(), good.as_slice()].concat();
    // A URI with an empty host is invalid (RFC 9110 §4.2.1), but Host may be empty where there is none.
    cases.push(Case::either("host-empty", request("")));
    cases
}

fn origin_form() -> Vec<Case> {
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    vec![
        Case::accepted("target-with-query", get("/ping?a=b&c=%20")).content("pong"),
        Case::accepted("target-with-empty-query", get("/ping?")).content("pong"),
        Case::refused("target-without-slash", get("ping")),
        Case::ambiguous("target-with-fragment", get("/ping#top")),
        Case::refused("target-with-control-byte", get("/ping\x01")),
        Case::refused("target-with-delete", get("/ping\x7f")),
        Case::ambiguous("target-with-high-byte", get("/ping?\u{e9}")),
        Case::either("target-with-bad-escape", get("/ping?%zz")),
        Case::either("target-with-backslash", get("/ping?\\")),
        Case::accepted("target-unknown", get("/there/is/no/such/path")).statuses(&[404]),
        Case::accepted("target-above-root", get("/../ping"))
            .statuses(&[200, 400, 404])
            .after(After::Any),
        Case::accepted("target-double-slash", get("//ping"))
            .statuses(&[200, 301, 400, 404])
            .after(After::Any),
    ]
}

fn absolute_form() -> Vec<Case> {
    let get = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    vec![
        Case::accepted("absolute-form", get("http://a/ping", "a")).content("pong"),
        Case::accepted("absolute-form-upper-case-scheme", get("HTTP://a/ping", "a"))
            .content("pong"),
        Case::accepted("absolute-form-with-port", get("http://a:81/ping?b", "a:81"))
            .content("pong"),
        Case::refused("absolute-form-without-host", "GET http://a/ping HTTP/1.1\r\n\r\n"),
        // §3.2.2: the target holds.
        Case::accepted("absolute-form-other-host", get("http://a/ping", "b")).content("pong"),
        Case::ambiguous("absolute-form-with-user", get("http://u@a/ping", "a")),
        Case::refused("absolute-form-with-bad-port", get("http://a:b/ping", "a")),
        Case::refused("absolute-form-without-authority", get("http:///ping", "a")),
        Case::refused("absolute-form-other-scheme", get("ftp://a/ping", "a"))
            .tolerates(&[&[200, 404, 421]], After::Any),
    ]
}

fn other_forms() -> Vec<Case> {
    let request = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    vec![
        Case::accepted("asterisk-form", request("OPTIONS *", "a"))
            .statuses(&[200, 204])
            .tolerates(&[&[400, 404, 405, 501]], After::Any),
        Case::refused("asterisk-form-with-get", request("GET *", "a")),
        Case::refused("authority-form-with-get", request("GET a:80", "a:80")),
        Case::accepted("connect", request("CONNECT a:80", "a:80"))
            .statuses(&[400, 403, 404, 405, 501])
            .after(After::Any),
        Case::refused("connect-with-origin-form", request("CONNECT /ping", "a"))
            .statuses(&[400, 405, 501])
            .after(After::Any),
        Case::refused("connect-without-port", request("CONNECT a", "a"))
            .statuses(&[400, 405, 501])
            .after(After::Any),
    ]
}
