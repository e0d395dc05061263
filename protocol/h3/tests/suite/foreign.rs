//! RFC 9114 §6, §7: what aioquic's HTTP/3 layer sends, and what it has understood of ours. `vectors/README.md` says how the
//! files were made.

use std::fmt::Write as _;

use bolide_h3::Limits;
use bolide_semantics::{Content, End, FieldRef, ResponseHead, Role};
use http::{Method, StatusCode};

use crate::subject::{Seen, Subject};

/// A stream, what is sent on it, and whether it ends there.
type Piece = (u64, Vec<u8>, bool);

fn pieces(file: &str) -> Vec<Piece> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let stream = words.next().and_then(|word| word.parse().ok()).expect("a stream");
            let digits: Vec<u32> = words
                .next()
                .unwrap_or_default()
                .chars()
                .filter_map(|digit| digit.to_digit(16))
                .collect();
            let bytes = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
            (stream, bytes, words.next() == Some("end"))
        })
        .collect()
}

fn feed(subject: &mut Subject, pieces: impl Iterator<Item = Piece>) -> Vec<Seen> {
    let mut seen = Vec::new();
    for (stream, bytes, ends) in pieces {
        subject.quic.arrives(stream, &bytes);
        if ends {
            subject.quic.ends(stream);
        }
        seen.extend(subject.poll());
    }
    seen
}

/// Three posts with a body and three gets, all with the same fields.
fn check_requests(mut seen: Vec<Seen>) {
    seen.sort_by_key(|seen| match seen {
        Seen::Head(id, ..) | Seen::Data(id, ..) => *id,
        other => panic!("{other:?}"),
    });
    let mut body = Vec::new();
    let mut heads = Vec::new();
    for seen in seen {
        match seen {
            Seen::Head(_, line, _) => heads.push(line),
            Seen::Data(_, bytes, _) => body.extend(bytes),
            _ => unreachable!(),
        }
    }
    assert_eq!(heads, ["POST /0", "GET /1", "POST /2", "GET /3", "POST /4", "GET /5"]);
    assert_eq!(body, b"body 0body 2body 4");
}

#[test]
fn requests_of_aioquic_in_order_and_before_their_table() {
    let pieces = pieces(include_str!("../vectors/aioquic-client.txt"));
    let mut server = Subject::new(Role::Server, Limits::default());
    check_requests(feed(&mut server, pieces.iter().cloned()));
    assert_eq!(server.head.get_named("x-repeated"), Some(&b"the same in every request"[..]));
    // The sections that refer to the table come before it, and wait.
    let mut server = Subject::new(Role::Server, Limits::default());
    let (encoder, others): (Vec<Piece>, Vec<Piece>) =
        pieces.into_iter().partition(|piece| piece.0 == 6);
    let early = feed(&mut server, others.into_iter());
    assert!(early.len() < 9, "some are blocked: {early:?}");
    let late = feed(&mut server, encoder.into_iter());
    check_requests([early, late].concat());
}

#[test]
fn responses_of_aioquic() {
    let mut client = Subject::new(Role::Client, Limits::default());
    let ids: Vec<u32> =
        (0..3).map(|_| client.request(&Method::GET, &[], End::Yes).expect("room")).collect();
    let seen = feed(&mut client, pieces(include_str!("../vectors/aioquic-server.txt")).into_iter());
    let expected: Vec<Seen> = ids
        .iter()
        .flat_map(|id| {
            [
                Seen::Head(*id, "200".to_owned(), End::No),
                Seen::Data(*id, b"pong".to_vec(), End::No),
                Seen::Trailers(*id, 1),
            ]
        })
        .collect();
    let seen: Vec<Seen> =
        seen.into_iter().filter(|seen| !matches!(seen, Seen::Concurrency(_))).collect();
    assert_eq!(seen, expected);
    assert!(client.connection.is_idle());
}

fn written(subject: &Subject) -> String {
    let mut file = String::from("# Made by our connection: see the README.\n");
    for (stream, sent) in &subject.quic.sent {
        let _ = write!(file, "{stream} ");
        sent.bytes.iter().for_each(|byte| _ = write!(file, "{byte:02x}"));
        file.push_str(if sent.ended { " end\n" } else { "\n" });
    }
    file
}

/// Byte for byte what aioquic has understood. With `BOLIDE_WRITE_VECTORS` in the environment, the files are written anew.
#[test]
fn our_connections_send_what_a_foreign_one_has_understood() {
    let mut client = Subject::client();
    for _ in 0..3 {
        let fields = [FieldRef::named("x-repeated", b"the same in every request")];
        let id = client.request(&Method::POST, &fields, End::No).expect("room for a request");
        assert_eq!(client.give(id, b"ping", End::Yes), Ok(true));
    }
    client.poll();
    let mut server = Subject::server();
    for number in 1..=3_u32 {
        let head = crate::subject::headers(&crate::subject::GET);
        server.feed_all(u64::from(number - 1) * 4, &head);
        let own = [FieldRef::named("x-repeated", b"the same in every response")];
        let head = ResponseHead { length: Some(4), ..ResponseHead::new(StatusCode::OK, &own) };
        let content = Content::Whole(&mut bytes::Bytes::from_static(b"pong").into());
        let sent = server.with(|connection, cx| {
            connection.send_response(cx, bolide_semantics::ExchangeId(number), &head, content)
        });
        assert_eq!(sent, Ok(true));
    }
    server.poll();
    for (subject, name) in [(&client, "client"), (&server, "server")] {
        let path = format!("{}/tests/vectors/bolide-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let ours = written(subject);
        if option_env!("BOLIDE_WRITE_VECTORS").is_some() {
            std::fs::write(&path, &ours).expect("the file can be written");
        }
        assert_eq!(ours, std::fs::read_to_string(&path).expect("the file is there"));
    }
}
