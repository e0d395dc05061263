//! RFC 9112 §6: a head that is written out ahead says what one does that is made line by line.

use bolide_h1::{HeadLines, WrittenHead};
use bolide_semantics::{End, ExchangeId, FieldName, FieldRef, Misuse, OutgoingHead, Role, Start};
use http::StatusCode;

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

fn content_type() -> FieldRef<'static> {
    FieldRef::known(FieldName::ContentType, b"text/plain")
}

type Sent = (Result<(), Misuse>, String, bool);

/// What comes of a response, its head made line by line or written out ahead, and of the piece after it.
fn both_ways(request: &str, status: u16, length: Option<u64>, end: End) -> [Sent; 2] {
    let status = StatusCode::from_u16(status).unwrap();
    let send = |is_written: bool| {
        let mut wire = Wire::server();
        wire.listen(request.as_bytes());
        let result = wire.with(|connection, cx| {
            if is_written {
                let lines = HeadLines::new([content_type()].into_iter()).unwrap();
                let head = WrittenHead { status, lines: &lines, length, date: Some(DATE) };
                return connection.send_written_head(cx, ID, &head, end).unwrap();
            }
            let digits = length.map(|length| length.to_string());
            let length = digits
                .as_ref()
                .map(|digits| FieldRef::known(FieldName::ContentLength, digits.as_bytes()));
            let date = FieldRef::known(FieldName::Date, DATE);
            let fields = [content_type()].into_iter().chain(length).chain([date]);
            let head = OutgoingHead { start: Start::Response { status }, fields };
            connection.send_head(cx, ID, head, end)
        });
        if end == End::No && result.is_ok() {
            // Where there is no content, it goes nowhere; where there is, it must fit.
            let _ = wire.data(ID, "pong", End::Yes);
        }
        wire.listen(b"");
        let closed = wire.is_closed();
        (result, wire.sent(), closed)
    };
    [send(false), send(true)]
}

#[test]
fn both_ways_are_the_same_on_the_wire() {
    let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
        "BAD\r\n\r\n",
    ];
    for request in requests {
        for (status, length) in [
            (200, Some(4)),
            (200, None),
            (200, Some(5)),
            (204, Some(4)),
            (304, Some(4)),
            (404, Some(4)),
        ] {
            if request.starts_with("CONNECT") && status < 300 {
                continue;
            }
            for end in [End::No, End::Yes] {
                let [made, written] = both_ways(request, status, length, end);
                assert_eq!(made, written, "{request:?} {status} {length:?} {end:?}");
            }
        }
    }
}

#[test]
fn what_begins_a_tunnel_or_is_interim_is_not_sent_so() {
    let lines = HeadLines::new(std::iter::empty()).unwrap();
    let mut wire = Wire::server();
    wire.listen(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    for status in [StatusCode::OK, StatusCode::CONTINUE, StatusCode::SWITCHING_PROTOCOLS] {
        let head = WrittenHead { status, lines: &lines, length: None, date: None };
        let sent = wire.with(|connection, cx| connection.send_written_head(cx, ID, &head, End::No));
        assert_eq!(sent, None);
    }
    assert_eq!(wire.sent(), "");
}

#[test]
fn a_client_and_a_second_head_are_refused() {
    let lines = HeadLines::new(std::iter::empty()).unwrap();
    let head = WrittenHead { status: StatusCode::OK, lines: &lines, length: Some(4), date: None };
    let mut wire = Wire::server();
    let send = |wire: &mut Wire| {
        wire.with(|connection, cx| connection.send_written_head(cx, ID, &head, End::No))
    };
    assert_eq!(send(&mut wire), Some(Err(Misuse::UnknownExchange)));
    wire.listen(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(send(&mut wire), Some(Ok(())));
    assert_eq!(send(&mut wire), Some(Err(Misuse::OutOfOrder)));
    let mut client = Wire::new(Role::Client, &bolide_h1::Limits::default());
    assert_eq!(send(&mut client), Some(Err(Misuse::UnknownExchange)));
}
