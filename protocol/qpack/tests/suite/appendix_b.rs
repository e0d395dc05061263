//! RFC 9204 Appendix B: the examples of the specification, in their order, on one connection.

use bolide_hpack::EachField;
use bolide_qpack::{Decoded, Decoder};

use crate::{Fields, hex};

fn section(
    decoder: &mut Decoder,
    stream: u64,
    bytes: &str,
    out: &mut Vec<u8>,
) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let decoded = decoder.decode(
        stream,
        &hex(bytes),
        &mut EachField::new(|field| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            lines.push((text(field.name), text(field.value)));
            true
        }),
        out,
    );
    assert_eq!(decoded, Ok(Decoded::Whole));
    lines
}

fn pairs(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_examples_of_appendix_b() {
    let mut decoder = Decoder::new(220, 1);
    let mut out = Vec::new();
    // B.1: a literal with a name of the static table.
    let lines = section(&mut decoder, 0, "0000 510b2f696e6465782e68746d6c", &mut out);
    assert_eq!(lines, pairs(&[(":path", "/index.html")]));
    assert!(out.is_empty(), "nothing of the table was used");

    // B.2: a section that comes before the entries it refers to.
    let blocked = decoder.decode(4, &hex("0381 10 11"), &mut EachField::new(|_| true), &mut out);
    assert_eq!(blocked, Ok(Decoded::Blocked(2)));
    let instructions =
        hex("3fbd01 c00f7777772e6578616d706c652e636f6d c10c2f73616d706c652f70617468");
    decoder.read_instructions::<Fields>(&instructions).unwrap();
    assert_eq!(decoder.table_bytes(), 106);
    assert!(decoder.is_ready(2));
    decoder.unblock();
    let lines = section(&mut decoder, 4, "0381 10 11", &mut out);
    assert_eq!(lines, pairs(&[(":authority", "www.example.com"), (":path", "/sample/path")]));
    decoder.increment(&mut out);
    assert_eq!(out, hex("84"), "the acknowledgement says it all");

    // B.3: an insertion ahead of its use.
    let instructions = hex("4a637573746f6d2d6b6579 0c637573746f6d2d76616c7565");
    decoder.read_instructions::<Fields>(&instructions).unwrap();
    assert_eq!(decoder.table_bytes(), 160);
    out.clear();
    decoder.increment(&mut out);
    assert_eq!(out, hex("01"));

    // B.4: a duplicate, and a section that the decoder gives up.
    decoder.read_instructions::<Fields>(&hex("02")).unwrap();
    assert_eq!(decoder.table_bytes(), 217);
    out.clear();
    decoder.cancel(8, &mut out);
    assert_eq!(out, hex("48"));
    let lines = section(&mut decoder, 8, "0500 80 c1 81", &mut out);
    let expected =
        [(":authority", "www.example.com"), (":path", "/"), ("custom-key", "custom-value")];
    assert_eq!(lines, pairs(&expected));

    // B.5: an insertion by the name of an entry, for which another leaves.
    let instructions = hex("810d637573746f6d2d76616c756532");
    decoder.read_instructions::<Fields>(&instructions).unwrap();
    assert_eq!((decoder.inserted(), decoder.table_bytes()), (5, 215));
    let gone = decoder.decode(12, &hex("0282 10"), &mut EachField::new(|_| true), &mut out);
    assert!(gone.is_err(), "the first entry has left");
}
