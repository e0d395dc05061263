//! RFC 9112 §9.3.2: requests that come before their predecessors are answered.

use bolide_semantics::{End, ExchangeEvent};

use crate::wire::{Wire, answer_all, serve};

fn requests(count: usize) -> String {
    (0..count).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect()
}

#[test]
fn a_thousand_requests_in_one_segment() {
    let (log, sent) = serve(requests(1000).as_bytes(), usize::MAX);
    assert_eq!(log.len(), 1000);
    assert_eq!(log[999], "1000 GET a/999 end");
    let expected: String = (0..1000)
        .map(|number| {
            let path = format!("/{number}");
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}", path.len())
        })
        .collect();
    assert_eq!(sent, expected);
}

#[test]
fn one_byte_at_a_time() {
    let bytes = requests(20);
    assert_eq!(serve(bytes.as_bytes(), 1), serve(bytes.as_bytes(), usize::MAX));
}

#[test]
fn the_next_request_waits_for_the_response() {
    let mut wire = Wire::server();
    wire.listen(requests(2).as_bytes());
    assert_eq!(wire.logged(), ["1 GET a/0 end"]);
    assert!(!wire.connection.wants_input());
    assert!(!wire.connection.is_idle());
    let id = bolide_semantics::ExchangeId(1);
    wire.respond(id, 200, &[], End::No).unwrap();
    wire.data(id, "a", End::No).unwrap();
    wire.listen(b"");
    assert!(wire.logged().is_empty());
    wire.data(id, "", End::Yes).unwrap();
    wire.listen(b"");
    assert_eq!(wire.logged(), ["2 GET a/1 end"]);
}

#[test]
fn pipeline_no_read() {
    let mut wire = Wire::server();
    wire.output_limit = 100;
    wire.turn(requests(1000).as_bytes(), &mut answer_all);
    // Two responses have about eighty bytes: reading stops with the one that reaches the limit.
    assert_eq!(wire.logged().len(), 3);
    assert!(!wire.connection.wants_input());
    assert!(!wire.connection.is_idle());
    wire.turn(b"", &mut answer_all);
    assert!(wire.logged().is_empty());
    wire.sent();
    wire.turn(b"", &mut answer_all);
    assert_eq!(wire.logged().len(), 3);
}

#[test]
fn a_response_before_the_body_was_read_does_not_mix_messages() {
    let mut wire = Wire::server();
    let bytes = "POST /0 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
    wire.turn(bytes.as_bytes(), &mut |wire, id, event| {
        if matches!(event, ExchangeEvent::Head(_)) {
            wire.respond(id, 200, &[], End::Yes).unwrap();
        }
    });
    assert_eq!(wire.logged(), ["1 POST a/0 [content-length: 3]", "2 GET a/1 end"]);
    assert_eq!(wire.sent(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".repeat(2));
}
