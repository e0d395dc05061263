//! RFC 9112 §2.1: messages are a stream of bytes; where it was cut means nothing.

use bolide_semantics::{End, Role};
use proptest::prelude::*;

use crate::wire::{Wire, answer_all};

/// Pieces of pipelined requests, right and wrong.
fn requests() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "GET /[a-z]{0,5} HTTP/1\\.1\r\nHost: a\r\n(X-[a-z]{1,4}: [ -~]{0,9}\r\n){0,3}\r\n",
        2 => "HEAD / HTTP/1\\.0\r\nConnection: keep-alive\r\n\r\n",
        3 => "[a-z]{0,20}".prop_map(|body| {
            let length = body.len();
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
        }),
        3 => ("([0-9]{1,2}|[a-z]{0,9})", "(X: y\r\n)?").prop_map(|(body, trailers)| {
            let length = body.len();
            let chunk = if length > 0 { format!("{length:x};x=y\r\n{body}\r\n") } else { body };
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n{trailers}\r\n"
            )
        }),
        1 => "(\r\n){1,3}",
        1 => "[ -~\r\n\t]{1,9}",
        1 => "GET / HTTP/1\\.[019]\r\n(Host: a\r?\n|Connection: close\r\n|Te: x\r\n){0,4}\r?\n",
        1 => "POST / HTTP/1\\.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n[0-9a-f;\r\n]{1,20}",
    ];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

fn responses() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "HTTP/1\\.1 20[0-6] [a-zA-Z ]{0,9}\r\nContent-Length: 3\r\n\r\nabc",
        2 => "HTTP/1\\.1 (100|103|204|304) X\r\n(X: y\r\n)?\r\n",
        2 => "HTTP/1\\.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n(X: y\r\n)?\r\n",
        1 => "HTTP/1\\.[01] 200 OK\r\n(Connection: close\r\n)?\r\n[ -~]{0,9}",
        1 => "[ -~\r\n\t]{1,9}",
    ];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

/// Cuts `bytes` at `cuts`, taken modulo the length.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut start = 0;
    let mut pieces = Vec::new();
    for cut in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[start..cut]);
        start = cut;
    }
    pieces
}

fn served(pieces: &[&[u8]], eof: bool) -> (Vec<String>, Vec<u8>) {
    let mut wire = Wire::server();
    for piece in pieces {
        wire.turn(piece, &mut answer_all);
    }
    if eof {
        wire.eof();
        wire.turn(b"", &mut answer_all);
    }
    (wire.logged(), wire.sent_bytes())
}

fn received(pieces: &[&[u8]]) -> Vec<String> {
    let mut wire = Wire::client();
    for method in ["GET", "HEAD", "GET", "GET"] {
        wire.request(method, "/", &[], End::Yes).unwrap();
    }
    wire.sent();
    for piece in pieces {
        wire.turn(piece, &mut |wire, id, event| {
            if let bolide_semantics::ExchangeEvent::Data(data, _) = event {
                wire.consumed(id, data.len());
            }
        });
    }
    wire.eof();
    wire.listen(b"");
    wire.logged()
}

proptest! {
    #[test]
    fn a_server_reports_and_sends_the_same(
        bytes in requests(),
        cuts in proptest::collection::vec(any::<usize>(), 0..9),
        eof in any::<bool>(),
    ) {
        let bytes = bytes.as_bytes();
        let whole = served(&[bytes], eof);
        prop_assert_eq!(&served(&pieces(bytes, &cuts), eof), &whole);
        let singly: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&served(&singly, eof), &whole);
    }

    #[test]
    fn a_client_reports_the_same(
        bytes in responses(),
        cuts in proptest::collection::vec(any::<usize>(), 0..9),
    ) {
        let bytes = bytes.as_bytes();
        let whole = received(&[bytes]);
        prop_assert_eq!(&received(&pieces(bytes, &cuts)), &whole);
        let singly: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&received(&singly), &whole);
    }

    #[test]
    fn no_bytes_cause_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        piece in 1_usize..50,
        role in prop_oneof![Just(Role::Server), Just(Role::Client)],
    ) {
        let mut wire = Wire::new(role, &bolide_h1::Limits::default());
        if role == Role::Client {
            wire.request("GET", "/", &[], End::Yes).unwrap();
        }
        for piece in bytes.chunks(piece) {
            wire.turn(piece, &mut answer_all);
        }
        wire.eof();
        wire.turn(b"", &mut answer_all);
        // Whatever came, a server that owes no response is at its end.
        prop_assert!(wire.log.last().is_some_and(|line| line.starts_with("closed ")));
    }
}
