//! RFC 9113 §6.5: settings, and what they change while streams are open.

use bolide_h2::{Limits, limits};
use bolide_semantics::{End, Role};
use http::Method;

use crate::raw::{self, FLOW_CONTROL_ERROR, PROTOCOL_ERROR, data, settings, window_update};
use crate::subject::{Seen, Subject, of_kind};

#[test]
fn settings_are_acknowledged() {
    let mut server = Subject::server();
    assert_eq!(server.feed(&settings(&[(1, 0), (0xabcd, 7)])), []);
    let ack = server.sent_one();
    assert_eq!((ack.kind, ack.flags, ack.payload.len()), (raw::SETTINGS, raw::ACK, 0));
}

#[test]
fn values_that_are_not_allowed_end_the_connection() {
    for (entry, code) in [
        ((2, 2), PROTOCOL_ERROR),
        ((4, 1 << 31), FLOW_CONTROL_ERROR),
        ((5, 1 << 24), PROTOCOL_ERROR),
        ((5, 100), PROTOCOL_ERROR),
    ] {
        let mut server = Subject::server();
        assert_eq!(server.dies_of(&settings(&[entry])).1, code, "{entry:?}");
    }
    let mut client = Subject::client();
    assert_eq!(client.dies_of(&settings(&[(2, 1)])).1, PROTOCOL_ERROR);
}

#[test]
fn open_streams_follow_the_initial_window() {
    let mut server = Subject::server_with(Limits::default(), &[(4, 100)]);
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    assert_eq!(server.give(1, &[0; 300], End::Yes), Ok(false));
    assert_eq!(server.sent()[1].payload.len(), 100);
    // 100 - 80 sent already: minus 80.
    assert_eq!(server.feed(&settings(&[(4, 20)])), []);
    server.sent();
    assert_eq!(server.feed(&window_update(1, 80)), []);
    assert_eq!(server.sent(), []);
    assert_eq!(server.feed(&window_update(1, 50)), []);
    assert_eq!(server.sent_one().payload.len(), 50);
    assert_eq!(server.feed(&settings(&[(4, 1000)])), []);
    let frames = server.sent();
    assert_eq!(of_kind(&frames, raw::DATA)[0].payload.len(), 150);
    assert!(server.connection.is_idle());
}

#[test]
fn an_initial_window_that_lets_one_overflow_is_an_error() {
    let mut server = Subject::server();
    server.feed(&raw::post(1));
    server.feed(&window_update(1, 0x7fff_ffff - 65_535));
    assert_eq!(server.dies_of(&settings(&[(4, 65_536)])).1, FLOW_CONTROL_ERROR);
}

#[test]
fn a_smaller_window_of_ours_holds_from_its_acknowledgement() {
    let limits = Limits {
        windows: limits::Windows { stream_window_bytes: 1000, ..limits::Windows::DEFAULT },
        ..Limits::default()
    };
    let mut client = Subject::new(Role::Client, limits);
    client.feed(&settings(&[]));
    let id = client.ask(&Method::GET, End::Yes).unwrap();
    let head = raw::headers(id, false, &[(":status", "200")]);
    // The server has not seen our settings: it may send what the protocol begins with.
    let seen = client.feed(&[head, data(id, false, &[0; 5000])].concat());
    assert_eq!(seen.len(), 2, "{seen:?}");
    client.feed(&raw::settings_ack());
    client.consumed(id, 5000);
    client.sent_bytes();
    assert_eq!(client.resets(&data(id, false, &[0; 1001]), id), FLOW_CONTROL_ERROR);
}

#[test]
fn a_client_hears_how_many_exchanges_it_may_open() {
    let mut client = Subject::new(Role::Client, Limits::default());
    assert_eq!(client.feed(&settings(&[(3, 7)])), [Seen::Concurrency(7)]);
    assert_eq!(client.feed(&settings(&[])), []);
    assert_eq!(client.feed(&settings(&[(3, 3)])), [Seen::Concurrency(3)]);
    let mut client = Subject::new(Role::Client, Limits::default());
    assert_eq!(client.feed(&settings(&[])), [Seen::Concurrency(100)]);
}

#[test]
fn the_header_table_may_be_switched_off() {
    let mut server = Subject::server();
    server.feed(&settings(&[(1, 0)]));
    server.sent();
    for id in [1, 3] {
        server.feed(&raw::get(id));
        server.answer_with(id, 200, &[("server", "bolide")], End::Yes).unwrap();
        let block = server.sent_one().payload;
        // Nothing refers to the dynamic table, whose indices begin with 62.
        let mut decoder = bolide_hpack::Decoder::new(0);
        let mut names = 0;
        let count = |_: bolide_hpack::DecodedField<'_>| {
            names += 1;
            true
        };
        decoder.decode(&block, &mut bolide_hpack::EachField::new(count)).unwrap();
        assert_eq!(names, 2);
    }
}
