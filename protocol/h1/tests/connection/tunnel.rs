//! RFC 9110 §7.8, §9.3.6: exchanges that become tunnels.

use bolide_semantics::{End, ExchangeId, Misuse};

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const UPGRADE: &[u8] =
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCH: &[(&str, &str)] = &[("upgrade", "websocket"), ("connection", "Upgrade")];

#[test]
fn an_upgrade_becomes_a_tunnel() {
    let mut wire = Wire::server();
    wire.listen(&[UPGRADE, b"early"].concat());
    wire.respond(ID, 101, SWITCH, End::No).unwrap();
    let expected =
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
    assert_eq!(wire.sent(), expected);
    wire.listen(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(wire.logged()[1..], ["1 data earlyGET / HTTP/1.1\r\n\r\n"]);
    assert_eq!(wire.data(ID, "raw", End::No), Ok(true));
    assert_eq!(wire.sent(), "raw");
    assert!(!wire.connection.is_idle());
    // Half-closed: the other direction goes on.
    wire.eof();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 data  end"]);
    assert_eq!(wire.data(ID, "last", End::Yes), Ok(true));
    wire.listen(b"");
    assert_eq!(wire.logged(), ["closed tunnel"]);
    assert_eq!(wire.sent(), "last");
}

#[test]
fn connect_becomes_a_tunnel() {
    let mut wire = Wire::server();
    wire.listen(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nhello");
    assert_eq!(wire.logged(), ["1 CONNECT a:443 end"]);
    wire.respond(ID, 200, &[("content-length", "5"), ("x", "1")], End::No).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\nx: 1\r\n\r\n");
    wire.listen(b"");
    assert_eq!(wire.logged(), ["1 data hello"]);
    wire.data(ID, "", End::Yes).unwrap();
    assert!(wire.is_closed());
}

/// Checks that the peer is told so by a reset (RFC 9113 §8.5).
#[test]
fn a_tunnel_that_is_given_up_has_no_end() {
    for (is_server, peer_has_ended) in [(true, false), (true, true), (false, false), (false, true)]
    {
        let mut wire = if is_server { Wire::server() } else { Wire::client() };
        if is_server {
            wire.listen(UPGRADE);
            wire.respond(ID, 101, SWITCH, End::No).unwrap();
        } else {
            wire.request("CONNECT", "", &[], End::No).unwrap();
            wire.sent();
            wire.listen(b"HTTP/1.1 200 OK\r\n\r\n");
        }
        if peer_has_ended {
            wire.eof();
        }
        wire.listen(b"half");
        wire.logged();
        wire.abort(ID);
        let case = (is_server, peer_has_ended);
        assert!(wire.close_reason().is_some_and(|reason| reason.reset), "{case:?}");
    }
}

#[test]
fn a_refused_connect_is_a_plain_exchange() {
    let mut wire = Wire::server();
    wire.listen(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.respond(ID, 405, &[], End::Yes).unwrap();
    assert_eq!(wire.sent(), "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
    wire.listen(b"");
    assert_eq!(wire.logged()[1..], ["2 GET a/ end"]);
}

#[test]
fn an_upgrade_that_nobody_asked_for_is_misuse() {
    for request in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ] {
        let mut wire = Wire::server();
        wire.listen(request);
        assert_eq!(wire.respond(ID, 101, SWITCH, End::No), Err(Misuse::OutOfOrder));
        assert_eq!(wire.sent(), "");
    }
    let mut wire = Wire::server();
    wire.listen(UPGRADE);
    assert_eq!(wire.respond(ID, 101, &[], End::No), Err(Misuse::InvalidHead));
    wire.respond(ID, 200, &[], End::Yes).unwrap();
    assert!(!wire.is_closed());
}

#[test]
fn an_upgrade_waits_for_the_end_of_the_request() {
    let mut wire = Wire::server();
    let text = String::from_utf8_lossy(UPGRADE).replace("Host", "Content-Length: 3\r\nHost");
    wire.listen(text.as_bytes());
    assert_eq!(wire.respond(ID, 101, SWITCH, End::No), Err(Misuse::OutOfOrder));
    wire.listen(b"abc");
    assert_eq!(wire.respond(ID, 101, SWITCH, End::No), Ok(()));
}

#[test]
fn a_tunnel_has_back_pressure_both_ways() {
    let mut wire = Wire::server();
    wire.output_limit = 10;
    wire.listen(UPGRADE);
    wire.respond(ID, 101, SWITCH, End::No).unwrap();
    wire.sent();
    assert_eq!(wire.data(ID, "0123456789", End::No), Ok(false));
    for _ in 0..4 {
        assert!(wire.connection.wants_input());
        wire.listen(&[b'x'; 1 << 16]);
    }
    assert!(!wire.connection.wants_input());
    wire.consumed(ID, 1 << 18);
    assert!(wire.connection.wants_input());
}
