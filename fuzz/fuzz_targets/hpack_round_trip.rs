//! RFC 7541: what our encoder makes of any lines, our decoder turns back into them, while the peer
//! changes the size of the table.

#![no_main]

use arbitrary::Arbitrary;
use bolide_hpack::{Decoder, EachField, Encoder, NameKind, Pseudo};
use bolide_semantics::{FieldName, FieldRef};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
enum Name<'a> {
    Known(u8),
    Pseudo(u8),
    /// One of a few, so that names repeat.
    Custom(u8),
    Other(&'a str),
}

#[derive(Debug, Arbitrary)]
enum Value<'a> {
    /// One of a few, so that lines repeat.
    Frequent(u8),
    /// So many bytes.
    Long(u16),
    Any(&'a [u8]),
}

#[derive(Debug, Arbitrary)]
enum Step<'a> {
    Line { name: Name<'a>, value: Value<'a>, sensitive: bool },
    EndOfBlock,
    TableBytes(u16),
}

impl Name<'_> {
    fn text(&self) -> String {
        match self {
            Self::Known(number) => {
                FieldName::ALL[usize::from(*number) % FieldName::ALL.len()].as_str().to_owned()
            }
            Self::Pseudo(number) => {
                Pseudo::ALL[usize::from(*number) % Pseudo::ALL.len()].as_str().to_owned()
            }
            Self::Custom(number) => format!("x-{}", number % 8),
            Self::Other(text) => (*text).to_owned(),
        }
    }
}

impl Value<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Frequent(number) => format!("value {}", number % 4).into_bytes(),
            Self::Long(length) => vec![b'v'; usize::from(length % 6000)],
            Self::Any(bytes) => bytes.to_vec(),
        }
    }
}

#[derive(Default)]
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    block: Vec<u8>,
    lines: Vec<(String, Vec<u8>, bool)>,
}

impl Pair {
    fn end_of_block(&mut self) {
        self.block.clear();
        self.encoder.begin(&mut self.block);
        for (name, value, sensitive) in &self.lines {
            if let NameKind::Pseudo(pseudo) = NameKind::of(name.as_bytes()) {
                self.encoder.pseudo(pseudo, value, &mut self.block);
            } else {
                let known = FieldName::lookup(name.as_bytes());
                let field = FieldRef { known, name, value, sensitive: *sensitive };
                self.encoder.field(&field, &mut self.block);
            }
        }
        let mut left = self.lines.iter();
        let compare = |field: bolide_hpack::DecodedField<'_>| {
            let (name, value, sensitive) = left.next().expect("not more lines than were encoded");
            assert_eq!((field.name, field.value), (name.as_bytes(), &value[..]));
            let pseudo = matches!(field.kind, NameKind::Pseudo(_));
            assert!(field.never_indexed || !sensitive || pseudo);
            true
        };
        let result = self.decoder.decode(&self.block, &mut EachField::new(compare));
        assert_eq!(result, Ok(()));
        assert!(left.next().is_none());
        assert!(self.encoder.allocated_bytes() <= 16_384);
        self.lines.clear();
    }
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut pair = Pair::default();
    for step in &steps {
        match step {
            Step::Line { name, value, sensitive } => {
                pair.lines.push((name.text(), value.bytes(), *sensitive));
            }
            Step::EndOfBlock => pair.end_of_block(),
            Step::TableBytes(bytes) => {
                pair.end_of_block();
                pair.encoder.set_peer_table_bytes(u32::from(*bytes));
                pair.decoder.set_table_bytes_max(usize::from(*bytes));
            }
        }
    }
    pair.end_of_block();
});
