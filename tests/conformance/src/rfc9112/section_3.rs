//! RFC 9112 §3, §3.1: the request line and the method.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [spaces(), methods(), lengths()].concat()
}

fn with_line(line: &str) -> String {
    format!("{line}\r\nHost: a\r\n\r\n")
}

fn spaces() -> Vec<Case> {
    vec![
        Case::ambiguous("two-spaces-before-target", with_line("GET  /ping HTTP/1.1")),
        Case::ambiguous("two-spaces-before-version", with_line("GET /ping  HTTP/1.1")),
        Case::ambiguous("tab-before-target", with_line("GET\t/ping HTTP/1.1")),
        Case::ambiguous("tab-before-version", with_line("GET /ping\tHTTP/1.1")),
        Case::ambiguous("vertical-tab-before-target", with_line("GET\x0b/ping HTTP/1.1")),
        Case::ambiguous("form-feed-before-version", with_line("GET /ping\x0cHTTP/1.1")),
        Case::ambiguous("space-after-version", with_line("GET /ping HTTP/1.1 ")),
        Case::ambiguous("space-before-method", with_line(" GET /ping HTTP/1.1")),
        Case::ambiguous("tab-before-method", with_line("\tGET /ping HTTP/1.1")),
        Case::refused("space-in-target", with_line("GET /pi ng HTTP/1.1")).statuses(&[400, 301]),
        Case::refused("no-target", with_line("GET HTTP/1.1")),
        Case::refused("empty-target", with_line("GET  HTTP/1.1")),
        Case::refused("no-method", with_line("/ping HTTP/1.1")),
        Case::refused("words-after-version", with_line("GET /ping HTTP/1.1 please")),
    ]
}

fn methods() -> Vec<Case> {
    vec![
        Case::refused("method-with-parenthesis", with_line("GE(T /ping HTTP/1.1")),
        Case::refused("method-with-colon", with_line("GET: /ping HTTP/1.1")),
        Case::refused("method-with-slash", with_line("GE/T /ping HTTP/1.1")),
        Case::refused("method-with-high-byte", with_line("G\u{c9}T /ping HTTP/1.1")),
        Case::accepted("method-lower-case", with_line("get /ping HTTP/1.1"))
            .statuses(&[405, 501])
            .after(After::Any)
            .tolerates(&[&[400, 404]], After::Any),
        Case::accepted("method-unknown", with_line("BREW /ping HTTP/1.1"))
            .statuses(&[405, 501])
            .after(After::Any)
            .tolerates(&[&[200, 400, 404]], After::Any),
        Case::accepted("method-with-odd-token", with_line("A!#$%&'*+-.^_`|~9 /ping HTTP/1.1"))
            .statuses(&[405, 501])
            .after(After::Any)
            .tolerates(&[&[200, 400, 404]], After::Any),
        Case::accepted("method-long", with_line(&format!("{} /ping HTTP/1.1", "A".repeat(2000))))
            .statuses(&[400, 405, 414, 501])
            .after(After::Any)
            .tolerates(&[&[200, 404]], After::Any),
    ]
}

fn lengths() -> Vec<Case> {
    let line = |bytes: usize| {
        let padding = bytes - "GET /ping? HTTP/1.1\r\n".len();
        with_line(&format!("GET /ping?{} HTTP/1.1", "q".repeat(padding)))
    };
    vec![
        Case::accepted("request-line-8000-bytes", line(8000)).content("pong"),
        Case::refused("request-line-80000-bytes", line(80_000)).statuses(&[414]),
        Case::refused("request-line-without-end", "GET /".to_owned() + &"a".repeat(1_000_000))
            .statuses(&[414])
            .tolerates(&[&[400, 431]], After::Closed),
    ]
}
