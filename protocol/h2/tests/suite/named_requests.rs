//! RFC 9113 §8.1, RFC 7541 §2.3: a head that is encoded once means the same each time.

use bolide_h2::Limits;
use bolide_semantics::{End, Misuse, Role};
use http::Method;

use crate::raw;
use crate::subject::{Fields, Seen, Subject};

/// The heads that a server reads of everything that the client has sent.
fn read(client: &mut Subject, server: &mut Subject) -> Vec<Fields> {
    let bytes = client.sent_bytes();
    let heads = server.feed(&bytes).into_iter().map(|seen| match seen {
        Seen::Head(_, End::Yes, fields) => fields,
        other => panic!("{other:?}"),
    });
    heads.collect()
}

#[test]
fn a_named_head_means_the_same_each_time() {
    let mut client = Subject::new(Role::Client, Limits::default());
    let mut server = Subject::new(Role::Server, Limits::default());
    let fields = [("accept", "text/html"), ("x-own", "value")];
    for _ in 0..20 {
        client.ask_named(7, "/same", &fields, End::Yes).unwrap();
    }
    let heads = read(&mut client, &mut server);
    assert_eq!(heads.len(), 20);
    assert!(heads.iter().all(|fields| *fields == heads[0]));
    // Each later head is a few octets: nine of the frame, and indices.
    client.ask_named(7, "/same", &fields, End::Yes).unwrap();
    assert!(client.sent_bytes().len() <= 9 + 6);
}

#[test]
fn names_and_other_heads_may_come_in_any_order() {
    let mut client = Subject::new(Role::Client, Limits::default());
    let mut server = Subject::new(Role::Server, Limits::default());
    let mut expected = Vec::new();
    for round in 0..60_u32 {
        let own = round.to_string();
        match round % 4 {
            0 | 1 => client.ask_named(1, "/one", &[("a", "1")], End::Yes),
            2 => client.ask_named(2, "/two", &[], End::Yes),
            // A new entry of the table moves the others.
            _ => client.ask_with(&Method::GET, &[("own", &own)], End::Yes),
        }
        .unwrap();
        expected.push(match round % 4 {
            0 | 1 => ("a", "1".to_owned()),
            2 => ("", String::new()),
            _ => ("own", own),
        });
    }
    let heads = read(&mut client, &mut server);
    assert_eq!(heads.len(), 60);
    for (fields, (name, value)) in heads.iter().zip(expected) {
        let has = fields.iter().any(|(n, v)| n == name && *v == value);
        assert!(name.is_empty() || has, "{fields:?} lacks {name}: {value}");
    }
}

#[test]
fn a_named_request_keeps_the_rules_of_others() {
    let mut client = Subject::client_with(Limits::default(), &[(3, 2)]);
    let length = [("content-length", "3")];
    for _ in 0..3 {
        assert_eq!(client.ask_named(1, "/", &length, End::Yes), Err(Misuse::WrongLength));
    }
    let ids: Vec<_> = (0..2).map(|_| client.ask_named(1, "/", &length, End::No).unwrap()).collect();
    assert_eq!(client.ask_named(1, "/", &length, End::No), Err(Misuse::Refused));
    for id in ids {
        assert_eq!(client.give(id, b"four", End::Yes), Err(Misuse::WrongLength));
        assert_eq!(client.give(id, b"abc", End::Yes), Ok(true));
    }
    raw::frames(&client.sent_bytes());
    let mut server = Subject::server();
    assert_eq!(server.ask_named(1, "/", &[], End::Yes), Err(Misuse::OutOfOrder));
}
