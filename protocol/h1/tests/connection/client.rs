//! RFC 9112 §4, §6.3, §9: the client's side.

use bolide_h1::Limits;
use bolide_semantics::{End, ExchangeId, Misuse};

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);

/// A client that has sent a request with this method.
fn asked(method: &str) -> Wire {
    let mut wire = Wire::client();
    wire.request(method, "/", &[], End::Yes).unwrap();
    wire.sent();
    wire
}

/// Returns what a client that has sent GET reports about these bytes, then about their end.
fn reported(bytes: &str) -> Vec<String> {
    let mut logs = [usize::MAX, 1, 3].into_iter().map(|piece| {
        let mut wire = asked("GET");
        for piece in bytes.as_bytes().chunks(piece.min(bytes.len().max(1))) {
            wire.listen(piece);
        }
        wire.eof();
        wire.listen(b"");
        wire.logged()
    });
    let log = logs.next().unwrap();
    assert!(logs.all(|other| other == log), "{log:?}");
    log
}

#[test]
fn requests_on_the_wire() {
    for (method, path, fields, end, expected) in [
        (
            "GET",
            "/a?b",
            &[("x", "y")][..],
            End::Yes,
            "GET /a?b HTTP/1.1\r\nhost: example:80\r\nx: y\r\n\r\n",
        ),
        ("OPTIONS", "*", &[], End::Yes, "OPTIONS * HTTP/1.1\r\nhost: example:80\r\n\r\n"),
        ("CONNECT", "", &[], End::No, "CONNECT example:80 HTTP/1.1\r\nhost: example:80\r\n\r\n"),
        (
            "POST",
            "/",
            &[],
            End::Yes,
            "POST / HTTP/1.1\r\nhost: example:80\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            "POST",
            "/",
            &[],
            End::No,
            "POST / HTTP/1.1\r\nhost: example:80\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            "PUT",
            "/",
            &[("content-length", "5"), ("host", "b")],
            End::No,
            "PUT / HTTP/1.1\r\nhost: example:80\r\ncontent-length: 5\r\n\r\n",
        ),
        (
            "GET",
            "/",
            &[("upgrade", "websocket"), ("connection", "x")],
            End::No,
            "GET / HTTP/1.1\r\nhost: example:80\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        ),
        (
            "GET",
            "/",
            &[("te", "trailers"), ("connection", "close")],
            End::Yes,
            "GET / HTTP/1.1\r\nhost: example:80\r\nte: trailers\r\nconnection: te, close\r\n\r\n",
        ),
    ] {
        let mut wire = Wire::client();
        assert_eq!(wire.request(method, path, fields, end), Ok(ID));
        assert_eq!(wire.sent(), expected);
    }
}

#[test]
fn bodies_of_requests() {
    let mut wire = Wire::client();
    wire.request("POST", "/", &[], End::No).unwrap();
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    wire.data(ID, "abc", End::No).unwrap();
    wire.trailers(ID, &[("x", "y")]).unwrap();
    assert!(wire.sent().ends_with("\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n"));
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Ok(ExchangeId(2)));
}

#[test]
fn responses_and_their_ends() {
    for (bytes, expected) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            &["1 200 [content-length: 3]", "1 data abc end", "closed eof"][..],
        ),
        (
            "HTTP/1.1 204\r\nContent-Length: 3\r\n\r\n",
            &["1 204 [content-length: 3] end", "closed eof"],
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            &["1 304 [transfer-encoding: chunked] end", "closed eof"],
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n",
            &["1 200 [transfer-encoding: chunked]", "1 data a", "1 trailers [x: y]", "closed eof"],
        ),
        ("HTTP/1.1 200 OK\r\n\r\nabc", &["1 200", "1 data abc end", "closed last"]),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            &["1 200 [content-length: 0] end", "closed last"],
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            &[
                "1 interim 100",
                "1 interim 103 [link: a]",
                "1 200 [content-length: 0] end",
                "closed eof",
            ],
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            &[
                "1 200 [content-length: 3]",
                "1 data ab",
                "1 aborted: the peer ended in the middle of a message",
                "closed truncated",
            ],
        ),
        (
            "HTTP/1.1 200 OK\r\nConte",
            &["1 aborted: the peer ended in the middle of a message", "closed truncated"],
        ),
        ("", &["1 aborted: the peer closed before it responded", "closed eof"]),
    ] {
        assert_eq!(reported(bytes), expected, "{bytes}");
    }
}

#[test]
fn head_has_no_body() {
    let mut wire = asked("HEAD");
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(wire.logged(), ["1 200 [content-length: 3] end"]);
    assert!(wire.connection.is_idle());
}

#[test]
fn response_smuggling() {
    for fields in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "X : y\r\n",
        " X: y\r\n",
        "X: y\r\n z\r\n",
        "X: y\n",
        "X: y\rz\r\n",
    ] {
        let log = reported(&format!("HTTP/1.1 200 OK\r\n{fields}\r\nabc"));
        assert!(log[0].starts_with("1 aborted: "), "{fields}: {log:?}");
        assert_eq!(log[1], "closed bad-message", "{fields}");
    }
    let log = reported("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(log[1], "closed bad-message");
    let log = reported("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    assert_eq!(log, ["1 aborted: protocols were switched without a request", "closed bad-message"]);
}

#[test]
fn unsolicited_bytes_end_the_connection() {
    let log = reported("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(log, ["1 204 end", "closed bad-message"]);
    let mut wire = Wire::client();
    wire.listen(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert_eq!(wire.logged(), ["closed bad-message"]);
}

#[test]
fn pipelined_responses_match_their_requests() {
    let mut wire = Wire::client();
    for number in 0..Limits::default().pipelined_count {
        let method = if number % 2 == 0 { "GET" } else { "HEAD" };
        wire.request(method, "/", &[], End::Yes).unwrap();
    }
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    wire.sent();
    for number in (1..=Limits::default().pipelined_count).step_by(2) {
        wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
        let expected = [
            format!("{number} 200 [content-length: 1]"),
            format!("{number} data a end"),
            format!("{} 200 [content-length: 1] end", number + 1),
        ];
        assert_eq!(wire.logged(), expected);
    }
    assert!(wire.connection.is_idle());
}

#[test]
fn what_follows_the_last_response_is_untouched() {
    let mut wire = Wire::client();
    for _ in 0..3 {
        wire.request("GET", "/", &[], End::Yes).unwrap();
    }
    wire.sent();
    wire.listen(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let what = "the last message said that the connection closes";
    let expected = [
        "1 200 [connection: close] [content-length: 0] end".to_owned(),
        format!("2 aborted untouched: {what}"),
        format!("3 aborted untouched: {what}"),
        "closed last".to_owned(),
    ];
    assert_eq!(wire.logged(), expected);

    // A server that merely went away may have acted on them.
    let mut wire = Wire::client();
    for _ in 0..2 {
        wire.request("GET", "/", &[], End::Yes).unwrap();
    }
    wire.sent();
    wire.eof();
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let log = wire.logged();
    assert_eq!(log[1], "2 aborted: the peer closed before it responded");
}

#[test]
fn a_client_may_ask_to_close() {
    let mut wire = Wire::client();
    wire.request("GET", "/", &[], End::Yes).unwrap();
    wire.request("GET", "/", &[("connection", "close")], End::Yes).unwrap();
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    wire.sent();
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let length = "[content-length: 0] end";
    let expected = [format!("1 200 {length}"), format!("2 200 {length}"), "closed shutdown".into()];
    assert_eq!(wire.logged(), expected);
}

#[test]
fn an_early_response_does_not_end_the_request() {
    let mut wire = Wire::client();
    wire.request("POST", "/", &[("content-length", "3")], End::No).unwrap();
    wire.sent();
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.logged(), ["1 200 [content-length: 0] end"]);
    assert!(!wire.connection.is_idle());
    wire.data(ID, "abc", End::Yes).unwrap();
    assert!(wire.connection.is_idle());
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Ok(ExchangeId(2)));
}

#[test]
fn an_early_response_may_make_the_client_give_up() {
    let mut wire = Wire::client();
    wire.request("POST", "/", &[("content-length", "3")], End::No).unwrap();
    wire.sent();
    wire.listen(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    wire.abort(ID);
    wire.listen(b"");
    assert_eq!(wire.logged()[1..], ["closed aborted"]);
}

#[test]
fn giving_up_one_request_takes_the_others_along() {
    let mut wire = Wire::client();
    for _ in 0..3 {
        wire.request("GET", "/", &[], End::Yes).unwrap();
    }
    wire.abort(ExchangeId(2));
    wire.listen(b"");
    let expected = [
        "1 aborted: an exchange was given up",
        "3 aborted: an exchange was given up",
        "closed aborted",
    ];
    assert_eq!(wire.logged(), expected);
}

#[test]
fn upgrades_and_connects_become_tunnels() {
    let mut upgrade = Wire::client();
    upgrade.request("GET", "/", &[("upgrade", "websocket")], End::No).unwrap();
    upgrade.sent();
    upgrade.listen(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(upgrade.logged(), ["1 101 [upgrade: websocket]"]);
    let mut connect = Wire::client();
    connect.request("CONNECT", "", &[], End::No).unwrap();
    connect.sent();
    connect.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(connect.logged(), ["1 200 [content-length: 5]"]);
    for mut wire in [upgrade, connect] {
        assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
        wire.sent();
        wire.listen(b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(wire.logged(), ["1 data HTTP/1.1 200 OK\r\n\r\n"]);
        wire.data(ID, "raw", End::No).unwrap();
        assert_eq!(wire.sent(), "raw");
        wire.data(ID, "", End::Yes).unwrap();
        wire.listen(b"the rest");
        assert_eq!(wire.logged(), ["1 data the rest"]);
        assert!(wire.connection.ends_sending());
        wire.eof();
        wire.listen(b"");
        assert_eq!(wire.logged(), ["1 data  end", "closed tunnel"]);
    }
}

#[test]
fn a_tunnel_that_its_server_has_ended_is_over_with_what_its_client_sends_last() {
    let mut wire = Wire::client();
    wire.request("CONNECT", "", &[], End::No).unwrap();
    wire.sent();
    wire.listen(b"HTTP/1.1 200 OK\r\n\r\nall");
    wire.eof();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 200", "1 data all end"]);
    assert!(!wire.connection.ends_sending());
    wire.data(ID, "last", End::Yes).unwrap();
    assert_eq!(wire.sent(), "last");
    wire.listen(b"");
    assert_eq!(wire.logged(), ["closed tunnel"]);
}

#[test]
fn nothing_is_pipelined_behind_what_may_become_a_tunnel() {
    let mut wire = Wire::client();
    wire.request("CONNECT", "", &[], End::Yes).unwrap();
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    assert_eq!(wire.data(ID, "x", End::No), Err(Misuse::OutOfOrder));
    wire.sent();
    wire.listen(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Ok(ExchangeId(2)));
}

#[test]
fn a_client_shuts_down_when_all_is_answered() {
    let mut wire = asked("GET");
    wire.shut_down();
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    wire.listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(wire.logged(), ["1 200 [content-length: 0] end", "closed shutdown"]);
}

#[test]
fn a_switch_waits_for_the_end_of_the_request() {
    let mut wire = Wire::client();
    let fields = &[("upgrade", "websocket"), ("content-length", "3")];
    wire.request("POST", "/", fields, End::No).unwrap();
    wire.sent();
    wire.listen(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    let expected = ["1 aborted: protocols were switched without a request", "closed bad-message"];
    assert_eq!(wire.logged(), expected);
}

#[test]
fn each_response_has_its_own_room() {
    let limit = bolide_h1::limits::Bodies::DEFAULT.unconsumed_bytes as usize;
    let mut wire = Wire::client();
    for _ in 0..2 {
        wire.request("GET", "/", &[], End::Yes).unwrap();
        wire.sent();
        wire.listen(format!("HTTP/1.1 200 OK\r\nContent-Length: {limit}\r\n\r\n").as_bytes());
        wire.listen(&vec![b'x'; limit - 1]);
        assert!(wire.connection.wants_input());
        wire.listen(b"x");
    }
}
