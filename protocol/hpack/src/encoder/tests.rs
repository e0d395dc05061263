//! RFC 7541 §4.2, §6, §7.1.3: what the encoder does with lines and sizes.

use super::*;

fn field(encoder: &mut Encoder, name: FieldName, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    encoder.field(&FieldRef::known(name, value.as_bytes()), &mut out);
    out
}

fn named(encoder: &mut Encoder, name: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let line = FieldRef { known: None, name, value: value.as_bytes(), sensitive: false };
    encoder.field(&line, &mut out);
    out
}

fn begin(encoder: &mut Encoder) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    out
}

#[test]
fn lines_of_the_static_table_take_one_octet_and_no_memory() {
    let mut encoder = Encoder::new();
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for status in [200, 204, 206, 304, 400, 404, 500] {
        encoder.status(status, &mut out);
    }
    for (pseudo, value) in [
        (Pseudo::Method, "GET"),
        (Pseudo::Method, "POST"),
        (Pseudo::Path, "/"),
        (Pseudo::Path, "/index.html"),
        (Pseudo::Scheme, "http"),
        (Pseudo::Scheme, "https"),
        (Pseudo::Authority, ""),
    ] {
        encoder.pseudo(pseudo, value.as_bytes(), &mut out);
    }
    let line = FieldRef::known(FieldName::AcceptEncoding, b"gzip, deflate");
    encoder.field(&line, &mut out);
    encoder.field(&FieldRef::known(FieldName::ContentLength, b""), &mut out);
    let indices = [8, 9, 10, 11, 12, 13, 14, 2, 3, 4, 5, 6, 7, 1, 16, 28];
    assert_eq!(out, indices.map(|index| 0x80 | index));
    assert_eq!(encoder.allocated_bytes(), 0);
    assert_eq!(encoder.generation(), 0);
}

#[test]
fn a_line_that_comes_again_takes_one_octet() {
    let mut encoder = Encoder::new();
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let first = field(&mut encoder, FieldName::Date, date);
    assert_eq!(first[0], 0x40 | 33);
    assert_eq!(first[1] & 0x80, 0x80, "what is inserted is coded when that is shorter");
    let generation = encoder.generation();
    assert_eq!(field(&mut encoder, FieldName::Date, date), [0xbe]);
    assert_eq!(encoder.generation(), generation);
    assert_eq!(named(&mut encoder, "x-a", "b")[0], 0x40);
    assert_ne!(encoder.generation(), generation);
    assert_eq!(named(&mut encoder, "x-a", "b"), [0xbe]);
    assert_eq!(field(&mut encoder, FieldName::Date, date), [0xbf]);
    assert_eq!(field(&mut encoder, FieldName::Server, date)[0], 0x40 | 54);
    let mut out = Vec::new();
    encoder.status(418, &mut out);
    assert_eq!(out[0], 0x48);
    out.clear();
    encoder.status(418, &mut out);
    assert_eq!(out, [0xbe]);
}

#[test]
fn secrets_and_short_cookies_never_enter_a_table() {
    let mut encoder = Encoder::new();
    for name in [FieldName::Authorization, FieldName::ProxyAuthorization, FieldName::Cookie] {
        let block = field(&mut encoder, name, "abc");
        assert_eq!(block[0] & 0xf0, 0x10, "{name:?}");
    }
    let line = FieldRef { known: None, name: "x-key", value: b"", sensitive: true };
    let mut out = Vec::new();
    encoder.field(&line, &mut out);
    assert_eq!(out[0], 0x10);
    out.clear();
    // Not even as a reference to the static table's empty value.
    encoder.field(&FieldRef { sensitive: true, ..FieldRef::known(FieldName::Etag, b"") }, &mut out);
    assert_eq!(out[0] & 0xf0, 0x10);
    assert_eq!(encoder.allocated_bytes(), 0);
    let long = field(&mut encoder, FieldName::Cookie, "session=0123456789abcdef");
    assert_eq!(long[0] & 0xc0, 0x40);
}

#[test]
fn what_changes_with_every_message_stays_out() {
    let mut encoder = Encoder::new();
    assert_eq!(field(&mut encoder, FieldName::ContentLength, "1234"), *b"\x0f\x0d\x041234");
    assert_eq!(field(&mut encoder, FieldName::Etag, "\"a\"")[0], 0x0f);
    let long = field(&mut encoder, FieldName::Location, "https://www.example.com/a/b/c");
    assert_eq!(long[2] & 0x80, 0x80, "long values are coded");
    assert_eq!(encoder.generation(), 0);
}

#[test]
fn values_that_never_repeat_do_not_churn_the_table() {
    let mut encoder = Encoder::new();
    let path = |encoder: &mut Encoder, value: &str| {
        let mut out = Vec::new();
        encoder.pseudo(Pseudo::Path, value.as_bytes(), &mut out);
        out[0]
    };
    assert_eq!(path(&mut encoder, "/0"), 0x44);
    for round in 1..=7 {
        assert_eq!(path(&mut encoder, &format!("/{round}")), 0x04);
        assert_eq!(encoder.withheld(), round);
    }
    assert_eq!(encoder.generation(), 1);
    assert_eq!(path(&mut encoder, "/8"), 0x44, "now and then one is tried");
    assert_eq!(path(&mut encoder, "/8"), 0xbe);
    assert_eq!(path(&mut encoder, "/9"), 0x44, "after one that was of use the next is inserted");
    // A name that is not in the static table is then taken from the dynamic one.
    assert_eq!(named(&mut encoder, "x-request-id", "1")[0], 0x40);
    assert_eq!(named(&mut encoder, "x-request-id", "2"), *b"\x0f\x2f\x012");
}

#[test]
fn a_line_of_half_the_table_stays_out() {
    let mut encoder = Encoder::new();
    let value = "v".repeat(2049 - 32 - 3);
    assert_eq!(named(&mut encoder, "x-a", &value)[0], 0);
    assert_eq!(encoder.generation(), 0);
    assert_eq!(named(&mut encoder, "x-a", &value[1..])[0], 0x40);
}

#[test]
fn size_updates_say_the_least_and_the_last() {
    let mut encoder = Encoder::new();
    assert_eq!(begin(&mut encoder), []);
    encoder.set_peer_table_bytes(65_536);
    assert_eq!(begin(&mut encoder), [], "4096 is enough");
    named(&mut encoder, "x-a", "b");
    encoder.set_peer_table_bytes(0);
    encoder.set_peer_table_bytes(20);
    encoder.set_peer_table_bytes(10_000);
    assert_eq!(begin(&mut encoder), [0x20, 0x3f, 0xe1, 0x1f], "0, then 4096");
    assert_eq!(encoder.allocated_bytes(), 0);
    assert_eq!(begin(&mut encoder), []);
    assert_eq!(named(&mut encoder, "x-a", "b")[0], 0x40, "the table was emptied");
    let generation = encoder.generation();
    encoder.set_peer_table_bytes(100);
    assert_eq!(begin(&mut encoder), [0x3f, 69]);
    assert_eq!(encoder.generation(), generation, "nothing left the table");
    encoder.set_peer_table_bytes(20);
    assert_eq!(begin(&mut encoder), [0x34]);
    assert_ne!(encoder.generation(), generation);
    encoder.set_peer_table_bytes(10);
    encoder.set_peer_table_bytes(20);
    assert_eq!(begin(&mut encoder), [0x2a, 0x34]);
}

#[test]
fn a_peer_without_a_table_gets_literals() {
    let mut encoder = Encoder::new();
    encoder.set_peer_table_bytes(0);
    assert_eq!(begin(&mut encoder), [0x20]);
    for _ in 0..3 {
        assert_eq!(named(&mut encoder, "x-a", "b"), *b"\x00\x03x-a\x01b");
        assert_eq!(field(&mut encoder, FieldName::Server, "b"), *b"\x0f\x27\x01b");
    }
    assert_eq!(encoder.allocated_bytes(), 0);
}

#[test]
fn a_typical_connection_needs_little_memory_and_no_more_of_it() {
    let mut encoder = Encoder::new();
    let mut held = 0;
    for second in 0..200 {
        let date = format!("Sun, 06 Nov 1994 08:{:02}:{:02} GMT", second / 60, second % 60);
        for _ in 0..2 {
            field(&mut encoder, FieldName::Server, "bolide");
            field(&mut encoder, FieldName::Date, &date);
            field(&mut encoder, FieldName::ContentType, "text/html; charset=utf-8");
        }
        match second {
            0 => assert!(encoder.allocated_bytes() <= 320, "{}", encoder.allocated_bytes()),
            100 => held = encoder.allocated_bytes(),
            _ => {}
        }
    }
    assert_eq!(encoder.allocated_bytes(), held);
}

#[test]
fn fixed_lines_are_encoded_as_ever_whatever_the_table_holds() {
    let mut encoder = Encoder::new();
    let mut fixed_count = 0;
    for _ in 0..3 {
        for &name in FieldName::ALL {
            let line = FieldRef::known(name, b"some value of a header field");
            let (mut fixed, changes) = (Vec::new(), encoder.generation());
            let is_fixed = Encoder::fixed(&line, &mut fixed);
            let sent = field(&mut encoder, name, "some value of a header field");
            if is_fixed {
                assert_eq!((sent, encoder.generation()), (fixed, changes), "{name:?}");
                fixed_count += 1;
            } else {
                assert!(fixed.is_empty());
            }
        }
    }
    assert!(fixed_count >= 3 * 20, "{fixed_count}");
    let named = |sensitive| FieldRef { known: None, name: "x-a", value: b"1", sensitive };
    let mut out = Vec::new();
    assert!(!Encoder::fixed(&named(false), &mut out));
    assert!(Encoder::fixed(&named(true), &mut out));
    assert_eq!(out, b"\x10\x03x-a\x011");
}
