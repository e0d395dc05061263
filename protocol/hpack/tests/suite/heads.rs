//! RFC 9113 §8.2, §8.3: what is a head and what is not.

use bolide_hpack::{Decoder, Encoder};
use bolide_semantics::{
    ExchangeKind, ExpectedHead, FieldRef, Head, HeadLimits, HeadReader, HeadSize, HeadSummary,
    Priority,
};
use http::{Method, Version};

const LIMITS: HeadLimits =
    HeadLimits { list_bytes: 32 * 1024, list_excess_count: 4, fields_count: 100 };

type Pair<'a> = (&'a str, &'a str);

const GET: [Pair<'static>; 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a:80")];

fn read(expected: ExpectedHead, lines: &[Pair<'_>], limits: HeadLimits) -> (Head, HeadSummary) {
    let mut block = Vec::new();
    for (name, value) in lines {
        let field = FieldRef { known: None, name, value: value.as_bytes(), sensitive: false };
        Encoder::stateless(&field, &mut block);
    }
    let mut head = Head::default();
    let mut reader = HeadReader::new(&mut head, Version::HTTP_2, expected, limits);
    Decoder::default().decode(&block, &mut reader).expect("our own encoder made the block");
    let summary = reader.finish();
    (head, summary)
}

fn request(lines: &[Pair<'_>]) -> (Head, HeadSummary) {
    read(ExpectedHead::Request, lines, LIMITS)
}

fn with(more: &[Pair<'static>]) -> Vec<Pair<'static>> {
    GET.iter().chain(more).copied().collect()
}

#[test]
fn a_request_becomes_a_head() {
    let (head, summary) =
        request(&with(&[("x-a", "1"), ("content-length", "7"), ("te", "trailers")]));
    assert_eq!(summary.malformed, None);
    assert_eq!(summary.content_length, 7);
    assert_eq!(head.method(), Method::GET);
    assert_eq!(head.path_and_query(), "/");
    assert_eq!(head.authority(), Some("a:80"));
    assert_eq!(head.scheme(), Some("http"));
    assert_eq!(head.get_named("x-a"), Some(&b"1"[..]));
}

#[test]
fn host_stands_in_for_authority() {
    let (head, summary) =
        request(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "b")]);
    assert_eq!(summary.malformed, None);
    assert_eq!(head.authority(), Some("b"));
    assert_eq!(request(&with(&[("host", "A:80")])).1.malformed, None);
}

#[test]
fn connects() {
    let plain = [(":method", "CONNECT"), (":authority", "a:80")];
    assert_eq!(request(&plain).1.malformed, None);
    assert_eq!(request(&plain).1.kind, ExchangeKind::Connect);
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a"),
    ];
    let (head, summary) = request(&extended);
    assert_eq!(summary.malformed, None);
    assert_eq!(head.protocol(), Some("websocket"));
    for bad in [
        &[(":method", "CONNECT")][..],
        &[(":method", "CONNECT"), (":authority", "a")],
        &[(":method", "CONNECT"), (":authority", "a:80"), (":path", "/")],
        &[(":method", "CONNECT"), (":authority", "a:80"), (":scheme", "http")],
        &extended[..4],
        &extended[1..],
    ] {
        assert!(request(bad).1.malformed.is_some(), "{bad:?}");
    }
}

#[test]
fn malformed_requests() {
    let bad_lines: &[Pair<'static>] = &[
        ("X-Upper", "1"),
        ("", "1"),
        ("a b", "1"),
        ("x", " 1"),
        ("x", "1 "),
        ("x", "\t1"),
        ("x", "a\nb"),
        ("x", "a\0b"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("content-length", "1,1"),
        ("content-length", "-1"),
        ("content-length", ""),
        ("host", "other"),
        (":path", "/"),
        (":method", "GET"),
        (":status", "200"),
        (":unknown", "1"),
        (":protocol", "websocket"),
    ];
    for line in bad_lines {
        assert!(request(&with(&[*line])).1.malformed.is_some(), "{line:?}");
        let mut first = vec![*line];
        first.extend(GET);
        assert!(request(&first).1.malformed.is_some(), "{line:?} first");
    }
    assert!(
        request(&with(&[("content-length", "1"), ("content-length", "2")])).1.malformed.is_some()
    );
    assert!(
        request(&with(&[("content-length", "1"), ("content-length", "1")])).1.malformed.is_none()
    );
    for missing in 0..3 {
        let mut lines = GET.to_vec();
        lines.remove(missing);
        assert!(request(&lines).1.malformed.is_some(), "{missing}");
    }
    assert!(request(&GET[..3]).1.malformed.is_some());
}

#[test]
fn pseudo_fields_have_values_of_their_own_kind() {
    for (name, value) in [
        (":method", "GE T"),
        (":method", ""),
        (":scheme", "ht tp"),
        (":scheme", ""),
        (":path", ""),
        (":path", "a"),
        (":path", "*"),
        (":path", "/a b"),
        (":path", "http://a/"),
        (":authority", ""),
        (":authority", "user@a"),
        (":authority", "a:b"),
        (":authority", "a/"),
    ] {
        let mut lines = GET.to_vec();
        let place = lines.iter().position(|line| line.0 == name).unwrap();
        lines[place].1 = value;
        assert!(request(&lines).1.malformed.is_some(), "{name} {value:?}");
    }
    let mut lines = GET.to_vec();
    lines[0].1 = "OPTIONS";
    lines[2].1 = "*";
    assert_eq!(request(&lines).1.malformed, None);
}

#[test]
fn responses() {
    let response = |lines: &[Pair<'_>]| read(ExpectedHead::Response, lines, LIMITS).1;
    assert_eq!(response(&[(":status", "204"), ("server", "x")]).malformed, None);
    for bad in [
        &[("server", "x")][..],
        &[(":status", "20")],
        &[(":status", "2000")],
        &[(":status", "099")],
        &[(":status", "600")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[("server", "x"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), ("connection", "close")],
    ] {
        assert!(response(bad).malformed.is_some(), "{bad:?}");
    }
}

#[test]
fn trailers_have_no_pseudo_fields() {
    let trailers = |lines: &[Pair<'_>]| read(ExpectedHead::Trailers, lines, LIMITS).1;
    assert_eq!(trailers(&[("grpc-status", "0")]).malformed, None);
    assert!(trailers(&[(":status", "200")]).malformed.is_some());
    assert!(trailers(&[("connection", "x")]).malformed.is_some());
}

#[test]
fn sizes_are_judged() {
    let limits = HeadLimits { list_bytes: 400, ..LIMITS };
    let long = |length| "x".repeat(length);
    for (length, size) in
        [(150, HeadSize::Fine), (500, HeadSize::Excessive), (2000, HeadSize::Absurd)]
    {
        let value = long(length);
        let mut lines: Vec<Pair<'_>> = GET.to_vec();
        lines.push(("a", &value));
        assert_eq!(read(ExpectedHead::Request, &lines, limits).1.size, size, "{length}");
    }
    let mut lines = GET.to_vec();
    lines.extend([("cookie", "a=b"); 100]);
    assert_eq!(request(&lines).1.size, HeadSize::Fine);
    lines.push(("cookie", "a=b"));
    let (head, summary) = request(&lines);
    assert_eq!(summary.size, HeadSize::Excessive);
    assert_eq!(summary.malformed, None);
    assert_eq!(head.field_count(), 100);
}

#[test]
fn priorities_and_patience() {
    let (_, summary) =
        request(&with(&[("priority", "u=1, i"), ("content-type", "application/grpc+proto")]));
    assert_eq!(summary.priority, Some(Priority { urgency: 1, incremental: true }));
    assert_eq!(summary.kind, ExchangeKind::Call);
    let (_, summary) = request(&with(&[("content-type", "text/plain")]));
    assert_eq!(summary.priority, None);
    assert_eq!(summary.kind, ExchangeKind::Message);
}

#[test]
fn what_must_enter_no_table_is_marked() {
    let mut head = Head::default();
    let mut reader = HeadReader::new(&mut head, Version::HTTP_2, ExpectedHead::Request, LIMITS);
    let mut block = Vec::new();
    for (name, value, sensitive) in [
        (":method", "GET", true),
        (":scheme", "http", false),
        (":path", "/", false),
        (":authority", "a", false),
        ("cookie", "secret", true),
        ("x-a", "b", false),
    ] {
        let value = value.as_bytes();
        Encoder::stateless(&FieldRef { known: None, name, value, sensitive }, &mut block);
    }
    Decoder::default().decode(&block, &mut reader).expect("our own encoder made the block");
    assert_eq!(reader.finish().malformed, None);
    let sensitive: Vec<bool> = head.fields().map(|field| field.sensitive).collect();
    assert_eq!(sensitive, [true, false]);
    assert!(head.fields().next().map(FieldRef::from).is_some_and(|field| field.sensitive));
}

/// Fields that the table holds one after the other are copied together.
#[test]
fn limits_hold_among_fields_that_are_copied_together() {
    let mut decoder = Decoder::default();
    let mut block = Vec::new();
    let mut encoder = Encoder::new();
    let fields: Vec<_> = (0..10).map(|number| (format!("x-{number}"), "v".repeat(65))).collect();
    let mut read = |limits| {
        block.clear();
        encoder.begin(&mut block);
        for (name, value) in GET {
            let pseudo = bolide_semantics::Pseudo::ALL.into_iter().find(|one| one.as_str() == name);
            encoder.pseudo(pseudo.unwrap(), value.as_bytes(), &mut block);
        }
        for (name, value) in &fields {
            encoder.field(&FieldRef::named(name, value.as_bytes()), &mut block);
        }
        let mut head = Head::default();
        let request = ExpectedHead::Request;
        let mut reader = HeadReader::new(&mut head, Version::HTTP_2, request, limits);
        decoder.decode(&block, &mut reader).unwrap();
        let summary = reader.finish();
        let names: Vec<_> = head.fields().map(|field| field.name.to_owned()).collect();
        assert!(head.fields().all(|field| field.value == [b'v'; 65]));
        (summary.malformed, summary.size, names.len(), block.len())
    };
    assert_eq!(read(LIMITS).2, 10);
    let (.., bytes) = read(LIMITS);
    assert!(bytes < 20, "the fields are in the table: {bytes} bytes");
    let pseudo_fields =
        GET.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>();
    // Each field takes 3 + 65 + 32 bytes.
    for kept in 0..10_u32 {
        let list_bytes = pseudo_fields as u32 + 100 * kept;
        let limits = HeadLimits { list_bytes, list_excess_count: 10, ..LIMITS };
        let (malformed, size, count, _) = read(limits);
        assert_eq!((malformed, size, count), (None, HeadSize::Excessive, kept as usize));
        let (malformed, size, count, _) = read(HeadLimits { fields_count: 4 + kept, ..LIMITS });
        assert_eq!(malformed, None);
        let most = 4 + kept as usize;
        let expected = if most < 10 { HeadSize::Excessive } else { HeadSize::Fine };
        assert_eq!((size, count), (expected, most.min(10)));
    }
    let tiny = HeadLimits { list_bytes: 100, list_excess_count: 4, ..LIMITS };
    assert_eq!(read(tiny).1, HeadSize::Absurd);
}
