//! RFC 9112 §1: both roles talk to each other, and each understands what the other meant.

use bolide_semantics::{End, ExchangeEvent, ExchangeId};
use proptest::prelude::*;

use crate::wire::Wire;

#[derive(Debug, Clone)]
struct Message {
    method: &'static str,
    /// Sizes of the pieces of the request's body; none: no body.
    request: Vec<usize>,
    response: Vec<usize>,
    request_counted: bool,
    response_counted: bool,
    request_trailers: bool,
    response_trailers: bool,
    interim: u8,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let sizes = || proptest::collection::vec(prop_oneof![0_usize..50, 1000_usize..9000], 0..4);
    let message = (
        prop_oneof![Just("GET"), Just("POST"), Just("HEAD"), Just("PUT")],
        (sizes(), sizes()),
        any::<[bool; 4]>(),
        0_u8..3,
    );
    let message = message.prop_map(|(method, (request, response), flags, interim)| Message {
        method,
        request,
        response,
        request_counted: flags[0],
        response_counted: flags[1],
        request_trailers: flags[2],
        response_trailers: flags[3],
        interim,
    });
    proptest::collection::vec(message, 1..8)
}

fn body(sizes: &[usize], seed: u8) -> Vec<Vec<u8>> {
    sizes.iter().map(|size| vec![b'a' + seed % 26; *size]).collect()
}

/// Sends a body in pieces, with an end of its own or trailers.
fn send_body(wire: &mut Wire, id: ExchangeId, pieces: &[Vec<u8>], trailers: bool) {
    for piece in pieces {
        wire.data(id, std::str::from_utf8(piece).unwrap(), End::No).unwrap();
    }
    if trailers {
        wire.trailers(id, &[("x-sum", "1")]).unwrap();
    } else {
        wire.data(id, "", End::Yes).unwrap();
    }
}

fn length_of(pieces: &[Vec<u8>]) -> String {
    pieces.iter().map(Vec::len).sum::<usize>().to_string()
}

/// The log's lines that show a body: `id data …` with its end, or trailers.
fn bodies(log: &[String], id: u32) -> String {
    let data = format!("{id} data ");
    let of = |line: &&String| line.starts_with(&data);
    let text = log.iter().find(of).map(|line| line[data.len()..].to_owned()).unwrap_or_default();
    text.trim_end_matches(" end").to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn both_roles_understand_each_other(
        messages in messages(),
        piece in prop_oneof![Just(usize::MAX), 1_usize..2000],
    ) {
        let mut client = Wire::client();
        let mut server = Wire::server();
        client.output_limit = usize::MAX;
        server.output_limit = usize::MAX;
        for (number, message) in messages.iter().enumerate() {
            let id = ExchangeId(number as u32 + 1);
            let request = body(&message.request, number as u8);
            let response = body(&message.response, number as u8 + 7);
            let length = length_of(&request);
            let fields = [("content-length", length.as_str())];
            let fields = if message.request_counted { &fields[..] } else { &[] };
            let end = if request.is_empty() { End::Yes } else { End::No };
            prop_assert_eq!(client.request(message.method, "/", fields, end), Ok(id));
            if end == End::No {
                send_body(&mut client, id, &request, message.request_trailers);
            }
            let bytes = client.sent_bytes();
            for piece in bytes.chunks(piece) {
                server.turn(piece, &mut |server, id, event| {
                    let complete = match event {
                        ExchangeEvent::Head(end) => *end == End::Yes,
                        ExchangeEvent::Data(data, end) => {
                            server.consumed(id, data.len());
                            *end == End::Yes
                        }
                        ExchangeEvent::Trailers => true,
                        _ => false,
                    };
                    if !complete {
                        return;
                    }
                    for _ in 0..message.interim {
                        server.respond(id, 103, &[], End::No).unwrap();
                    }
                    let length = length_of(&response);
                    let fields = [("content-length", length.as_str())];
                    let fields = if message.response_counted { &fields[..] } else { &[] };
                    if response.is_empty() {
                        server.respond(id, 200, fields, End::Yes).unwrap();
                    } else {
                        server.respond(id, 200, fields, End::No).unwrap();
                        send_body(server, id, &response, message.response_trailers);
                    }
                });
            }
            let bytes = server.sent_bytes();
            for piece in bytes.chunks(piece) {
                client.turn(piece, &mut |client, id, event| {
                    if let ExchangeEvent::Data(data, _) = event {
                        client.consumed(id, data.len());
                    }
                });
            }
            let (asked, answered) = (server.logged(), client.logged());
            prop_assert_eq!(bodies(&asked, id.0).into_bytes(), request.concat());
            let expected = if message.method == "HEAD" { Vec::new() } else { response.concat() };
            prop_assert_eq!(bodies(&answered, id.0).into_bytes(), expected);
            let interims = answered.iter().filter(|line| line.contains("interim 103")).count();
            prop_assert_eq!(interims, usize::from(message.interim));
            prop_assert!(client.connection.is_idle(), "{:?}", answered);
            prop_assert!(server.connection.is_idle(), "{:?}", asked);
        }
    }
}
