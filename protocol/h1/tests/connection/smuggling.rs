//! RFC 9112 §11.2: whatever could be read in two ways is refused, and ends the connection.

use crate::wire::serve;

/// Request that would be smuggled behind each request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// The request is refused with this status; nothing behind it is read, however the bytes are split.
fn refused(status: u16, request: &str) {
    let bytes = format!("{request}{SMUGGLED}");
    for piece in [bytes.len(), 1, 2, 3, 7] {
        let (log, sent) = serve(bytes.as_bytes(), piece);
        let expected = format!("1 rejected {status}");
        assert!(log.contains(&expected), "{request:?} by {piece}: {log:?}");
        assert_eq!(log.last().unwrap(), "closed bad-message", "{request:?}");
        assert!(sent.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {sent}");
        assert!(sent.contains("connection: close\r\n"), "{request:?}: {sent}");
        assert_eq!(sent.matches("HTTP/1.1").count(), 1, "{request:?}: {sent}");
    }
}

fn with_fields(fields: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn length_and_coding() {
    refused(400, &with_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"));
    refused(400, &with_fields("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"));
    refused(400, &with_fields("Transfer-Encoding: chunked\r\nContent-Length: x\r\n"));
}

#[test]
fn content_lengths() {
    for value in [
        "",
        "x",
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5,5",
        "5, 5",
        "5;",
        "1e1",
        "5.0",
        "\u{664}",
        "9223372036854775808",
        "18446744073709551621",
        "00000000000000000005",
    ] {
        refused(400, &with_fields(&format!("Content-Length: {value}\r\n")));
    }
    refused(400, &with_fields("Content-Length: 5\r\nContent-Length: 5\r\n"));
    refused(400, &with_fields("Content-Length: 5\r\ncontent-length: 6\r\n"));
}

#[test]
fn transfer_codings() {
    for value in [
        "",
        "identity",
        "gzip",
        "xchunked",
        "chunkedx",
        "chunked, identity",
        "chunked, chunked",
        "chunked,",
        ",chunked",
        "chunked;q=1",
        "\"chunked\"",
        "chunked chunked",
        "chun\tked",
        "chunked\u{b}",
        "identity, gzip",
    ] {
        refused(400, &with_fields(&format!("Transfer-Encoding: {value}\r\n")));
    }
    refused(400, &with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"));
    refused(400, &with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"));
    refused(400, &with_fields("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"));
    refused(400, &with_fields("Transfer-Encoding: gzip, chunked\r\n"));
    refused(400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

#[test]
fn names_and_colons() {
    for line in [
        "Content-Length : 5",
        "Content-Length\t: 5",
        "Transfer-Encoding : chunked",
        " Content-Length: 5",
        "\tContent-Length: 5",
        "Content Length: 5",
        "Content-Length",
        ": 5",
        "Content\u{0}-Length: 5",
        "Content-Length\u{e4}: 5",
        "X(: 5",
        "X: 5\r\n folded",
        "X: 5\r\n\tfolded",
    ] {
        refused(400, &with_fields(&format!("{line}\r\n")));
    }
}

#[test]
fn line_ends() {
    for request in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\rb\r\nHost: a\r\n\r\n",
        "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        refused(400, request);
    }
}

#[test]
fn control_bytes() {
    for byte in ["\0", "\u{1}", "\u{7f}", "\u{b}", "\u{1b}"] {
        refused(400, &with_fields(&format!("X: a{byte}b\r\n")));
        refused(400, &format!("GET /{byte} HTTP/1.1\r\nHost: a\r\n\r\n"));
        refused(400, &format!("GE{byte}T / HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
}

#[test]
fn hosts() {
    let with_host = |lines: &str| format!("GET / HTTP/1.1\r\n{lines}\r\n");
    refused(400, &with_host(""));
    refused(400, &with_host("Host: a\r\nHost: a\r\n"));
    refused(400, &with_host("Host: a\r\nhost: b\r\n"));
    for host in [
        "", "a b", "a/b", "a:b", "a:1:2", "a:65536", "[::1", "[x]", "user@a", "http://a", "a?b",
        "a#b", "\u{e4}",
    ] {
        refused(400, &with_host(&format!("Host: {host}\r\n")));
    }
    refused(400, "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n");
    refused(400, "GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n");
    refused(400, "GET http://a/ HTTP/1.1\r\n\r\n");
    refused(400, "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n");
}

#[test]
fn request_lines() {
    for request in [
        "GET /",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/ HTTP/1.1",
        " GET / HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET /a#b HTTP/1.1",
        "GET /\u{e4} HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET a:443 HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "GET http://user@a/ HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "CONNECT a HTTP/1.1",
        "OPTIONS a HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1,1",
        "GET / HTTP/11",
        "GET / HTTP/1.10",
        "GET / HTTP /1.1",
        "GET / HTTPS/1.1",
        "GET / 1.1",
        "GET",
        "HTTP/1.1 200 OK",
    ] {
        refused(400, &format!("{request}\r\nHost: a\r\n\r\n"));
    }
    refused(505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n");
    refused(505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n");
    refused(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

#[test]
fn chunks() {
    for chunks in [
        "x\r\nabc\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "-1\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nab\r\n0\r\n\r\n",
        "3;a\nabc\r\n0\r\n\r\n",
        "3;\r\nabc\r\n0\r\n\r\n",
        "3\r\rabc\r\n0\r\n\r\n",
        "00000000000000003\r\nabc\r\n0\r\n\r\n",
        "0\r\nX: a\nY: b\r\n\r\n",
        "0\r\n X: a\r\n\r\n",
        "0\r\nX : a\r\n\r\n",
        "0\r\n\n",
        "0\r\n\rX",
    ] {
        refused(400, &(with_fields("Transfer-Encoding: chunked\r\n") + chunks));
    }
}

#[test]
fn connect_has_no_content() {
    refused(400, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 5\r\n\r\n");
    refused(400, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nTransfer-Encoding: chunked\r\n\r\n");
}

#[test]
fn what_is_not_ambiguous_is_served() {
    for (request, seen) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET a/ end"),
        ("GET / HTTP/1.9\r\nHost: a\r\n\r\n", "GET a/ end"),
        ("GET / HTTP/1.0\r\n\r\n", "GET -/ end"),
        ("\r\n\r\nGET /b HTTP/1.1\r\nHOST:a\r\n\r\n", "GET a/b end"),
        ("GET http://a HTTP/1.1\r\nHost: A\r\n\r\n", "GET http://a/ end"),
        // The target holds (RFC 9112 §3.2.2).
        ("GET http://a HTTP/1.1\r\nHost: b\r\n\r\n", "GET http://a/ end"),
        ("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "OPTIONS [::1]:80* end"),
        ("X-1 /%00?a=|\" HTTP/1.1\r\nHost: a\r\n\r\n", "X-1 a/%00?a=|\" end"),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            "PUT a/ [content-length: 0] end",
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\t \u{e4}\ta \t\r\n\r\n", "GET a/ [x: \u{e4}\ta] end"),
        ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n", "GET a/ [upgrade: h2c] end"),
    ] {
        for piece in [request.len(), 1] {
            let (log, sent) = serve(request.as_bytes(), piece);
            assert_eq!(log.first().unwrap(), &format!("1 {seen}"), "{request}");
            assert!(sent.starts_with("HTTP/1.1 200 OK\r\n"), "{request}: {sent}");
        }
    }
}
