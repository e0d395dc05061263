//! RFC 7541 Appendix C: its examples, by number.

use bolide_hpack::{Decoder, EachField, Encoder, Pseudo};
use bolide_semantics::{FieldName, FieldRef};

/// Decodes the block, compares the lines, the size of the table and the mark of secrecy.
#[track_caller]
fn check(decoder: &mut Decoder, hex: &str, lines: &[(&str, &str)], table_bytes: usize) {
    let mut left = lines.iter();
    let compare = |field: bolide_hpack::DecodedField<'_>| {
        let (name, value) = left.next().expect("not more lines than expected");
        assert_eq!((field.name, field.value), (name.as_bytes(), value.as_bytes()));
        assert!(field.valid);
        assert_eq!(field.never_indexed, *name == "password");
        true
    };
    decoder.decode(&crate::hex(hex), &mut EachField::new(compare)).expect("an example of the RFC");
    assert_eq!(left.next(), None);
    assert_eq!(decoder.table_bytes(), table_bytes);
}

#[test]
fn c2_field_representations() {
    let custom = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(&mut Decoder::new(4096), custom, &[("custom-key", "custom-header")], 55);
    let path = "040c 2f73 616d 706c 652f 7061 7468";
    check(&mut Decoder::new(4096), path, &[(":path", "/sample/path")], 0);
    let password = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(&mut Decoder::new(4096), password, &[("password", "secret")], 0);
    check(&mut Decoder::new(4096), "82", &[(":method", "GET")], 0);
}

const FIRST: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const SECOND: [(&str, &str); 5] =
    [FIRST[0], FIRST[1], FIRST[2], FIRST[3], ("cache-control", "no-cache")];
const THIRD: [(&str, &str); 5] = [
    FIRST[0],
    (":scheme", "https"),
    (":path", "/index.html"),
    FIRST[3],
    ("custom-key", "custom-value"),
];

#[test]
fn c3_requests() {
    let mut decoder = Decoder::new(4096);
    check(&mut decoder, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", &FIRST, 57);
    check(&mut decoder, "8286 84be 5808 6e6f 2d63 6163 6865", &SECOND, 110);
    let third = "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65";
    check(&mut decoder, third, &THIRD, 164);
}

const CODED_REQUESTS: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

#[test]
fn c4_requests_with_huffman_coding() {
    let mut decoder = Decoder::new(4096);
    check(&mut decoder, CODED_REQUESTS[0], &FIRST, 57);
    check(&mut decoder, CODED_REQUESTS[1], &SECOND, 110);
    check(&mut decoder, CODED_REQUESTS[2], &THIRD, 164);
}

#[test]
fn c4_is_what_the_encoder_makes_of_these_requests() {
    let mut encoder = Encoder::new();
    for (lines, hex) in [&FIRST[..], &SECOND, &THIRD].into_iter().zip(CODED_REQUESTS) {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in lines {
            let pseudo = Pseudo::ALL.into_iter().find(|pseudo| pseudo.as_str() == *name);
            if let Some(pseudo) = pseudo {
                encoder.pseudo(pseudo, value.as_bytes(), &mut out);
            } else {
                let known = FieldName::lookup(name.as_bytes());
                let value = value.as_bytes();
                encoder.field(&FieldRef { known, name, value, sensitive: false }, &mut out);
            }
        }
        assert_eq!(out, crate::hex(hex));
    }
}

const DATE: &str = "Mon, 21 Oct 2013 20:13:21 GMT";
const MOVED: [(&str, &str); 4] = [
    (":status", "302"),
    ("cache-control", "private"),
    ("date", DATE),
    ("location", "https://www.example.com"),
];
const REDIRECTED: [(&str, &str); 4] = [(":status", "307"), MOVED[1], MOVED[2], MOVED[3]];
const FOUND: [(&str, &str); 6] = [
    (":status", "200"),
    MOVED[1],
    ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
    MOVED[3],
    ("content-encoding", "gzip"),
    ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
];

#[test]
fn c5_responses() {
    let mut decoder = Decoder::new(256);
    let first = "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
        2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65
        2e63 6f6d";
    check(&mut decoder, first, &MOVED, 222);
    check(&mut decoder, "4803 3330 37c1 c0bf", &REDIRECTED, 222);
    let third = "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
        54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851
        5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31";
    check(&mut decoder, third, &FOUND, 215);
}

#[test]
fn c6_responses_with_huffman_coding() {
    let mut decoder = Decoder::new(256);
    let first = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
        2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
    check(&mut decoder, first, &MOVED, 222);
    check(&mut decoder, "4883 640e ffc1 c0bf", &REDIRECTED, 222);
    let third = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
        77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587
        3160 65c0 03ed 4ee5 b106 3d50 07";
    check(&mut decoder, third, &FOUND, 215);
}
