//! RFC 9112 §9: persistence, pipelining, the end of a connection.

use crate::{After, Case};

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    [persistence(), pipelining(), upgrade()].concat()
}

fn get(version: &str, fields: &str) -> String {
    format!("GET /ping HTTP/{version}\r\nHost: a\r\n{fields}\r\n")
}

fn persistence() -> Vec<Case> {
    vec![
        Case::accepted("stays-open", get("1.1", "")).content("pong"),
        Case::accepted("close", get("1.1", "Connection: close\r\n"))
            .after(After::Closed)
            .field("connection", "close")
            .content("pong"),
        Case::accepted("close-in-any-case", get("1.1", "connection: CLOSE\r\n"))
            .after(After::Closed),
        Case::accepted("close-in-list", get("1.1", "Connection: x, close ,y\r\n"))
            .after(After::Closed),
        Case::accepted(
            "close-on-second-line",
            get("1.1", "Connection: x\r\nConnection: close\r\n"),
        )
        .after(After::Closed),
        Case::accepted("close-wins", get("1.1", "Connection: keep-alive, close\r\n"))
            .after(After::Closed),
        Case::accepted("close-as-part-of-a-word", get("1.1", "Connection: closer\r\n")),
        Case::accepted("keep-alive-in-1.1", get("1.1", "Connection: keep-alive\r\n")),
        Case::accepted("closes-in-1.0", get("1.0", "")).after(After::Closed).content("pong"),
        Case::accepted("keep-alive-in-1.0", get("1.0", "Connection: keep-alive\r\n"))
            .field("connection", "keep-alive")
            .content("pong")
            .tolerates(&[&[200]], After::Closed),
        Case::accepted("close-in-1.0", get("1.0", "Connection: keep-alive, close\r\n"))
            .after(After::Closed),
        Case::accepted(
            "nothing-after-close",
            get("1.1", "Connection: close\r\n") + &get("1.1", ""),
        )
        .after(After::Closed),
        Case::accepted("nothing-after-1.0", get("1.0", "") + &get("1.1", "")).after(After::Closed),
        Case::accepted(
            "close-with-content",
            "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        )
        .after(After::Closed)
        .content("hello"),
        Case::accepted("content-in-1.0", "POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello")
            .after(After::Closed)
            .content("hello"),
        Case::accepted(
            "connection-names-host",
            "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n",
        )
        .or(&[&[400]], After::Any),
    ]
}

fn pipelining() -> Vec<Case> {
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n0\r\n\r\n";
    let echo = |size: usize| format!("GET /echo?size={size} HTTP/1.1\r\nHost: a\r\n\r\n");
    let twenty: &[&[u16]] = &[&[200u16] as &[u16]; 20];
    vec![
        Case::accepted("pipelined-two", get("1.1", "") + &get("1.1", ""))
            .answers(&[&[200], &[200]])
            .content("pong"),
        Case::accepted("pipelined-twenty", (1..=20).map(echo).collect::<String>())
            .answers(twenty)
            .content("x".repeat(20)),
        Case::accepted("pipelined-posts", [post, chunked, post].concat())
            .answers(&[&[200], &[200], &[200]])
            .content("hello"),
        Case::accepted("pipelined-post-and-get", post.to_owned() + &get("1.1", ""))
            .answers(&[&[200], &[200]])
            .content("pong"),
        Case::accepted(
            "pipelined-head",
            "HEAD /ping HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + &get("1.1", ""),
        )
        .answers(&[&[200], &[200]])
        .heads(&[0])
        .content("pong"),
        Case::accepted(
            "pipelined-unknown-path",
            "GET /nobody HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + &get("1.1", ""),
        )
        .answers(&[&[404], &[200]])
        .content("pong"),
        Case::accepted(
            "pipelined-then-refused",
            get("1.1", "") + "GET /ping HTTP/1.1\r\nHost : a\r\n\r\n",
        )
        .answers(&[&[200], &[400]])
        .after(After::Closed),
        Case::accepted("pipelined-then-half-closed", get("1.1", "") + &get("1.1", ""))
            .answers(&[&[200], &[200]])
            .half_closed()
            .after(After::Closed)
            .content("pong"),
    ]
}

/// RFC 9110 §7.8: an upgrade that the server doesn't offer is no mistake.
fn upgrade() -> Vec<Case> {
    vec![
        Case::accepted(
            "upgrade-h2c-ignored",
            get(
                "1.1",
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                 HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            ),
        )
        .content("pong"),
        Case::accepted("upgrade-unknown", get("1.1", "Connection: upgrade\r\nUpgrade: x/1\r\n"))
            .content("pong"),
        Case::accepted("upgrade-without-connection", get("1.1", "Upgrade: websocket\r\n"))
            .content("pong"),
        Case::accepted("upgrade-in-1.0", get("1.0", "Connection: upgrade\r\nUpgrade: x\r\n"))
            .after(After::Closed)
            .content("pong"),
    ]
}
