//! RFC 9112 §6: a response is the same on the wire whether its fields are shared or its own, and whether its content
//! comes with its head or after it.

use bolide_buffers::COPIED_BYTES;
use bolide_h1::SharedFields;
use bolide_semantics::{Content, End, ExchangeId, FieldName, FieldRef, Misuse, ResponseHead, Role};
use bytes::Bytes;
use http::StatusCode;

use crate::wire::Wire;

const ID: ExchangeId = ExchangeId(1);
const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

const REQUESTS: [&str; 10] = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: b\r\nConnection: upgrade\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "BAD\r\n\r\n",
];

/// In which form a response is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    shares: bool,
    whole: bool,
}

type Sent = (Result<bool, Misuse>, String, bool);

/// Returns what comes of a request and its response, and of another request after it.
fn sent(request: &str, status: u16, length: Option<u64>, body: &str, form: Form) -> Sent {
    let status = StatusCode::from_u16(status).unwrap();
    let mut wire = Wire::server();
    wire.listen(request.as_bytes());
    let field = FieldRef::known(FieldName::ContentType, b"text/plain");
    let shared = SharedFields::new([field].into_iter());
    let digits = length.map(|length| length.to_string());
    let length_field =
        digits.as_ref().map(|digits| FieldRef::known(FieldName::ContentLength, digits.as_bytes()));
    let own: Vec<_> = [Some(field), length_field].into_iter().flatten().collect();
    let head = if form.shares {
        ResponseHead { status, shared: shared.as_ref(), own: &[], length, date: Some(DATE) }
    } else {
        ResponseHead { date: Some(DATE), ..ResponseHead::new(status, &own) }
    };
    let content = if form.whole {
        Content::Whole(&mut Bytes::copy_from_slice(body.as_bytes()).into())
    } else if body.is_empty() {
        Content::None
    } else {
        Content::Follows
    };
    let follows = matches!(content, Content::Follows);
    let mut result = wire.with(|connection, cx| connection.send_response(cx, ID, &head, content));
    if follows && result.is_ok() {
        result = wire.data(ID, body, End::Yes);
    }
    wire.listen(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    let log = wire.logged().join("\n");
    (result, wire.sent() + &log, wire.is_closed())
}

#[test]
fn every_form_is_the_same_on_the_wire() {
    let large = "x".repeat(COPIED_BYTES);
    for request in REQUESTS {
        for status in [200, 204, 304, 404] {
            if request.starts_with("CONNECT") && status < 300 {
                continue;
            }
            for body in ["", "pong", &large[1..], &large] {
                for length in [None, Some(body.len() as u64), Some(body.len() as u64 + 1)] {
                    let form = |shares, whole| Form { shares, whole };
                    let sent = |form| sent(request, status, length, body, form);
                    let (plain, whole) = (sent(form(false, false)), sent(form(false, true)));
                    for (plain, form) in [(&plain, form(true, false)), (&whole, form(true, true))] {
                        assert_eq!(*plain, sent(form), "{request:?} {status} {length:?} {form:?}");
                    }
                    // What comes with its head shows that the request's content is not wanted.
                    if !request.contains("9999999") {
                        assert_eq!(plain, whole, "{request:?} {status} {length:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn two_lengths_and_interim_statuses_are_refused() {
    let own = [FieldRef::known(FieldName::ContentLength, b"4")];
    let head = ResponseHead::<SharedFields>::new(StatusCode::OK, &own);
    let mut wire = Wire::server();
    wire.listen(REQUESTS[0].as_bytes());
    for head in [
        ResponseHead { length: Some(4), ..head },
        ResponseHead::new(StatusCode::CONTINUE, &[]),
        ResponseHead::new(StatusCode::EARLY_HINTS, &[]),
    ] {
        let send =
            wire.with(|connection, cx| connection.send_response(cx, ID, &head, Content::None));
        assert_eq!(send, Err(Misuse::InvalidHead));
    }
    let interim = wire.with(|connection, cx| connection.send_interim(cx, ID, StatusCode::OK, &[]));
    assert_eq!((interim, wire.sent()), (Err(Misuse::InvalidHead), String::new()));
}

#[test]
fn a_client_and_a_second_head_are_refused() {
    let head = ResponseHead::new(StatusCode::OK, &[]);
    let send = |wire: &mut Wire| {
        wire.with(|connection, cx| connection.send_response(cx, ID, &head, Content::Follows))
    };
    let mut wire = Wire::server();
    assert_eq!(send(&mut wire), Err(Misuse::UnknownExchange));
    wire.listen(REQUESTS[0].as_bytes());
    assert_eq!(send(&mut wire), Ok(true));
    assert_eq!(send(&mut wire), Err(Misuse::OutOfOrder));
    let mut client = Wire::new(Role::Client, &bolide_h1::Limits::default());
    assert_eq!(send(&mut client), Err(Misuse::UnknownExchange));
}
