//! RFC 9112 §6: orders that would break a message are refused, and have no effect.

use bolide_semantics::{End, ExchangeId, Misuse};

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);

fn asked() -> Wire {
    let mut wire = Wire::server();
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wire
}

#[test]
fn unknown_exchanges() {
    let mut wire = Wire::server();
    assert_eq!(wire.respond(ID, 200, &[], End::Yes), Err(Misuse::UnknownExchange));
    assert_eq!(wire.data(ID, "", End::Yes), Err(Misuse::UnknownExchange));
    assert_eq!(wire.trailers(ID, &[]), Err(Misuse::UnknownExchange));
    assert_eq!(wire.request("GET", "/", &[], End::Yes), Err(Misuse::Refused));
    wire.abort(ID);
    wire.consumed(ID, 5);
    let mut wire = asked();
    assert_eq!(wire.respond(ExchangeId(2), 200, &[], End::Yes), Err(Misuse::UnknownExchange));
    assert_eq!(wire.data(ExchangeId(0), "", End::Yes), Err(Misuse::UnknownExchange));
    assert!(!wire.is_closed());
}

#[test]
fn the_order_of_orders() {
    let mut wire = asked();
    assert_eq!(wire.data(ID, "a", End::Yes), Err(Misuse::OutOfOrder));
    assert_eq!(wire.trailers(ID, &[]), Err(Misuse::OutOfOrder));
    wire.respond(ID, 200, &[], End::No).unwrap();
    assert_eq!(wire.respond(ID, 200, &[], End::No), Err(Misuse::OutOfOrder));
    assert_eq!(wire.respond(ID, 100, &[], End::No), Err(Misuse::OutOfOrder));
    wire.data(ID, "", End::Yes).unwrap();
    assert_eq!(wire.respond(ID, 200, &[], End::Yes), Err(Misuse::UnknownExchange));
}

#[test]
fn announced_lengths() {
    let mut wire = asked();
    let fields = &[("content-length", "3")];
    assert_eq!(wire.respond(ID, 200, fields, End::Yes), Err(Misuse::WrongLength));
    assert_eq!(wire.sent(), "");
    wire.respond(ID, 200, fields, End::No).unwrap();
    wire.sent();
    assert_eq!(wire.data(ID, "abcd", End::No), Err(Misuse::WrongLength));
    assert_eq!(wire.data(ID, "ab", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(wire.sent(), "");
    wire.data(ID, "abc", End::Yes).unwrap();
    assert_eq!(wire.sent(), "abc");
}

#[test]
fn response_splitting() {
    for fields in [
        &[("x", "a\r\nset-cookie: b")][..],
        &[("x-\r\n", "a")],
        &[("x", "a\0")],
        &[("content-length", "1"), ("content-length", "1")],
        &[("content-length", "-1")],
    ] {
        let mut wire = asked();
        assert_eq!(wire.respond(ID, 200, fields, End::No), Err(Misuse::InvalidHead));
        assert_eq!(wire.sent(), "", "not a byte of it is sent");
        wire.respond(ID, 200, &[], End::No).unwrap();
        wire.sent();
        let trailers = wire.trailers(ID, fields);
        assert_eq!(trailers, Err(Misuse::InvalidHead));
        assert_eq!(wire.sent(), "");
        wire.trailers(ID, &[("x", "a")]).unwrap();
        assert_eq!(wire.sent(), "0\r\nx: a\r\n\r\n");
    }
}

#[test]
fn request_splitting() {
    for (method, path, fields) in [
        ("GET", "/a b", &[][..]),
        ("GET", "/a\r\nx: y", &[]),
        ("GET", "", &[]),
        ("GET", "a", &[]),
        ("GET", "*", &[]),
        ("GET", "http://a/", &[]),
        ("GET", "/", &[("x", "a\nb")]),
    ] {
        let mut wire = Wire::client();
        let sent = wire.request(method, path, fields, End::Yes);
        assert_eq!(sent, Err(Misuse::InvalidHead), "{path}");
        assert_eq!(wire.sent(), "");
        assert_eq!(wire.request("GET", "/", &[], End::Yes), Ok(ID));
    }
    let mut wire = Wire::client();
    let sent = wire.request("POST", "/", &[("content-length", "1")], End::Yes);
    assert_eq!(sent, Err(Misuse::WrongLength));
}
