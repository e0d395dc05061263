//! Definitions, messages, and what is wrong with them.

use super::*;

const SHOP: &str = r#"
syntax = "proto3";
package shop;
message Item { int32 item = 1; repeated string names = 2; }
message Nothing {}
service Cart {
  rpc Add(Item) returns (Nothing);
  rpc AddAll(stream Item) returns (Nothing);
}
"#;

fn pool() -> DescriptorPool {
    let file = protox::file::File::from_source("shop.proto", SHOP).unwrap();
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_proto(file.file_descriptor_proto().clone()).unwrap();
    pool
}

fn method(name: &str) -> MethodDescriptor {
    find(&pool(), "shop.Cart", name).unwrap()
}

#[test]
fn json_becomes_messages_with_their_lengths() {
    let one = body(&method("Add"), br#"{"item": 7, "names": ["a"]}"#, 1).unwrap();
    assert_eq!(&one[..], b"\0\0\0\0\x05\x08\x07\x12\x01a");
    assert_eq!(&body(&method("Add"), b" ", 1).unwrap()[..], b"\0\0\0\0\0");
    let stream = body(&method("AddAll"), br#"[{"item": 1}, {}]"#, 2).unwrap();
    assert_eq!(&stream[..], b"\0\0\0\0\x02\x08\x01\0\0\0\0\0\0\0\0\0\x02\x08\x01\0\0\0\0\0");
}

#[test]
fn what_is_no_message_is_told_why() {
    for (name, json, expected) in [
        ("Add", "{", "the message is not JSON: EOF"),
        ("Add", "[]", "takes one message, not a list"),
        ("Add", r#"{"itme": 7}"#, "the message is not a `shop.Item`: unrecognized field name"),
        ("AddAll", r#"[{"item": "x"}]"#, "the message is not a `shop.Item`: "),
    ] {
        let why = body(&method(name), json.as_bytes(), 1).unwrap_err();
        assert!(why.starts_with(expected), "{json}: {why}");
    }
    let why = find(&pool(), "shop.Cat", "Add").unwrap_err();
    assert_eq!(why, "there is no service `shop.Cat`, only shop.Cart");
    let why = find(&pool(), "shop.Cart", "Ad").unwrap_err();
    assert_eq!(why, "`shop.Cart` has no method `Ad`, only Add, AddAll");
}

#[test]
fn deadlines_have_at_most_eight_digits() {
    for (deadline, expected) in [
        (Duration::from_nanos(5), "5n"),
        (Duration::from_millis(500), "500000u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_secs(1_000_000), "1000000S"),
        (Duration::MAX, "99999999S"),
    ] {
        assert_eq!(timeout(deadline), expected);
    }
}
