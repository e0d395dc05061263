use bolide_semantics::HeadKind;

use super::*;

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A head of HTTP/1.1 with these fields.
fn head(kind: HeadKind, version: Version, fields: &[(FieldName, &str)]) -> Head {
    let mut head = Head::default();
    head.clear(kind, version);
    for (name, value) in fields {
        head.push_field(*name, value.as_bytes());
    }
    head
}

const RIGHT: [(FieldName, &str); 4] = [
    (FieldName::Upgrade, "h2c, WebSocket"),
    (FieldName::Connection, "keep-alive, Upgrade"),
    (FieldName::SecWebsocketKey, KEY),
    (FieldName::SecWebsocketVersion, "13"),
];

/// The right request, with one field replaced, or left out when the value is empty.
fn with(name: FieldName, value: &'static str) -> Head {
    let mut fields = RIGHT.to_vec();
    fields.retain(|(known, _)| *known != name);
    if !value.is_empty() {
        fields.push((name, value));
    }
    head(HeadKind::Request, Version::HTTP_11, &fields)
}

#[test]
fn a_right_request_is_granted() {
    let mut head = with(FieldName::SecWebsocketExtensions, "permessage-deflate");
    for names in ["chat, superchat", "echo"] {
        head.push_field(FieldName::SecWebsocketProtocol, names.as_bytes());
    }
    let request = Request::check(&head).unwrap();
    assert_eq!(request.accept().unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(request.protocols().collect::<Vec<_>>(), ["chat", "superchat", "echo"]);
    assert!(request.deflate(&DeflatePolicy::default()).is_some());
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |head: &Head| Request::check(head).unwrap_err();
    assert_eq!(refused(&with(FieldName::Upgrade, "")), NO_UPGRADE);
    assert_eq!(refused(&with(FieldName::Upgrade, "h2c")), NO_UPGRADE);
    assert_eq!(refused(&with(FieldName::Connection, "close")), NO_UPGRADE);
    assert_eq!(refused(&with(FieldName::SecWebsocketVersion, "8")), VERSION_REFUSAL);
    assert_eq!(refused(&with(FieldName::SecWebsocketVersion, "")), VERSION_REFUSAL);
    for key in ["", "short", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZQ=!"] {
        assert_eq!(refused(&with(FieldName::SecWebsocketKey, key)), NO_KEY, "{key}");
    }
    let mut twice = with(FieldName::Te, "");
    twice.push_field(FieldName::SecWebsocketKey, KEY.as_bytes());
    assert_eq!(refused(&twice), NO_KEY);
    let mut posted = with(FieldName::Te, "");
    posted.set_method(Method::POST);
    assert_eq!(refused(&posted), NOT_GET);
    assert_eq!(refused(&head(HeadKind::Request, Version::HTTP_10, &RIGHT)), TOO_OLD);
}

#[test]
fn over_http2_and_http3_it_is_an_extended_connect() {
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let mut head = head(HeadKind::Request, version, &[(FieldName::SecWebsocketVersion, "13")]);
        assert_eq!(Request::check(&head).unwrap_err(), NEEDS_CONNECT);
        head.set_method(Method::CONNECT);
        assert_eq!(Request::check(&head).unwrap_err(), OTHER_PROTOCOL);
        let protocol = head.push_text(b"websocket");
        head.set_protocol(protocol);
        assert_eq!(Request::check(&head).unwrap().accept(), None);
    }
}

#[test]
fn a_client_checks_the_response() {
    let response = |status: u16, accept: &str, protocol: &str| {
        let fields = [
            (FieldName::Upgrade, "websocket"),
            (FieldName::Connection, "upgrade"),
            (FieldName::SecWebsocketAccept, accept),
            (FieldName::SecWebsocketProtocol, protocol),
        ];
        let count = if protocol.is_empty() { 3 } else { 4 };
        let mut head = head(HeadKind::Response, Version::HTTP_11, &fields[..count]);
        head.set_status(StatusCode::from_u16(status).unwrap());
        head
    };
    let accept = accept_key(KEY.as_bytes());
    let check =
        |head: &Head| check_response(head, KEY, &["echo"]).map(|name| name.map(str::to_owned));
    assert_eq!(check(&response(101, &accept, "")), Ok(None));
    assert_eq!(check(&response(101, &accept, "echo")), Ok(Some("echo".to_owned())));
    assert!(check(&response(101, &accept, "chat")).is_err());
    assert!(check(&response(101, &accept_key(b"other"), "")).is_err());
    assert!(check(&response(200, &accept, "")).is_err());

    for version in [Version::HTTP_2, Version::HTTP_3] {
        let mut multiplexed = head(HeadKind::Response, version, &[]);
        multiplexed.set_status(StatusCode::OK);
        assert_eq!(check(&multiplexed), Ok(None));
        multiplexed.set_status(StatusCode::NOT_FOUND);
        assert!(check(&multiplexed).is_err());
    }
}

#[test]
fn keys_have_the_right_form() {
    assert!(is_key(key([7; 16]).as_bytes()));
}
