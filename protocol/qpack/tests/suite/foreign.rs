//! RFC 9204 with ls-qpack at the other end: table sizes, blocked sections and acknowledgments, in both directions.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bolide_hpack::{DecodedField, EachField};
use bolide_launcher::{root, skip};
use bolide_qpack::{Decoded, Decoder, Encoder};
use bolide_semantics::FieldRef;

use crate::Fields;

const SECTIONS_COUNT: u64 = 60;

/// An encoder and a decoder in a process of their own.
struct Foreign {
    child: Child,
    orders: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl Foreign {
    fn start(test: &str) -> Option<Self> {
        let environment = root().join("target/tools/python");
        let installed = std::fs::read_to_string(environment.join("ready")).unwrap_or_default();
        if !installed.contains("aioquic") {
            skip(&format!("aioquic for Python is not installed ({test})"));
            return None;
        }
        let mut child = Command::new(environment.join("bin/python"))
            .arg(root().join("protocol/qpack/tests/foreign.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let orders = child.stdin.take().expect("a pipe");
        let responses = BufReader::new(child.stdout.take().expect("a pipe"));
        Some(Self { child, orders, responses })
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("Python reads");
        let mut response = String::new();
        assert_ne!(self.responses.read_line(&mut response).expect("text"), 0, "{order} failed");
        response.trim_end().to_owned()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It may have ended by an error of its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn bytes(text: &str) -> Vec<u8> {
    let digit = |place| u8::from_str_radix(&text[place..place + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

/// Fields of a section: some that are the same in each, some that come back, one that never does.
fn lines(number: u64) -> [(&'static str, String); 4] {
    [
        ("user-agent", "the same in each section".to_owned()),
        ("referer", format!("https://example.com/{}", number % 7)),
        ("etag", format!("\"{number}\"")),
        ("cookie", String::new()),
    ]
}

fn text(number: u64) -> String {
    lines(number).iter().fold(String::new(), |text, (name, value)| {
        text + &format!("{}={},", hex(name.as_bytes()), hex(value.as_bytes()))
    })
}

fn decode(
    decoder: &mut Decoder,
    stream: u64,
    section: &[u8],
    out: &mut Vec<u8>,
) -> (Option<Decoded>, String) {
    let mut seen = String::new();
    let each = &mut EachField::new(|field: DecodedField<'_>| {
        write!(seen, "{}={},", hex(field.name), hex(field.value)).expect("a string");
        true
    });
    let decoded = decoder.decode(stream, section, each, out).ok();
    (decoded, seen)
}

#[test]
fn sections_of_ls_qpack_with_tables_of_several_sizes() {
    let Some(mut foreign) = Foreign::start("sections_of_ls_qpack") else { return };
    for (capacity, blocked_max) in [(0, 0), (256, 0), (256, 16), (1024, 1), (4096, 16)] {
        let mut decoder = Decoder::new(capacity, blocked_max);
        let set = bytes(&foreign.order(&format!("start {capacity} {blocked_max}")));
        decoder.read_instructions::<Fields>(&set).expect("a capacity that is allowed");
        let mut blocked = 0;
        for number in 0..SECTIONS_COUNT {
            let (stream, mut out) = (number * 4, Vec::new());
            let response = foreign.order(&format!("encode {stream} {}", text(number)));
            let (instructions, section) = response.split_once('/').expect("two parts");
            let section = bytes(section);
            // The section overtakes its instructions.
            let (mut decoded, mut seen) = decode(&mut decoder, stream, &section, &mut out);
            decoder.read_instructions::<Fields>(&bytes(instructions)).expect("they are right");
            if let Some(Decoded::Blocked(required)) = decoded {
                blocked += 1;
                // One that may not wait is refused.
                let (refused, _) =
                    decode(&mut Decoder::new(capacity, 0), stream, &section, &mut Vec::new());
                assert!(refused.is_none(), "{capacity}, {number}");
                assert!(decoder.is_ready(required), "{capacity}, {number}");
                decoder.unblock();
                (decoded, seen) = decode(&mut decoder, stream, &section, &mut out);
            }
            assert!(matches!(decoded, Some(Decoded::Whole)), "{capacity}, {number}");
            assert_eq!(seen, text(number), "{capacity}");
            if capacity == 0 {
                for length in 0..section.len() {
                    let (whole, seen) =
                        decode(&mut decoder, stream, &section[..length], &mut Vec::new());
                    assert!(whole.is_none() || seen != text(number), "{length} bytes of {number}");
                }
            }
            decoder.increment(&mut out);
            foreign.order(&format!("feedback {}", hex(&out)));
        }
        assert_eq!(blocked > 0, blocked_max > 0, "{capacity}: {blocked} were blocked");
        assert_eq!(decoder.inserted() > 0, capacity > 0, "{capacity}");
    }
}

#[test]
fn our_sections_as_ls_qpack_reads_them_never_block() {
    let Some(mut foreign) = Foreign::start("our_sections_as_ls_qpack_reads_them") else { return };
    for capacity in [0, 256, 1024, 4096] {
        foreign.order(&format!("start {capacity} 0"));
        let mut encoder = Encoder::new();
        encoder.set_peer_capacity(capacity.into());
        // pylsqpack has no Insert Count Increment: ours counts what ls-qpack has been given.
        let (mut counter, mut acknowledged) = (Decoder::new(capacity, 0), false);
        for number in 0..SECTIONS_COUNT {
            let (stream, mut out) = (number * 4, Vec::new());
            let mut section = encoder.begin(&mut out);
            for (name, value) in &lines(number) {
                section.field(&FieldRef::named(name, value.as_bytes()), &mut out);
            }
            section.end(stream, &mut out);
            // The section overtakes its instructions.
            let response = foreign.order(&format!("decode {stream} {}", hex(&out)));
            let (feedback, seen) = response.split_once('/').expect("it is not blocked");
            assert_eq!(seen, text(number), "{capacity}");
            acknowledged |= !feedback.is_empty();
            encoder.read_feedback(&bytes(feedback)).expect("feedback that is right");
            let Some(instructions) = encoder.instructions().map(std::mem::take) else { continue };
            foreign.order(&format!("instructions {}", hex(&instructions)));
            counter.read_instructions::<Fields>(&instructions).expect("instructions of ours");
            let mut increment = Vec::new();
            counter.increment(&mut increment);
            encoder.read_feedback(&increment).expect("what was inserted");
        }
        // Only a section that refers to the table is acknowledged (§4.4.1).
        assert_eq!(acknowledged, capacity > 0, "{capacity}");
    }
}
