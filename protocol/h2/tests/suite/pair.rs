//! RFC 9113 §5, §8: both roles talk to each other in memory, whatever the division of bytes, the
//! windows and the pace.

use std::collections::BTreeMap;

use bolide_h2::{Limits, limits};
use bolide_semantics::{End, Misuse, Role};
use http::Method;
use proptest::prelude::*;

use crate::raw;
use crate::subject::{Seen, Subject};

/// One message to come, or to be sent.
#[derive(Debug, Clone)]
struct Message {
    body: usize,
    trailers: bool,
    /// Its head has a Content-Length.
    announced: bool,
    /// Mark: its end is given after the last piece was taken, as by a proxy that learns of it later.
    late: bool,
}

impl Message {
    fn fields<'a>(&self, length: &'a mut String) -> Vec<(&'static str, &'a str)> {
        *length = self.body.to_string();
        if self.announced { vec![("content-length", length.as_str())] } else { Vec::new() }
    }
}

/// Part of one end in one exchange.
#[derive(Debug, Default)]
struct Side {
    sent: usize,
    received: usize,
    unconsumed: usize,
    may_give: bool,
    gave_all: bool,
    ended: bool,
}

fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![Just(0usize), 1usize..40, 1usize..40_000, Just(65_536), Just(150_000)];
    let rest = any::<[bool; 3]>();
    (body, rest).prop_map(|(body, [trailers, announced, late])| Message {
        body,
        trailers,
        announced,
        late,
    })
}

/// The byte at each place of a body, so that a misplaced one is seen.
fn byte_at(id: u32, place: usize) -> u8 {
    (place as u32).wrapping_mul(31).wrapping_add(id).to_le_bytes()[0] ^ (place >> 8) as u8
}

struct End2End {
    subject: Subject,
    sides: BTreeMap<u32, Side>,
    chunk: usize,
    server: bool,
}

impl End2End {
    fn give(&mut self, id: u32, message: &Message) {
        let side = self.sides.get_mut(&id).unwrap();
        while side.may_give && !side.gave_all {
            let length = self.chunk.min(message.body - side.sent);
            let bytes: Vec<u8> = (side.sent..side.sent + length).map(|p| byte_at(id, p)).collect();
            side.sent += length;
            let last = side.sent == message.body && !(message.late && length > 0);
            let end = if last && !message.trailers { End::Yes } else { End::No };
            if last && length == 0 && message.trailers {
                side.gave_all = true;
                match self.subject.give_trailers(id, &[("x-end", "1")]) {
                    Ok(()) | Err(Misuse::UnknownExchange) => return,
                    Err(misuse) => panic!("{misuse:?}"),
                }
            }
            match self.subject.give(id, &bytes, end) {
                Ok(more) => side.may_give = more,
                // The server has answered and wants no more of the request.
                Err(Misuse::UnknownExchange) => side.gave_all = true,
                Err(misuse) => panic!("{misuse:?}"),
            }
            if last && !side.gave_all {
                side.gave_all = true;
                if message.trailers {
                    self.subject.give_trailers(id, &[("x-end", "1")]).unwrap();
                }
            }
        }
    }

    fn received(&mut self, id: u32, bytes: &[u8]) {
        let side = self.sides.get_mut(&id).unwrap();
        for byte in bytes {
            assert_eq!(*byte, byte_at(id, side.received));
            side.received += 1;
        }
        side.unconsumed += bytes.len();
    }

    fn consume(&mut self) {
        for (id, side) in &mut self.sides {
            let bytes = std::mem::take(&mut side.unconsumed);
            if bytes > 0 {
                self.subject.consumed(*id, bytes);
            }
        }
    }

    /// One turn; `messages` is what this end sends on each exchange.
    fn turn(&mut self, bytes: &[u8], messages: &[Message]) {
        self.subject.arrive(bytes);
        while let Some(seen) = self.subject.poll() {
            match seen {
                Seen::Head(id, end, _) => {
                    let side = self.sides.entry(id).or_default();
                    side.ended = end == End::Yes;
                    if self.server {
                        side.may_give = true;
                        let (message, mut length) = (&messages[id as usize / 2], String::new());
                        let fields = message.fields(&mut length);
                        self.subject.answer_with(id, 200, &fields, End::No).unwrap();
                        self.give(id, message);
                    }
                }
                Seen::Data(id, bytes, end) => {
                    self.received(id, &bytes);
                    self.sides.get_mut(&id).unwrap().ended |= end == End::Yes;
                }
                Seen::Trailers(id, fields) => {
                    assert_eq!(fields, [("x-end".to_owned(), "1".to_owned())]);
                    self.sides.get_mut(&id).unwrap().ended = true;
                }
                Seen::Sendable(id) => {
                    self.sides.get_mut(&id).unwrap().may_give = true;
                    self.give(id, &messages[id as usize / 2]);
                }
                Seen::Aborted(id, reason) => {
                    // A response that was complete before the request.
                    assert!(!self.server, "{reason:?}");
                    self.sides.get_mut(&id).unwrap().gave_all = true;
                }
                Seen::Concurrency(_) => {}
                other => panic!("{other:?}"),
            }
        }
        self.subject.leave();
    }
}

#[derive(Debug, Clone)]
struct Plan {
    requests: Vec<Message>,
    responses: Vec<Message>,
    window: u32,
    frame: u32,
    limit: usize,
    chunk: usize,
    pace: Vec<usize>,
}

fn plan() -> impl Strategy<Value = Plan> {
    (1usize..8).prop_flat_map(|count| {
        (
            prop::collection::vec(message(), count),
            prop::collection::vec(message(), count),
            prop_oneof![Just(1u32), 2u32..2000, Just(65_535), Just(65_536), Just(1 << 20)],
            prop_oneof![Just(16_384u32), Just(100_000)],
            prop_oneof![Just(1usize), Just(1000), Just(1 << 20)],
            prop_oneof![1usize..100, Just(20_000), Just(200_000)],
            prop::collection::vec(prop_oneof![1usize..50, Just(1 << 20)], 1..10),
        )
            .prop_map(|(requests, responses, window, frame, limit, chunk, pace)| {
                // Small windows with large bodies take for ever.
                let cap = if window < 100 || chunk < 20 { 500 } else { usize::MAX };
                let capped = |messages: Vec<Message>| {
                    let cut = |m: Message| Message { body: m.body.min(cap), ..m };
                    messages.into_iter().map(cut).collect()
                };
                let (requests, responses) = (capped(requests), capped(responses));
                // Now and then the path takes a lot, or large bodies take for ever, too.
                let pace = [&pace[..], &[5000]].concat();
                Plan { requests, responses, window, frame, limit, chunk, pace }
            })
    })
}

fn end(role: Role, plan: &Plan) -> End2End {
    let limits = Limits {
        windows: limits::Windows {
            stream_window_bytes: plan.window,
            stream_window_bytes_max: plan.window,
            ..limits::Windows::DEFAULT
        },
        frames: limits::Frames { frame_bytes: plan.frame, ..limits::Frames::DEFAULT },
        budgets: limits::Budgets {
            small_data_burst_count: Some(1_000_000),
            glitches_burst_count: Some(1_000_000),
            ..limits::Budgets::DEFAULT
        },
        ..Limits::default()
    };
    let mut subject = Subject::new(role, limits);
    subject.output_limit = plan.limit;
    End2End { subject, sides: BTreeMap::new(), chunk: plan.chunk, server: role == Role::Server }
}

/// Runs a plan to its end; both ends must come to it.
fn run(plan: &Plan) {
    let mut client = end(Role::Client, plan);
    let mut server = end(Role::Server, plan);
    let mut length = String::new();
    for request in &plan.requests {
        let fields = &request.fields(&mut length);
        let id = client.subject.ask_with(&Method::POST, fields, End::No).unwrap();
        client.sides.insert(id, Side { may_give: true, ..Side::default() });
        client.give(id, request);
    }
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut pace = plan.pace.iter().cycle();
    let mut quiet = 0;
    while quiet < 10 {
        client.turn(&[], &plan.requests);
        up.extend(client.subject.sent_bytes());
        let risen = up.len().min(*pace.next().unwrap());
        server.turn(&up.drain(..risen).collect::<Vec<_>>(), &plan.responses);
        server.consume();
        server.turn(&[], &plan.responses);
        down.extend(server.subject.sent_bytes());
        let fallen = down.len().min(*pace.next().unwrap());
        client.turn(&down.drain(..fallen).collect::<Vec<_>>(), &plan.requests);
        client.consume();
        quiet = if risen + fallen == 0 { quiet + 1 } else { 0 };
        if client.sides.values().all(|side| side.ended && side.gave_all) && up.is_empty() {
            break;
        }
    }
    for (id, side) in &client.sides {
        assert!(
            side.ended && side.gave_all,
            "exchange {id} hangs: {side:?} {:?}",
            server.sides.get(id)
        );
        assert_eq!(side.received, plan.responses[*id as usize / 2].body);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_exchange_comes_to_its_end(plan in plan()) {
        run(&plan);
    }
}

#[test]
fn a_window_of_one_byte_is_enough() {
    let messages = vec![Message { body: 50, trailers: true, announced: false, late: false }; 2];
    run(&Plan {
        requests: messages.clone(),
        responses: messages,
        window: 1,
        frame: 16_384,
        limit: 1,
        chunk: 7,
        pace: vec![1],
    });
}

#[test]
fn a_hundred_requests_in_one_read() {
    let mut client = Subject::new(Role::Client, Limits::default());
    let mut server = Subject::new(Role::Server, Limits::default());
    for _ in 0..100 {
        client.ask(&Method::GET, End::Yes).unwrap();
    }
    let bytes = client.sent_bytes();
    server.arrive(&bytes);
    let mut count = 0;
    while let Some(seen) = server.poll() {
        let Seen::Head(id, End::Yes, _) = seen else { panic!("{seen:?}") };
        server.answer_with(id, 200, &[("content-length", "4")], End::No).unwrap();
        assert_eq!(server.give(id, b"pong", End::Yes), Ok(true));
        count += 1;
    }
    server.leave();
    assert_eq!(count, 100);
    let seen = client.feed(&server.sent_bytes());
    let bodies =
        seen.iter().filter(|one| matches!(one, Seen::Data(_, body, End::Yes) if body == b"pong"));
    assert_eq!(bodies.count(), 100);
    assert!(client.connection.is_idle() && server.connection.is_idle());
    raw::frames(&client.sent_bytes());
}
