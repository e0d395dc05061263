//! RFC 7541 §4.2, §6, §7.1.3: what the encoder does with lines and sizes.

use bolide_semantics::FieldName;

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
fn lines_of_the_static_table_take_one_byte_and_no_memory() {
    let mut encoder = Encoder::new();
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for status in ["200", "204", "206", "304", "400", "404", "500"] {
        encoder.pseudo(Pseudo::Status, status.as_bytes(), &mut out);
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
}

#[test]
fn a_line_that_comes_again_takes_one_byte() {
    let mut encoder = Encoder::new();
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let first = field(&mut encoder, FieldName::Date, date);
    assert_eq!(first[0], 0x40 | 33);
    assert_eq!(first[1] & 0x80, 0x80, "what is inserted is coded when that is shorter");
    assert_eq!(field(&mut encoder, FieldName::Date, date), [0xbe]);
    assert_eq!(named(&mut encoder, "x-a", "b")[0], 0x40);
    assert_eq!(named(&mut encoder, "x-a", "b"), [0xbe]);
    assert_eq!(field(&mut encoder, FieldName::Date, date), [0xbf]);
    assert_eq!(field(&mut encoder, FieldName::Server, date)[0], 0x40 | 54);
    let mut out = Vec::new();
    encoder.pseudo(Pseudo::Status, b"418", &mut out);
    assert_eq!(out[0], 0x48);
    out.clear();
    encoder.pseudo(Pseudo::Status, b"418", &mut out);
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
    }
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
    encoder.set_peer_table_bytes(100);
    assert_eq!(begin(&mut encoder), [0x3f, 69]);
    encoder.set_peer_table_bytes(20);
    assert_eq!(begin(&mut encoder), [0x34]);
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
            0 => assert!(encoder.allocated_bytes() <= 432, "{}", encoder.allocated_bytes()),
            100 => held = encoder.allocated_bytes(),
            _ => {}
        }
    }
    assert_eq!(encoder.allocated_bytes(), held);
}

#[test]
fn a_stateless_line_means_the_same_whatever_the_tables_hold() {
    let mut out = Vec::new();
    for field in [
        FieldRef::known(FieldName::Etag, b"\"1\""),
        FieldRef::known(FieldName::ContentLength, b"7"),
        FieldRef::known(FieldName::AcceptEncoding, b"gzip, deflate"),
        FieldRef::named("x-a", b"1"),
        FieldRef { sensitive: true, ..FieldRef::known(FieldName::Etag, b"") },
    ] {
        Encoder::stateless(&field, &mut out);
    }
    let expected = b"\x0f\x13\x03\"1\"\x0f\x0d\x017\x90\x00\x03x-a\x011\x1f\x13\x00";
    assert_eq!(out, expected);
}

#[test]
fn what_responses_begin_with_is_encoded_as_its_fields_are() {
    let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
    for status in [200, 204, 304, 404, 418, 599] {
        for length in [None, Some(0), Some(9), Some(10), Some(1234), Some(u64::MAX)] {
            for date in [None, Some(date)] {
                let mut out = b"before".to_vec();
                Encoder::response_start(status, length, date, &mut out);
                let mut decoded = Vec::new();
                let show = |field: crate::DecodedField<'_>| {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    decoded.push((text(field.name), text(field.value)));
                    true
                };
                let mut decoder = crate::Decoder::new(0);
                decoder.decode(&out[6..], &mut crate::EachField::new(show)).unwrap();
                let line = |name: &str, value: String| (name.to_owned(), value);
                let expected: Vec<_> = [
                    Some(line(":status", status.to_string())),
                    length.map(|length| line("content-length", length.to_string())),
                    date.map(|date| line("date", String::from_utf8(date.to_vec()).unwrap())),
                ]
                .into_iter()
                .flatten()
                .collect();
                assert_eq!(decoded, expected);
            }
        }
    }
}
