//! The whole stack of a connection, both roles, in memory: version, TLS, and what never completes.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{
    Alpn, ClientTls, Connection, Identity, Limits, ServerTls, Trust, WallClock,
};
use bolide_semantics::{
    Content, Context, DeadlineReason, End, ExchangeEvent, ExchangeId, Head, Output, RequestHead,
    ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode, Version};

/// The one instant from which the tests count.
#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// A connection with the buffers that a worker would lend it.
struct Side {
    connection: Connection,
    input: ReceiveBuffer,
    plain: ReceiveBuffer,
    rest: Box<[u8]>,
    output: SendQueue,
    head: Head,
    now: Instant,
    limits: Limits,
}

impl Side {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            input: ReceiveBuffer::new(65_536),
            plain: ReceiveBuffer::new(65_536),
            rest: Box::default(),
            output: SendQueue::new(),
            head: Head::default(),
            now: start(),
            limits: Limits::default(),
        }
    }

    fn server(tls: Option<&ServerTls>) -> Self {
        let tls = tls.map(|tls| tls.accept().unwrap());
        Self::new(Connection::new(Role::Server, tls, start()))
    }

    /// Gives the connection its turn with `bytes`; returns what it reports up to its waiting.
    fn turn(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.input.start(&self.rest);
        self.input.extend(bytes);
        let tls = self.connection.is_tls();
        if tls {
            self.connection.open_records(&mut self.input, &mut self.plain);
        }
        let mut seen = Vec::new();
        loop {
            let output = self.with(|connection, cx, limits| connection.poll(cx, limits));
            let over = matches!(output, Output::Wait(_) | Output::Closed(_));
            seen.push(output);
            if over {
                break;
            }
        }
        if tls {
            self.connection.keep_records(&mut self.plain);
        }
        self.rest = self.input.take_rest();
        seen
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Context<'_>, &Limits) -> T) -> T {
        let input = if self.connection.is_tls() { &mut self.plain } else { &mut self.input };
        let mut cx = Context {
            input,
            output: &mut self.output,
            output_limit: 1 << 20,
            head: &mut self.head,
            now: self.now,
        };
        act(&mut self.connection, &mut cx, &self.limits)
    }

    /// Returns what goes on the wire.
    fn sent(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        self.connection.flush(&mut self.output, &mut wire).unwrap();
        wire
    }
}

pub(crate) fn identity() -> (Identity, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key);
    let pem = certificate.unwrap().pem();
    (Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap(), pem)
}

pub(crate) const CLOCK: WallClock =
    WallClock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));

fn head_of(seen: &[Output]) -> Option<ExchangeId> {
    seen.iter().find_map(|output| match output {
        Output::Exchange(id, ExchangeEvent::Head(_)) => Some(*id),
        _ => None,
    })
}

#[test]
fn the_preface_decides_wherever_it_is_split() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for split in 0..preface.len() {
        let mut server = Side::server(None);
        server.turn(&preface[..split]);
        assert_eq!(
            server.connection.version(),
            (split >= 24).then_some(Version::HTTP_2),
            "{split}"
        );
        server.turn(&preface[split..]);
        assert_eq!(server.connection.version(), Some(Version::HTTP_2), "{split}");
        // Its own SETTINGS, and the acknowledgement of the client's.
        assert_eq!(server.sent()[3], 4, "{split}");
    }
    let mut server = Side::server(None);
    let seen = server.turn(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(server.connection.version(), Some(Version::HTTP_11));
    assert_eq!(head_of(&seen), Some(ExchangeId(1)));
}

/// One exchange over TLS, with whatever ALPN agreed on, carried in pieces of `piece` bytes.
fn exchange_over_tls(offer: &[Alpn], piece: usize) -> Version {
    let (identity, pem) = identity();
    let tls = ServerTls::new(&identity, CLOCK).unwrap();
    let client = ClientTls::new(&Trust::Pem(pem.into_bytes()), offer, CLOCK).unwrap();
    let layer = client.connect("localhost").unwrap();
    let mut client = Side::new(Connection::new(Role::Client, Some(layer), start()));
    let mut server = Side::server(Some(&tls));
    let mut version = None;
    let mut asked = None;
    let mut body = Vec::new();
    for _ in 0..200 {
        client.turn(&[]);
        for part in client.sent().chunks(piece) {
            let seen = server.turn(part);
            if let Some(id) = head_of(&seen) {
                version = Some(server.head.version());
                server.with(|connection, cx, _| {
                    let head =
                        ResponseHead { length: Some(5), ..ResponseHead::new(StatusCode::OK, &[]) };
                    let body = Content::Whole(&mut Bytes::from_static(b"hello").into());
                    connection.send_response(cx, id, &head, body).unwrap();
                });
            }
        }
        server.turn(&[]);
        for part in server.sent().chunks(piece) {
            for output in client.turn(part) {
                if let Output::Exchange(_, ExchangeEvent::Data(data, end)) = output {
                    body.extend_from_slice(&data);
                    if end == End::Yes {
                        assert_eq!(body, b"hello");
                        return version.unwrap();
                    }
                }
            }
        }
        if asked.is_none() && client.connection.version().is_some() {
            asked = client.with(|connection, cx, _| {
                let head = RequestHead {
                    method: &Method::GET,
                    scheme: "https",
                    authority: "localhost",
                    path: "/",
                    protocol: None,
                    fields: &[],
                };
                connection.send_request(cx, &head, End::Yes).ok()
            });
        }
    }
    panic!("no response in pieces of {piece} bytes");
}

#[test]
fn alpn_decides_over_tls() {
    assert_eq!(exchange_over_tls(&[Alpn::H2, Alpn::Http11], usize::MAX), Version::HTTP_2);
    assert_eq!(exchange_over_tls(&[Alpn::Http11], 1000), Version::HTTP_11);
    assert_eq!(exchange_over_tls(&[], 7), Version::HTTP_11);
    assert_eq!(exchange_over_tls(&[Alpn::H2], 1), Version::HTTP_2);
}

#[test]
fn tls_half_handshake() {
    let (identity, _) = identity();
    let tls = ServerTls::new(&identity, CLOCK).unwrap();
    let mut server = Side::server(Some(&tls));
    let seen = server.turn(&[22, 3, 1, 2, 0, 1]);
    let [Output::Wait(Some(deadline))] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(deadline.reason, DeadlineReason::Handshake);
    assert_eq!(deadline.at, start() + server.limits.opening.handshake_timeout);
    server.now = deadline.at;
    let seen = server.turn(&[]);
    let [Output::Closed(reason)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(reason.name, "tls-timeout");
}

#[test]
fn tls_garbage() {
    let (identity, _) = identity();
    let tls = ServerTls::new(&identity, CLOCK).unwrap();
    let mut server = Side::server(Some(&tls));
    let seen = server.turn(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let [Output::Closed(reason)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(reason.name, "tls-handshake");
}

#[test]
fn slow_head() {
    let mut server = Side::server(None);
    let seen = server.turn(b"PRI * HT");
    let [Output::Wait(Some(deadline))] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(deadline.at, start() + server.limits.opening.version_timeout);
    server.now = deadline.at;
    let seen = server.turn(&[]);
    let [Output::Closed(reason)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(reason.name, "head-timeout");
}

/// A client that has just connected has perhaps sent its request already.
#[test]
fn leaving_before_the_version_is_known_still_answers_a_request() {
    let mut server = Side::server(None);
    server.with(|connection, cx, _| connection.leave(cx));
    let seen = server.turn(b"");
    let [Output::Wait(Some(deadline))] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(deadline.at, start() + bolide_h1::LEAVE_NOTICE);
    let seen = server.turn(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let id = head_of(&seen).expect("it is served");
    let head = ResponseHead::new(StatusCode::OK, &[]);
    let send =
        server.with(|connection, cx, _| connection.send_response(cx, id, &head, Content::None));
    send.unwrap();
    assert!(String::from_utf8(server.sent()).unwrap().contains("connection: close"));
    let seen = server.turn(b"");
    assert!(matches!(seen[..], [Output::Closed(reason)] if reason.name == "shutdown"), "{seen:?}");
}

#[test]
fn leaving_ends_what_says_nothing() {
    let mut server = Side::server(None);
    server.with(|connection, cx, _| connection.leave(cx));
    server.now += bolide_h1::LEAVE_NOTICE;
    let seen = server.turn(b"");
    assert!(matches!(seen[..], [Output::Closed(_)]), "{seen:?}");
}

/// Returns what a client reports of a response over TLS whose server then ends the connection, and whether it says so first.
fn ended_over_tls(response: &str, says_so: bool) -> Vec<Output> {
    let (identity, _) = identity();
    let mut server = ServerTls::new(&identity, CLOCK).unwrap().accept().unwrap();
    let layer = ClientTls::new(&Trust::Any, &[], CLOCK).unwrap().connect("localhost").unwrap();
    let mut client = Side::new(Connection::new(Role::Client, Some(layer), start()));
    let (mut input, mut plain) = (ReceiveBuffer::new(65_536), ReceiveBuffer::new(65_536));
    let mut queue = SendQueue::new();
    let mut seen = Vec::new();
    let (mut is_asked, mut is_answered) = (false, false);
    while !is_answered {
        if !is_asked && client.connection.version().is_some() {
            is_asked = true;
            client.with(|connection, cx, _| {
                let head = RequestHead {
                    method: &Method::GET,
                    scheme: "https",
                    authority: "localhost",
                    path: "/",
                    protocol: None,
                    fields: &[],
                };
                connection.send_request(cx, &head, End::Yes).unwrap();
            });
        }
        client.turn(&[]);
        input.start(&[]);
        input.extend(&client.sent());
        server.receive(&mut input, &mut plain).unwrap();
        if !plain.is_empty() {
            is_answered = true;
            queue.tail().extend_from_slice(response.as_bytes());
            if says_so {
                server.close();
            }
        }
        let mut wire = Vec::new();
        server.flush(&mut queue, &mut wire).unwrap();
        seen.extend(client.turn(&wire));
    }
    client.connection.receive_eof();
    seen.extend(client.turn(&[]));
    seen
}

#[test]
fn over_tls_only_close_notify_ends_a_body_without_a_length() {
    let is_whole = |response: &str, says_so: bool| {
        let seen = ended_over_tls(response, says_so);
        let ends = |output: &Output| {
            matches!(output, Output::Exchange(_, ExchangeEvent::Data(_, End::Yes)))
        };
        let aborts =
            |output: &Output| matches!(output, Output::Exchange(_, ExchangeEvent::Aborted(_)));
        let is_whole = seen.iter().any(ends);
        assert_ne!(is_whole, seen.iter().any(aborts), "{seen:?}");
        is_whole
    };
    let unframed = "HTTP/1.1 200 OK\r\n\r\nhello";
    assert!(is_whole(unframed, true));
    assert!(!is_whole(unframed, false), "anybody on the way can end a connection");
    for says_so in [false, true] {
        assert!(is_whole("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", says_so));
        assert!(!is_whole("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello", says_so));
    }
}

#[test]
fn interim_responses_have_one_limit_in_both_versions() {
    let limits = Limits::default();
    assert_eq!(limits.h1.heads.interim_count, limits.h2.heads.interim_count);
}
