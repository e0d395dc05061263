//! RFC 9113 §8.1, RFC 7541 §2.3: response heads that have a name are sent again without a look at them, and
//! mean what they meant, whatever is sent between them.

use std::num::NonZeroU32;

use bolide_h2::Limits;
use bolide_semantics::{End, HeadName, Misuse, Role};
use http::{Method, StatusCode};
use proptest::prelude::*;

use crate::subject::{Seen, Subject};

fn name(number: u32, second: u32) -> HeadName {
    let lines = NonZeroU32::new(number).unwrap();
    HeadName { status: StatusCode::OK, lines, length: Some(0), second }
}

proptest! {
    #[test]
    fn a_named_head_means_the_same_whatever_is_sent_between(
        steps in prop::collection::vec((0..6, 1..4_u32, 0..3_u32), 1..80),
    ) {
        let mut client = Subject::new(Role::Client, Limits::default());
        let mut server = Subject::new(Role::Server, Limits::default());
        for (index, (kind, number, second)) in steps.into_iter().enumerate() {
            let method = if kind == 5 { Method::HEAD } else { Method::GET };
            let id = client.ask(&method, End::Yes).unwrap();
            server.feed(&client.sent_bytes());
            let (own, lines, date) = (index.to_string(), number.to_string(), second.to_string());
            let mut expected = vec![("content-length", "0"), ("x-lines", lines.as_str())];
            match kind {
                // A new entry of the table moves the others.
                0 => {
                    expected = vec![("x-own", own.as_str())];
                    server.answer_with(id, 200, &expected, End::Yes).unwrap();
                }
                1 => {
                    expected = vec![];
                    server.answer(id, 404, End::Yes).unwrap();
                }
                _ => {
                    expected.push(("date", date.as_str()));
                    server.answer_named(id, name(number, second), &expected, End::Yes).unwrap();
                }
            }
            let seen = client.feed(&server.sent_bytes());
            let Some(Seen::Head(of, End::Yes, fields)) = seen.last() else {
                panic!("{seen:?}");
            };
            prop_assert_eq!(*of, id);
            prop_assert_eq!(fields[0].1.as_str(), if kind == 1 { "404" } else { "200" });
            let got: Vec<_> =
                fields[1..].iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

#[test]
fn a_named_head_keeps_the_rules_of_others() {
    let mut client = Subject::new(Role::Client, Limits::default());
    let mut server = Subject::new(Role::Server, Limits::default());
    let name = HeadName { length: Some(3), ..name(1, 0) };
    let fields = [("content-length", "3")];
    let ids: Vec<_> = (0..3).map(|_| client.ask(&Method::GET, End::Yes).unwrap()).collect();
    server.feed(&client.sent_bytes());
    assert_eq!(server.answer_named(ids[0], name, &fields, End::No), Ok(()));
    assert_eq!(server.answer_named(ids[1], name, &fields, End::Yes), Err(Misuse::WrongLength));
    assert_eq!(server.answer_named(ids[1], name, &fields, End::No), Ok(()));
    assert_eq!(server.answer_named(ids[1], name, &fields, End::No), Err(Misuse::OutOfOrder));
    assert_eq!(server.give(ids[1], b"four", End::Yes), Err(Misuse::WrongLength));
    assert_eq!(server.give(ids[1], b"abc", End::Yes), Ok(true));
    assert_eq!(server.answer_named(99, name, &fields, End::No), Err(Misuse::UnknownExchange));
}
