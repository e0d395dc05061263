//! RFC 9204 §4.5: sections of a foreign encoder, and our sections as a foreign decoder understood them.
//!
//! `../vectors/README.md` says how the files were made and how to read them.

use std::fmt::Write as _;

use bolide_hpack::EachField;
use bolide_qpack::{Decoded, Decoder, Encoder};
use bolide_semantics::{FieldName, FieldRef, NameKind};

use crate::{Fields, hex};

/// Name, value, and whether it is never indexed.
type Line = (String, Vec<u8>, bool);
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

/// The stories that HPACK is tested with: sections with their lines, story by story.
fn stories() -> Vec<Vec<Vec<Line>>> {
    let mut stories: Vec<Vec<Vec<_>>> = Vec::new();
    let mut inside = false;
    for text in include_str!("../../../hpack/tests/vectors/stories.txt").lines() {
        match (text, stories.last_mut()) {
            ("", _) => inside = false,
            (_, Some(story)) if inside => {
                let bare = text.trim_start_matches('!');
                let colon = 1 + bare[1..].find(':').expect("a line has a colon after its name");
                let value =
                    bare[colon + 1..].strip_prefix(' ').unwrap_or_else(|| &bare[colon + 1..]);
                let line = (bare[..colon].to_owned(), unescape(value), text != bare);
                story.last_mut().expect("a section has begun").push(line);
            }
            ("block", Some(story)) => {
                story.push(Vec::new());
                inside = true;
            }
            _ if text.starts_with("story ") => stories.push(Vec::new()),
            _ => {}
        }
    }
    stories
}

/// The file's sections by story: what comes on the encoder stream before each, and the section.
fn sections(file: &str) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut stories: Vec<Vec<_>> = Vec::new();
    let mut instructions = Vec::new();
    for text in file.lines() {
        if text.starts_with("story") {
            stories.push(Vec::new());
        } else if let Some(bytes) = text.strip_prefix("encoder ") {
            instructions = hex(bytes);
        } else if let Some(bytes) = text.strip_prefix("section ") {
            let story = stories.last_mut().expect("a story has begun");
            story.push((std::mem::take(&mut instructions), hex(bytes)));
        }
    }
    stories
}

fn decodes(file: &str) {
    let (stories, files) = (stories(), sections(file));
    assert_eq!(stories.len(), files.len());
    for (story, sections) in stories.iter().zip(&files) {
        let mut decoder = Decoder::default();
        assert_eq!(story.len(), sections.len());
        for (number, (lines, (instructions, section))) in story.iter().zip(sections).enumerate() {
            decoder.read_instructions::<Fields>(instructions).expect("instructions that are right");
            let mut left = lines.iter();
            let compare = |field: bolide_hpack::DecodedField<'_>| {
                let line = left.next().expect("not more lines than expected");
                assert_eq!((field.name, field.value), (line.0.as_bytes(), &line.1[..]));
                true
            };
            let mut out = Vec::new();
            let stream = number as u64 * 4;
            let decoded = decoder.decode(stream, section, &mut EachField::new(compare), &mut out);
            assert_eq!(decoded, Ok(Decoded::Whole), "section {number}");
            assert!(left.next().is_none(), "section {number}");
        }
    }
}

#[test]
fn sections_of_ls_qpack() {
    decodes(include_str!("../vectors/ls-qpack.txt"));
}

#[test]
fn sections_of_ours() {
    decodes(include_str!("../vectors/bolide.txt"));
}

/// Our sections, each of which the decoder acknowledges before the next.
fn ours() -> String {
    let mut file = String::from("# Made by our encoder: see the README.\n");
    for story in stories() {
        file.push_str("story\n");
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::default());
        encoder.set_peer_capacity(4096);
        for (number, lines) in story.iter().enumerate() {
            let stream = number as u64 * 4;
            let mut out = Vec::new();
            let mut section = encoder.begin(&mut out);
            for (name, value, sensitive) in lines {
                if let NameKind::Pseudo(pseudo) = NameKind::of(name.as_bytes()) {
                    section.pseudo(pseudo, value, &mut out);
                } else {
                    let known = FieldName::lookup(name.as_bytes());
                    section
                        .field(&FieldRef { known, name, value, sensitive: *sensitive }, &mut out);
                }
            }
            section.end(stream, &mut out);
            let instructions = std::mem::take(encoder.instructions().expect("a table is allowed"));
            let mut feedback = Vec::new();
            decoder.read_instructions::<Fields>(&instructions).expect("our own instructions");
            let fields = &mut EachField::new(|_| true);
            decoder.decode(stream, &out, fields, &mut feedback).expect("our own section");
            decoder.increment(&mut feedback);
            encoder.read_feedback(&feedback).expect("our own decoder's instructions");
            for (name, bytes) in [("encoder", &instructions), ("section", &out)] {
                if !bytes.is_empty() {
                    let _ = write!(file, "{name} ");
                    bytes.iter().for_each(|byte| _ = write!(file, "{byte:02x}"));
                    file.push('\n');
                }
            }
        }
    }
    file
}

/// Byte for byte what ls-qpack has decoded. When the encoder is changed on purpose, ls-qpack must see the new sections:
/// see the README. With `BOLIDE_WRITE_VECTORS` in the environment, the file is written anew.
#[test]
fn our_encoder_makes_the_sections_that_a_foreign_decoder_has_understood() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/bolide.txt");
    let ours = ours();
    if option_env!("BOLIDE_WRITE_VECTORS").is_some() {
        std::fs::write(path, &ours).expect("the file can be written");
    }
    assert_eq!(ours, std::fs::read_to_string(path).expect("the file is there"));
}
