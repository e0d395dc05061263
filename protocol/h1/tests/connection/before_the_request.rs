//! RFC 9112 §9.3.2: bytes that were read before their request was written respond to nothing.

use std::collections::VecDeque;

use bolide_h1::Limits;
use bolide_semantics::{End, ExchangeEvent, ExchangeId};
use proptest::prelude::*;

use crate::wire::Wire;

const RESPONSE: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

const UNSOLICITED: &str = "bytes came that belong to no response";

fn is_written(wire: &mut Wire, id: u32) -> bool {
    wire.with(|connection, cx| connection.is_written(cx, ExchangeId(id)))
}

#[test]
fn the_second_of_two_responses_is_none_to_the_request_that_the_first_one_led_to() {
    let mut wire = Wire::client();
    wire.request("GET", "/", &[], End::Yes).unwrap();
    wire.sent();
    wire.turn(&RESPONSE.repeat(2), &mut |wire, id, _| {
        if id == ExchangeId(1) {
            wire.request("GET", "/", &[], End::Yes).unwrap();
        }
    });
    let aborted = format!("2 aborted: {UNSOLICITED}");
    assert_eq!(wire.logged(), ["1 204 end", &aborted, "closed bad-message"]);
}

#[test]
fn nothing_responds_to_a_request_that_waits_to_be_written() {
    for bytes in [RESPONSE, b"HTTP/1.1 103 Early Hints\r\n\r\n", b"H"] {
        let mut wire = Wire::client();
        wire.request("GET", "/", &[], End::Yes).unwrap();
        wire.listen(bytes);
        let aborted = format!("1 aborted: {UNSOLICITED}");
        assert_eq!(wire.logged(), [&aborted, "closed bad-message"]);
    }
}

#[test]
fn a_part_of_a_request_can_be_refused() {
    let mut wire = Wire::client();
    wire.request("POST", "/", &[], End::No).unwrap();
    wire.output.advance(1);
    wire.listen(b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n");
    assert_eq!(wire.logged(), ["1 431 [connection: close]"]);
    assert!(!is_written(&mut wire, 1));
}

#[test]
fn a_request_is_written_with_the_last_byte_of_its_content() {
    let mut wire = Wire::client();
    let id = wire.request("POST", "/", &[("content-length", "3")], End::No).unwrap();
    wire.sent();
    assert!(!is_written(&mut wire, 1), "its content is still to come");
    wire.data(id, "abc", End::Yes).unwrap();
    wire.output.advance(2);
    assert!(!is_written(&mut wire, 1));
    wire.output.advance(1);
    assert!(is_written(&mut wire, 1));
    wire.listen(RESPONSE);
    assert!(is_written(&mut wire, 1), "the response is complete");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Request,
    /// So many bytes are written.
    Write(usize),
    Respond,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => Just(Step::Request),
        2 => (0_usize..200).prop_map(Step::Write),
        1 => Just(Step::Write(usize::MAX)),
        4 => Just(Step::Respond),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    #[test]
    fn each_pipelined_response_needs_a_request_that_was_begun(steps in steps()) {
        let mut wire = Wire::client();
        // Where the open requests begin and end, among all bytes.
        let mut open = VecDeque::new();
        let (mut queued, mut first) = (0, 1);
        // The last step responds whether a request was begun or not.
        let last = steps.len();
        for (number, step) in steps.into_iter().chain([Step::Respond]).enumerate() {
            let written = queued - wire.output.len();
            let begun = open.front().is_some_and(|(start, _)| *start < written);
            match step {
                Step::Request if open.len() < usize::from(Limits::default().pipelined_count) => {
                    let path = format!("/{}", "x".repeat(queued % 50));
                    wire.request("GET", &path, &[], End::Yes).unwrap();
                    let end = written + wire.output.len();
                    open.push_back((queued, end));
                    queued = end;
                }
                Step::Write(bytes) => {
                    let waiting = wire.output.len();
                    wire.output.advance(bytes.min(waiting));
                }
                Step::Respond if begun || number == last => {
                    let complete = open.front().is_some_and(|(_, end)| *end <= written);
                    wire.turn(RESPONSE, &mut |wire, id, event| {
                        if matches!(event, ExchangeEvent::Head(_)) {
                            assert_eq!(is_written(wire, id.0), complete);
                        }
                    });
                    prop_assert_eq!(!wire.is_closed(), begun);
                    if !begun {
                        break;
                    }
                    prop_assert_eq!(wire.logged(), [format!("{first} 204 end")]);
                    open.pop_front();
                    first += 1;
                }
                Step::Request | Step::Respond => {}
            }
            let written = queued - wire.output.len();
            for (place, (_, end)) in open.iter().enumerate() {
                prop_assert_eq!(is_written(&mut wire, first + place as u32), *end <= written);
            }
        }
    }
}
