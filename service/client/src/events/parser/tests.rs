//! The examples of the standard, its corners, and any split of any stream.

use super::*;
use proptest::prelude::*;

/// Reads a piece of a stream.
fn push(parser: &mut EventParser, mut piece: &[u8]) -> Result<Vec<Event>, TooLong> {
    std::iter::from_fn(|| parser.next_event(&mut piece).transpose()).collect()
}

fn events(stream: &str) -> Vec<Event> {
    push(&mut EventParser::new(), stream.as_bytes()).unwrap()
}

fn event(kind: &str, data: &str, id: &str) -> Event {
    Event { kind: kind.to_owned(), data: data.to_owned(), id: id.into() }
}

#[test]
fn the_examples_of_the_standard() {
    assert_eq!(
        events("data: YHOO\ndata: +2\ndata: 10\n\n"),
        [event("message", "YHOO\n+2\n10", "")]
    );
    let stream = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    assert_eq!(
        events(stream),
        [
            event("message", "first event", "1"),
            event("message", "second event", ""),
            event("message", " third event", "")
        ]
    );
    assert_eq!(
        events("data\n\ndata\ndata\n\ndata:"),
        [event("message", "", ""), event("message", "\n", "")]
    );
    assert_eq!(events("data:test\n\ndata: test\n\n"), vec![event("message", "test", ""); 2]);
}

#[test]
fn lines_end_by_cr_lf_or_both() {
    let expected = [event("a", "1\n2", "x"), event("message", "3", "x")];
    for end in ["\n", "\r", "\r\n"] {
        let lines = ["event: a", "data: 1", "data: 2", "id: x", "", "data: 3", "", ""];
        assert_eq!(events(&lines.join(end)), expected, "{end:?}");
    }
    assert_eq!(
        events("data: 1\n\rdata: 2\r\n\n"),
        [event("message", "1", ""), event("message", "2", "")]
    );
}

#[test]
fn a_byte_order_mark_is_passed_over_once() {
    assert_eq!(events("\u{feff}data: 1\n\n"), [event("message", "1", "")]);
    assert_eq!(events("\u{feff}\u{feff}data: 1\n\n"), []);
    assert_eq!(events("\n\u{feff}data: 1\n\n"), []);
}

#[test]
fn an_id_with_nul_is_ignored_and_ids_last() {
    let stream = "id: 1\ndata: a\n\nid: \0\ndata: b\n\nid:\ndata: c\n\n";
    let ids: Vec<_> = events(stream).into_iter().map(|event| event.id).collect();
    assert_eq!(ids.iter().map(|id| &**id).collect::<Vec<_>>(), ["1", "1", ""]);
    let mut parser = EventParser::new();
    push(&mut parser, b"id: 7\n\nid: 8\ndata: x\n").unwrap();
    assert_eq!(parser.last_event_id(), "7", "an event without data has an identifier too");
    parser.restart();
    let after = push(&mut parser, b"data: y\n\n").unwrap();
    assert_eq!(after, [event("message", "y", "7")], "what was incomplete is dropped");
}

#[test]
fn the_time_to_wait_is_digits_only() {
    for (value, expected) in [
        ("1500", Some(Duration::from_millis(1500))),
        ("0", Some(Duration::ZERO)),
        ("", None),
        ("1.5", None),
        ("+1", None),
        ("1s", None),
        ("99999999999999999999999", Some(Duration::from_millis(u64::MAX))),
    ] {
        let mut parser = EventParser::new();
        push(&mut parser, format!("retry: {value}\n").as_bytes()).unwrap();
        assert_eq!(parser.retry(), expected, "{value:?}");
    }
}

#[test]
fn what_is_incomplete_or_unknown_is_no_event() {
    for stream in
        ["data: 1", "data: 1\n", "Data: 1\n\n", " data: 1\n\n", "event: a\n\n", ":\n\n", "x\n\n"]
    {
        assert_eq!(events(stream), [], "{stream:?}");
    }
    assert_eq!(
        events("event: a\n\ndata: 1\n\n"),
        [event("message", "1", "")],
        "the kind is forgotten"
    );
}

#[test]
fn an_endless_event_ends_the_stream() {
    let limit = 64;
    let mut parser = EventParser::with_limit(limit);
    let line = "x".repeat(limit);
    push(&mut parser, line.as_bytes()).unwrap();
    assert_eq!(push(&mut parser, b"x").unwrap_err().bytes_max, limit);
    let mut parser = EventParser::with_limit(limit);
    let fed = (0..limit).find(|_| push(&mut parser, b"data: 1234567\n").is_err());
    assert_eq!(fed, Some(limit / 8), "lines of data add up");
    let mut parser = EventParser::with_limit(limit);
    let line = [&b"data:"[..], &[0xff; 22], b"\n"].concat();
    assert_eq!(push(&mut parser, &line).unwrap_err().bytes_max, limit, "as long as it is read");
}

#[test]
fn an_endless_event_id_or_kind_ends_the_stream() {
    for name in ["event", "id"] {
        let fits = format!("{name}: {}\ndata\n\n", "x".repeat(EVENT_NAME_BYTES));
        assert_eq!(events(&fits).len(), 1);
        let line = format!("{name}: {}x\n", "x".repeat(EVENT_NAME_BYTES));
        let error = push(&mut EventParser::new(), line.as_bytes()).unwrap_err();
        assert_eq!(error.bytes_max, EVENT_NAME_BYTES, "{error}");
        let line = [name.as_bytes(), b":", &[0xff; EVENT_NAME_BYTES / 3 + 1], b"\n"].concat();
        let error = push(&mut EventParser::new(), &line).unwrap_err();
        assert_eq!(error.bytes_max, EVENT_NAME_BYTES, "{error}");
    }
}

#[test]
fn events_take_memory_in_proportion_to_their_bytes() {
    let id = format!("id: {}\n", "x".repeat(EVENT_NAME_BYTES));
    let stream = id + &"data\n\n".repeat(10_000);
    let mut read = Vec::with_capacity(10_000);
    let memory = allocation_counter::measure(|| {
        let mut parser = EventParser::new();
        let mut rest = stream.as_bytes();
        while let Some(event) = parser.next_event(&mut rest).unwrap() {
            read.push(event);
        }
    });
    assert_eq!(read.len(), 10_000);
    assert!(memory.bytes_max < 4 * stream.len() as u64, "{memory:?} for {} bytes", stream.len());
}

/// Streams out of what matters.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: [&[u8]; 15] = [
        b"data",
        b"id: ",
        b"event:",
        b"retry:1",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"x",
        b"\0",
        b"\xef\xbb\xbf",
        "\u{e9}\u{1f600}".as_bytes(),
        b"\xff",
    ];
    let part = prop::sample::select(&PARTS[..]);
    proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_split_reads_the_same(stream in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut whole = EventParser::new();
        let expected = push(&mut whole, &stream).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        for cuts in [cuts, (0..=stream.len()).collect()] {
            let mut parser = EventParser::new();
            let mut events = Vec::new();
            for pair in cuts.windows(2) {
                events.extend(push(&mut parser, &stream[pair[0]..pair[1]]).unwrap());
            }
            prop_assert_eq!(&events, &expected);
            prop_assert_eq!(parser.last_event_id(), whole.last_event_id());
            prop_assert_eq!(parser.retry(), whole.retry());
        }
    }
}

#[test]
fn a_line_end_in_two_pieces_is_one_whatever_lies_between_them() {
    let mut parser = EventParser::new();
    let mut events = Vec::new();
    for piece in ["data: a\r", "", "\ndata: b\r\n\r", "", "", "\n"] {
        events.extend(push(&mut parser, piece.as_bytes()).unwrap());
    }
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data, "a\nb");
}
