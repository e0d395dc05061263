use http::Version;

use super::*;
use crate::HeadKind;

const NOTE: HeadNote = HeadNote([1, 2]);

/// What a parser does that is asked for a head with this path.
fn read(head: &mut Head, state: CodingState, octets: &[u8], path: &str) {
    if let Some(note) = head.recall(state, octets) {
        assert_eq!(note, NOTE);
    } else {
        head.clear(HeadKind::Request, Version::HTTP_2);
        let span = head.push_text(path.as_bytes());
        head.set_path(span);
        head.keep(state, octets, NOTE);
    }
    assert_eq!(head.path_and_query(), path);
}

#[test]
fn what_came_twice_is_recalled_as_it_was() {
    let mut head = Head::default();
    for round in 0..4 {
        for name in 0..32_u8 {
            read(&mut head, CodingState::START, &[name; 20], &format!("/{name}"));
            assert_eq!(head.mark().is_some(), round > 0);
        }
    }
    let marks: Vec<_> = (0..32_u8)
        .map(|name| {
            head.recall(CodingState::START, &[name; 20]).expect("it came often enough");
            head.mark().expect("what is recalled is marked").number()
        })
        .collect();
    assert!(marks.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn the_same_octets_in_another_state_are_others() {
    let mut head = Head::default();
    let other = head.another_state();
    for _ in 0..3 {
        read(&mut head, CodingState::START, b"a", "/here");
        read(&mut head, other, b"a", "/there");
    }
}

#[test]
fn a_head_that_was_changed_after_it_was_recalled_is_read_again() {
    let mut head = Head::default();
    for _ in 0..3 {
        read(&mut head, CodingState::START, b"a", "/a");
        read(&mut head, CodingState::START, b"b", "/b");
    }
    read(&mut head, CodingState::START, b"a", "/a");
    head.set_wire_bytes(7);
    read(&mut head, CodingState::START, b"a", "/a");
    read(&mut head, CodingState::START, b"b", "/b");
    read(&mut head, CodingState::START, b"a", "/a");
    let other = head.clone();
    head.copy_from(&Head::default());
    read(&mut head, CodingState::START, b"b", "/b");
    head.copy_from(&other);
    assert_eq!(head.path_and_query(), "/a");
    read(&mut head, CodingState::START, b"b", "/b");
}

#[test]
fn a_known_heads_flood_pushes_out_nothing_and_stays_within_its_bound() {
    let mut head = Head::default();
    for _ in 0..2 {
        read(&mut head, CodingState::START, b"hot", "/hot");
    }
    for number in 0..100_000_u32 {
        read(&mut head, CodingState::START, &number.to_le_bytes(), &format!("/{number}"));
    }
    assert!(head.recall(CodingState::START, b"hot").is_some());
    let long = "/".repeat(KNOWN_HEAD_BYTES + 1);
    for _ in 0..3 {
        read(&mut head, CodingState::START, &[b'x'; KNOWN_OCTETS_BYTES + 1], "/x");
        read(&mut head, CodingState::START, b"long", &long);
        assert_eq!(head.mark(), None);
    }
    for number in 0..10_000_u32 {
        let path = "/".repeat(3000);
        for _ in 0..2 {
            read(&mut head, CodingState::START, &number.to_le_bytes(), &path);
        }
    }
    head.put_known_back();
    let known = head.known.0.as_ref().expect("there are some");
    let held: usize = known.kept.iter().map(|kept| kept.head.allocated_bytes()).sum();
    assert!(known.kept.len() == KNOWN_HEADS_COUNT && held <= KNOWN_HEADS_COUNT * KNOWN_HEAD_BYTES);
}

#[test]
fn a_known_states_flood_stays_within_its_bound() {
    let mut head = Head::default();
    let first = head.state_after(CodingState::START, b"a");
    assert_eq!(head.state_after(CodingState::START, b"a"), first);
    assert_ne!(head.state_after(first, b"a"), first);
    assert_ne!(head.state_after(CodingState::START, b"b"), first);
    let long = [b'x'; KNOWN_STEP_BYTES + 1];
    assert_ne!(head.state_after(first, &long), head.state_after(first, &long));
    let mut states = std::collections::BTreeSet::new();
    for number in 0..10_000_u32 {
        assert!(states.insert(head.state_after(first, &number.to_le_bytes()).0));
    }
    let known = head.known.0.as_ref().expect("there are some");
    assert_eq!(known.steps.len(), KNOWN_STEPS_COUNT);
}
