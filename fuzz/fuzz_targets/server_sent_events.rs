//! HTML §9.2.6: whatever a stream of events holds and however it is split, it reads the same, and nothing in
//! an event could not have stood there.

#![no_main]

use bolide_client::limits::EVENT_NAME_BYTES;
use bolide_client::{Event, EventParser, TooLong};
use libfuzzer_sys::fuzz_target;

/// Reads a piece of a stream.
fn push(
    parser: &mut EventParser,
    mut piece: &[u8],
    events: &mut Vec<Event>,
) -> Result<(), TooLong> {
    while let Some(event) = parser.next_event(&mut piece)? {
        events.push(event);
    }
    Ok(())
}

fuzz_target!(|input: (&[u8], Vec<u8>)| {
    let (stream, cuts) = input;
    let mut whole = EventParser::with_limit(256);
    let mut expected = Vec::new();
    let outcome = push(&mut whole, stream, &mut expected);
    let mut parser = EventParser::with_limit(256);
    let mut events = Vec::new();
    let mut rest = stream;
    let mut split_outcome = Ok(());
    for cut in cuts {
        let (piece, after) = rest.split_at(rest.len().min(usize::from(cut)));
        rest = after;
        split_outcome = split_outcome.and_then(|()| push(&mut parser, piece, &mut events));
    }
    split_outcome = split_outcome.and_then(|()| push(&mut parser, rest, &mut events));
    assert_eq!(split_outcome, outcome);
    assert_eq!(events, expected);
    assert_eq!(parser.last_event_id(), whole.last_event_id());
    for event in events {
        assert!(event.kind.len() <= EVENT_NAME_BYTES && event.id.len() <= EVENT_NAME_BYTES);
        assert!(!event.kind.is_empty() && !event.kind.contains(['\n', '\r']));
        assert!(!event.data.contains('\r') && event.data.len() <= 256);
        assert!(!event.id.contains(['\n', '\r', '\0']));
    }
});
