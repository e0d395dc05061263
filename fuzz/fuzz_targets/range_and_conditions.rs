//! RFC 9110 §12.5.3, §13, §14: whatever the fields say, the response is one that exists, and parts lie
//! inside the representation and apart.
//!
//! The first eight bytes are the length of the representation. The rest are field lines, separated by
//! line feeds; the low three bits of a line's first byte choose its name.

#![no_main]

use bolide_semantics::{
    Conditions, EntityTag, FieldName, Head, HeadKind, Precondition, RangeRequest, Validators,
    parse_range, preferred_coding,
};
use http::{Method, Version};
use libfuzzer_sys::fuzz_target;

const NAMES: [FieldName; 8] = [
    FieldName::IfMatch,
    FieldName::IfNoneMatch,
    FieldName::IfModifiedSince,
    FieldName::IfUnmodifiedSince,
    FieldName::IfRange,
    FieldName::Range,
    FieldName::AcceptEncoding,
    FieldName::Accept,
];

fn check_parts(value: &[u8], length: u64) {
    let RangeRequest::Parts(parts) = parse_range(value, length) else { return };
    assert!(!parts.is_empty() && parts.len() <= bolide_semantics::limits::RANGES_COUNT);
    for (index, part) in parts.iter().enumerate() {
        assert!(part.start < part.end && part.end <= length);
        let apart =
            |other: &bolide_semantics::ByteRange| part.end < other.start || other.end < part.start;
        assert!(parts[index + 1..].iter().all(apart));
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<8>() else { return };
    let length = u64::from_be_bytes(*length);
    let mut head = Head::default();
    head.clear(HeadKind::Request, Version::HTTP_11);
    for line in rest.split(|byte| *byte == b'\n') {
        let Some((first, value)) = line.split_first() else { continue };
        head.push_field(NAMES[usize::from(first & 7)], value);
    }
    let validators = Validators {
        entity_tag: EntityTag::parse(b"\"a\""),
        last_modified: Some(784_111_777),
        last_modified_is_strong: length % 2 == 0,
    };
    let conditions = Conditions::of(&head);
    let decided = conditions.evaluate(&Method::GET, &validators);
    let has = |name| head.get(name).is_some();
    match decided {
        Precondition::Failed => {
            assert!(has(FieldName::IfMatch) || has(FieldName::IfUnmodifiedSince));
        }
        Precondition::NotModified => {
            assert!(has(FieldName::IfNoneMatch) || has(FieldName::IfModifiedSince));
        }
        Precondition::Perform { range } => assert!(!range || has(FieldName::Range)),
    }
    if let Some(range) = conditions.range() {
        check_parts(range, length);
    }
    let offered = ["br", "zstd", "gzip"];
    let coding = preferred_coding(conditions.accept_encoding(), &offered);
    assert!(coding.is_none_or(|index| index < offered.len()));
    assert!(coding.is_none() || has(FieldName::AcceptEncoding));
});
