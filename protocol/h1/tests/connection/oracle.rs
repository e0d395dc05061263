//! RFC 9112 §3, §5: heads that are accepted are read as another parser reads them.

use proptest::prelude::*;

use crate::wire::Wire;

/// Heads that are nearly right: pieces of right ones and of wrong ones.
fn heads() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => "(GET|POST|X-Y) (/[a-z?=]{0,9}|http://a/b|\\*) HTTP/1\\.[01]\r\n",
        1 => "[ -~\t]{0,20}\r\n",
    ];
    let field = prop_oneof![
        4 => Just("Host: a\r\n".to_owned()),
        6 => "[A-Za-z-]{1,70}:[ \t]{0,2}[ -~\u{80}-\u{ff}\t]{0,30}\r\n",
        1 => "[ -~\t\r\n\u{0}]{0,20}\r\n",
        1 => "Content-Length: [0-9]{1,3}\r\n",
    ];
    (line, proptest::collection::vec(field, 0..6)).prop_map(|(line, fields)| {
        let mut bytes = line.into_bytes();
        for field in fields {
            bytes.extend(field.bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    })
}

proptest! {
    #[test]
    fn what_is_accepted_is_read_alike(bytes in heads()) {
        let mut wire = Wire::server();
        wire.listen(&bytes);
        if wire.log.is_empty() || wire.log[0].contains("rejected") {
            return Ok(());
        }
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(&bytes);
        prop_assert!(matches!(parsed, Ok(httparse::Status::Complete(_))), "{:?}", parsed);
        prop_assert_eq!(request.method.unwrap(), wire.head.method().as_str());
        prop_assert!(request.path.unwrap().ends_with(wire.head.path_and_query()));
        let ours: Vec<_> =
            wire.head.fields().map(|field| (field.name.to_owned(), field.value)).collect();
        let theirs: Vec<_> = request
            .headers
            .iter()
            .map(|field| (field.name.to_lowercase(), field.value.trim_ascii()))
            .collect();
        prop_assert_eq!(ours, theirs);
    }
}
