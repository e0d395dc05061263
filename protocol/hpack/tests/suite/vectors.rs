//! RFC 7541 §6: blocks of foreign encoders, and our blocks as foreign decoders understood them.
//!
//! `../vectors/README.md` says how the files were made and how to read them.

use std::fmt::Write as _;

use bolide_hpack::{Decoder, EachField, Encoder, NameKind, Pseudo};
use bolide_semantics::{FieldName, FieldRef};

use crate::hex;

struct Line {
    name: String,
    value: Vec<u8>,
    never_indexed: bool,
}

enum Step {
    Story(String),
    TableBytes(u32),
    Block { bytes: Vec<u8>, lines: Vec<Line> },
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut value = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (escaped, rest) = part.split_at(2);
        value.extend(hex(escaped));
        value.extend(rest.as_bytes());
    }
    value
}

fn line(text: &str) -> Line {
    let never_indexed = text.starts_with('!');
    let text = text.trim_start_matches('!');
    let colon = 1 + text[1..].find(':').expect("a line has a colon after its name");
    let value = &text[colon + 1..];
    let value = unescape(value.strip_prefix(' ').unwrap_or(value));
    Line { name: text[..colon].to_owned(), value, never_indexed }
}

/// A file's steps. A block lasts until an empty line.
fn steps(file: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut inside = false;
    for text in file.lines() {
        if text.is_empty() {
            inside = false;
        } else if inside {
            let Some(Step::Block { lines, .. }) = steps.last_mut() else { unreachable!() };
            lines.push(line(text));
        } else if let Some(name) = text.strip_prefix("story ") {
            steps.push(Step::Story(name.to_owned()));
        } else if let Some(bytes) = text.strip_prefix("table ") {
            steps.push(Step::TableBytes(bytes.parse().expect("a number of bytes")));
        } else if let Some(bytes) = text.strip_prefix("block") {
            steps.push(Step::Block { bytes: hex(bytes), lines: Vec::new() });
            inside = true;
        } else {
            assert!(text.starts_with('#'), "{text}");
        }
    }
    assert!(steps.len() > 150, "the file is there and is understood");
    steps
}

fn decodes(file: &str) {
    let mut decoder = Decoder::default();
    let mut told = String::new();
    for (number, step) in steps(file).into_iter().enumerate() {
        match step {
            Step::Story(name) => (decoder, told) = (Decoder::default(), name),
            Step::TableBytes(bytes) => decoder.set_table_bytes_max(bytes as usize),
            Step::Block { bytes, lines } => {
                let mut left = lines.iter();
                let compare = |field: bolide_hpack::DecodedField<'_>| {
                    let line = left.next().expect("not more lines than expected");
                    let got = (field.name, field.value, field.never_indexed);
                    let expected = (line.name.as_bytes(), &line.value[..], line.never_indexed);
                    assert_eq!(got, expected, "{told}, step {number}");
                    assert_eq!(field.kind, NameKind::of(line.name.as_bytes()));
                    true
                };
                let result = decoder.decode(&bytes, &mut EachField::new(compare));
                assert_eq!(result, Ok(()), "{told}, step {number}");
                assert!(left.next().is_none(), "{told}, step {number}");
            }
        }
    }
}

fn encode(encoder: &mut Encoder, lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for line in lines {
        match NameKind::of(line.name.as_bytes()) {
            NameKind::Pseudo(Pseudo::Status) => {
                let status = std::str::from_utf8(&line.value).expect("three digits");
                encoder.pseudo(Pseudo::Status, status.as_bytes(), &mut out);
            }
            NameKind::Pseudo(pseudo) => encoder.pseudo(pseudo, &line.value, &mut out),
            NameKind::Known(_) | NameKind::Other => {
                let known = FieldName::lookup(line.name.as_bytes());
                let (value, sensitive) = (&line.value[..], line.never_indexed);
                let field = FieldRef { known, name: &line.name, value, sensitive };
                encoder.field(&field, &mut out);
            }
        }
    }
    out
}

#[test]
fn blocks_of_nghttp2() {
    decodes(include_str!("../vectors/nghttp2.txt"));
}

#[test]
fn blocks_of_go() {
    decodes(include_str!("../vectors/go.txt"));
}

#[test]
fn blocks_of_ours() {
    decodes(include_str!("../vectors/bolide.txt"));
}

/// Byte for byte what nghttp2 and Go have decoded. When the encoder is changed on purpose, both
/// must see the new blocks: see the README.
#[test]
fn our_encoder_makes_the_blocks_that_foreign_decoders_have_understood() {
    let mut encoder = Encoder::new();
    let (mut got, mut expected, mut told) = (String::new(), String::new(), String::new());
    for step in steps(include_str!("../vectors/stories.txt")) {
        match step {
            Step::Story(name) => (encoder, told) = (Encoder::new(), name),
            Step::TableBytes(bytes) => encoder.set_peer_table_bytes(bytes),
            Step::Block { lines, .. } => {
                let block = encode(&mut encoder, &lines);
                writeln!(got, "{told}: {block:02x?}").expect("a string takes everything");
            }
        }
    }
    for step in steps(include_str!("../vectors/bolide.txt")) {
        match step {
            Step::Story(name) => told = name,
            Step::TableBytes(_) => {}
            Step::Block { bytes, .. } => {
                writeln!(expected, "{told}: {bytes:02x?}").expect("a string takes everything");
            }
        }
    }
    for (got, expected) in got.lines().zip(expected.lines()) {
        assert_eq!(got, expected);
    }
    assert_eq!(got.len(), expected.len());
}
