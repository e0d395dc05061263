//! RFC 7541 §6: blocks of foreign encoders, and our blocks as foreign decoders understood them.
//!
//! `../vectors/README.md` says how the files were made and how to read them.

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
    Block(Vec<Line>),
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

/// The steps of all stories. A block lasts until an empty line.
fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    let mut inside = false;
    for text in include_str!("../vectors/stories.txt").lines() {
        if text.is_empty() {
            inside = false;
        } else if inside {
            let Some(Step::Block(lines)) = steps.last_mut() else { unreachable!() };
            lines.push(line(text));
        } else if let Some(name) = text.strip_prefix("story ") {
            steps.push(Step::Story(name.to_owned()));
        } else if let Some(bytes) = text.strip_prefix("table ") {
            steps.push(Step::TableBytes(bytes.parse().expect("a number of bytes")));
        } else if text == "block" {
            steps.push(Step::Block(Vec::new()));
            inside = true;
        } else {
            assert!(text.starts_with('#'), "{text}");
        }
    }
    assert!(steps.len() > 150, "the file is there and is understood");
    steps
}

/// The lines of a file of blocks.
fn blocks(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|line| !line.starts_with('#'))
}

/// The blocks of all stories are in `file`, one in each line; behind it are the lines that only its encoder never indexes.
fn decodes(file: &str) {
    let mut blocks = blocks(file);
    let mut decoder = Decoder::default();
    let mut told = String::new();
    for (number, step) in steps().into_iter().enumerate() {
        match step {
            Step::Story(name) => (decoder, told) = (Decoder::default(), name),
            Step::TableBytes(bytes) => decoder.set_table_bytes_max(bytes as usize),
            Step::Block(mut lines) => {
                let mut words = blocks.next().expect("a block for each").split(" !");
                let bytes = hex(words.next().expect("it is not empty").trim_matches('-'));
                for word in words {
                    lines[word.parse::<usize>().expect("a line's number")].never_indexed = true;
                }
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
    assert_eq!(blocks.next(), None);
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
    let mut blocks = blocks(include_str!("../vectors/bolide.txt"));
    let mut encoder = Encoder::new();
    let mut told = String::new();
    for step in steps() {
        match step {
            Step::Story(name) => (encoder, told) = (Encoder::new(), name),
            Step::TableBytes(bytes) => encoder.set_peer_table_bytes(bytes),
            Step::Block(lines) => {
                let expected = blocks.next().and_then(|block| block.split(" !").next());
                let expected = hex(expected.expect("a block for each").trim_matches('-'));
                assert_eq!(encode(&mut encoder, &lines), expected, "{told}");
            }
        }
    }
    assert_eq!(blocks.next(), None);
}
