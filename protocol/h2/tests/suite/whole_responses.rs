//! RFC 9113 §8.1: a response that is sent in one step is, byte for byte, the one that is sent in two.

use bolide_h2::{Limits, SharedFields};
use bolide_semantics::{Content, End, ExchangeId, FieldName, FieldRef, Misuse, ResponseHead};
use bytes::Bytes;
use http::StatusCode;
use proptest::prelude::*;

use crate::raw;
use crate::subject::Subject;

/// Treatment of one request by a server.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// GET, HEAD, POST whose body is on its way, or CONNECT.
    method: u8,
    /// Which of a few heads.
    head: u32,
    body_bytes: usize,
    /// The length in the head is another.
    lies: bool,
    /// Before it, a body that fills the window or that the window lets pass.
    before: Option<usize>,
    /// After it, the client opens its windows.
    updates: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let before = prop::option::weighted(0.2, 1..3000_usize);
    let body_bytes = prop_oneof![0..8_usize, 0..1100_usize];
    (0..8_u8, 1..3_u32, body_bytes, prop::bool::weighted(0.05), before, any::<bool>()).prop_map(
        |(method, head, body_bytes, lies, before, updates)| Step {
            method,
            head,
            body_bytes,
            lies,
            before,
            updates,
        },
    )
}

struct Server {
    subject: Subject,
    in_one_step: bool,
}

impl Server {
    fn new(in_one_step: bool, window: u32) -> Self {
        let subject = Subject::server_with(Limits::default(), &[(4, window)]);
        Self { subject, in_one_step }
    }

    fn answer(&mut self, id: u32, step: Step) -> Result<(), Misuse> {
        let body = vec![b'x'; step.body_bytes];
        let length = Some((body.len() + usize::from(step.lies)) as u64);
        let status = if step.head == 2 { StatusCode::NOT_FOUND } else { StatusCode::OK };
        let value = if step.head == 2 { &b"b"[..] } else { b"a" };
        let shared = SharedFields::new([FieldRef::known(FieldName::Etag, b"1")].into_iter());
        let (own, date) = ([FieldRef::named("x-lines", value)], b"Sun, 06 Nov 1994 08:49:37 GMT");
        let head =
            ResponseHead { status, shared: shared.as_ref(), own: &own, length, date: Some(date) };
        let content = match (step.method, self.in_one_step) {
            (5, _) => Content::None,
            (_, true) => Content::Whole(&mut Bytes::copy_from_slice(&body).into()),
            (_, false) => Content::Follows,
        };
        let gives = matches!(content, Content::Follows) && !body.is_empty();
        let ends = matches!(content, Content::Follows) && body.is_empty();
        let content = if ends { Content::None } else { content };
        self.subject
            .with(|connection, cx| connection.send_response(cx, ExchangeId(id), &head, content))?;
        if gives {
            self.subject.give(id, &body, End::Yes)?;
        }
        Ok(())
    }

    /// All that it sends, and what the order came to.
    fn serve(&mut self, id: u32, step: Step) -> (Result<(), Misuse>, Vec<u8>) {
        let request = match step.method {
            5 => raw::headers(id, true, &HEAD),
            6 => raw::post(id),
            7 => raw::headers(id, false, &CONNECT),
            _ => raw::get(id),
        };
        if let Some(bytes) = step.before {
            self.subject.feed(&raw::get(id));
            self.subject.answer(id, 200, End::No).unwrap();
            self.subject.give(id, &vec![b'y'; bytes], End::Yes).unwrap();
            self.subject.feed(&raw::headers(id + 2, true, &raw::GET));
            let sent = self.subject.sent_bytes();
            return (self.answer(id + 2, Step { method: 0, ..step }), self.rest(sent, step));
        }
        self.subject.feed(&request);
        (self.answer(id, step), self.rest(Vec::new(), step))
    }

    fn rest(&mut self, mut sent: Vec<u8>, step: Step) -> Vec<u8> {
        if step.updates {
            let update = raw::window_update(0, 4000);
            self.subject.feed(&update);
        }
        self.subject.turn();
        sent.extend(self.subject.sent_bytes());
        sent
    }
}

const HEAD: [(&str, &str); 4] =
    [(":method", "HEAD"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
const CONNECT: [(&str, &str); 2] = [(":method", "CONNECT"), (":authority", "a:1")];

proptest! {
    #[test]
    fn one_step_is_the_same_as_two(
        steps in prop::collection::vec(step(), 1..30),
        window in prop_oneof![Just(0_u32), Just(500), Just(65_535)],
    ) {
        let (mut one, mut two) = (Server::new(true, window), Server::new(false, window));
        for (index, step) in steps.into_iter().enumerate() {
            let id = 1 + 4 * index as u32;
            prop_assert_eq!(one.serve(id, step), two.serve(id, step), "{:?}", step);
            prop_assert_eq!(one.subject.connection.is_idle(), two.subject.connection.is_idle());
        }
    }
}

#[test]
fn an_exchange_that_is_over_gets_no_response() {
    let mut server = Server::new(true, 65_535);
    let updates = false;
    let step = Step { method: 0, head: 1, body_bytes: 6, lies: false, before: None, updates };
    for index in 0..5 {
        server.serve(1 + 2 * index, step).0.unwrap();
    }
    assert_eq!(server.answer(9, step), Err(Misuse::UnknownExchange));
}
