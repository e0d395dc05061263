//! HTML §9.2.6: whatever a stream of events holds and however it is split, it reads the same, and nothing in
//! an event could not have stood there.

#![no_main]

use bolide_client::EventParser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Vec<u8>)| {
    let (stream, cuts) = input;
    let mut whole = EventParser::with_limit(256);
    let mut expected = Vec::new();
    let outcome = whole.push(stream, &mut expected);
    let mut parser = EventParser::with_limit(256);
    let mut events = Vec::new();
    let mut rest = stream;
    let mut split_outcome = Ok(());
    for cut in cuts {
        let (piece, after) = rest.split_at(rest.len().min(usize::from(cut)));
        rest = after;
        split_outcome = split_outcome.and_then(|()| parser.push(piece, &mut events));
    }
    split_outcome = split_outcome.and_then(|()| parser.push(rest, &mut events));
    assert_eq!(split_outcome, outcome);
    assert_eq!(events, expected);
    assert_eq!(parser.last_event_id(), whole.last_event_id());
    for event in events {
        assert!(!event.kind.is_empty() && !event.kind.contains(['\n', '\r']));
        assert!(!event.data.contains('\r') && event.data.len() <= 256);
        assert!(!event.id.contains(['\n', '\r', '\0']));
    }
});
