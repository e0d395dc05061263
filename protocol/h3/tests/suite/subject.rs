//! RFC 9114 §4: a connection under test, and what a raw peer sends it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bolide_buffers::Chunk;
use bolide_h3::{Connection, Context, Limits};
use bolide_semantics::{
    AbortReason, ConnectionEvent, Content, Deadline, End, ExchangeEvent, ExchangeId, FieldRef,
    Head, HeadKind, Misuse, Output, RequestHead, ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::network::Network;

pub(crate) type Pair = (&'static str, &'static str);

/// The pseudo-fields of a request.
pub(crate) const GET: [Pair; 4] =
    [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")];
pub(crate) const POST: [Pair; 4] =
    [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "a")];

/// Report of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The method and path, or the status.
    Head(u32, String, End),
    Rejected(u32, u16),
    Informational(u32, u16),
    Data(u32, Vec<u8>, End),
    Trailers(u32, usize),
    Sendable(u32),
    Aborted(u32, AbortReason),
    Draining(u32),
    Concurrency(u32),
    Closed(&'static str),
}

/// The instant from which every test counts.
#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
pub(crate) fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(kind)[..], &varint(payload.len() as u64), payload].concat()
}

pub(crate) fn data(payload: &[u8]) -> Vec<u8> {
    frame(0, payload)
}

pub(crate) fn headers<'a>(lines: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in lines {
        let field = FieldRef { known: None, name, value: value.as_bytes(), sensitive: false };
        bolide_qpack::Encoder::stateless(&field, &mut section);
    }
    frame(1, &section)
}

/// A control stream with these settings.
pub(crate) fn settings(entries: &[(u64, u64)]) -> Vec<u8> {
    let payload: Vec<u8> =
        entries.iter().flat_map(|(id, value)| [varint(*id), varint(*value)].concat()).collect();
    [vec![0], frame(4, &payload)].concat()
}

pub(crate) struct Subject {
    pub(crate) connection: Connection,
    pub(crate) quic: Network,
    pub(crate) head: Head,
    pub(crate) now: Instant,
    pub(crate) deadline: Option<Deadline>,
}

impl Subject {
    pub(crate) fn new(role: Role, limits: Limits) -> Self {
        Self {
            connection: Connection::new(role, &Arc::new(limits), start()),
            quic: Network::new(role == Role::Server),
            head: Head::default(),
            now: start(),
            deadline: None,
        }
    }

    /// A server whose client has sent settings that allow everything.
    pub(crate) fn server_with(limits: Limits) -> Self {
        let mut server = Self::new(Role::Server, limits);
        server.quic.arrives(2, &settings(&[(1, 4096), (7, 16), (0x33, 1)]));
        assert_eq!(server.poll(), []);
        server
    }

    pub(crate) fn server() -> Self {
        Self::server_with(Limits::default())
    }

    pub(crate) fn client_with(limits: Limits) -> Self {
        let mut client = Self::new(Role::Client, limits);
        client.quic.arrives(3, &settings(&[(1, 4096), (8, 1), (0x33, 1)]));
        assert_eq!(client.poll(), [Seen::Concurrency(100)]);
        client
    }

    pub(crate) fn client() -> Self {
        Self::client_with(Limits::default())
    }

    pub(crate) fn with<T>(
        &mut self,
        run: impl FnOnce(&mut Connection, &mut Context<'_, Network>) -> T,
    ) -> T {
        let Self { connection, quic, head, now, .. } = self;
        run(connection, &mut Context { quic, head, now: *now })
    }

    /// Polls until it waits or has closed.
    pub(crate) fn poll(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let output = self.with(|connection, cx| connection.poll(cx));
            let head = &self.head;
            seen.push(match output {
                Output::Wait(deadline) => {
                    self.deadline = deadline;
                    return seen;
                }
                Output::Closed(reason) => {
                    seen.push(Seen::Closed(reason.name));
                    return seen;
                }
                Output::Connection(ConnectionEvent::Draining { last }) => Seen::Draining(last.0),
                Output::Connection(ConnectionEvent::Concurrency { exchanges_max }) => {
                    Seen::Concurrency(exchanges_max)
                }
                Output::Exchange(ExchangeId(id), event) => match event {
                    ExchangeEvent::Head(end) if head.kind() == HeadKind::Request => {
                        Seen::Head(id, format!("{} {}", head.method(), head.path_and_query()), end)
                    }
                    ExchangeEvent::Head(end) => {
                        Seen::Head(id, head.status().as_str().to_owned(), end)
                    }
                    ExchangeEvent::Rejected(status) => Seen::Rejected(id, status.as_u16()),
                    ExchangeEvent::Informational => Seen::Informational(id, head.status().as_u16()),
                    ExchangeEvent::Data(bytes, end) => Seen::Data(id, bytes.to_vec(), end),
                    ExchangeEvent::Trailers => Seen::Trailers(id, head.field_count()),
                    ExchangeEvent::Sendable => Seen::Sendable(id),
                    ExchangeEvent::Aborted(reason) => Seen::Aborted(id, reason),
                },
            });
        }
    }

    /// The peer sends this on a stream.
    pub(crate) fn feed(&mut self, stream: u64, bytes: &[u8]) -> Vec<Seen> {
        self.quic.arrives(stream, bytes);
        self.poll()
    }

    /// The peer sends this on a stream, and ends it.
    pub(crate) fn feed_all(&mut self, stream: u64, bytes: &[u8]) -> Vec<Seen> {
        self.quic.arrives(stream, bytes);
        self.quic.ends(stream);
        self.poll()
    }

    /// The peer sends this; the connection ends with the code.
    #[track_caller]
    pub(crate) fn refuses(&mut self, stream: u64, bytes: &[u8], code: u64) {
        let seen = self.feed(stream, bytes);
        assert!(matches!(seen.last(), Some(Seen::Closed(_))), "{seen:?}");
        assert_eq!(self.quic.closed, Some(code));
    }

    pub(crate) fn later(&mut self, time: Duration) -> Vec<Seen> {
        self.now += time;
        self.poll()
    }

    pub(crate) fn consume(&mut self, id: u32, bytes: usize) {
        self.with(|connection, cx| connection.consumed(cx, ExchangeId(id), bytes));
    }

    pub(crate) fn respond(
        &mut self,
        id: u32,
        status: u16,
        content: Content<'_>,
    ) -> Result<bool, Misuse> {
        let status = StatusCode::from_u16(status).expect("a status");
        let head = ResponseHead::new(status, &[]);
        self.with(|connection, cx| connection.send_response(cx, ExchangeId(id), &head, content))
    }

    pub(crate) fn give(&mut self, id: u32, bytes: &[u8], end: End) -> Result<bool, Misuse> {
        let chunk = Chunk::from(Bytes::copy_from_slice(bytes));
        self.with(|connection, cx| connection.send_data(cx, ExchangeId(id), chunk, end))
    }

    pub(crate) fn request(
        &mut self,
        method: &Method,
        fields: &[FieldRef<'_>],
        end: End,
    ) -> Result<u32, Misuse> {
        let connect = method == Method::CONNECT;
        let head = RequestHead {
            method,
            scheme: "https",
            authority: "a:443",
            path: if connect { "" } else { "/" },
            protocol: None,
            fields,
        };
        self.with(|connection, cx| connection.send_request(cx, &head, end)).map(|id| id.0)
    }

    /// Returns what was sent on a stream, frame by frame: type and payload.
    pub(crate) fn frames(&self, stream: u64) -> Vec<(u64, Vec<u8>)> {
        let (mut rest, mut frames) = (self.quic.bytes_of(stream), Vec::new());
        while !rest.is_empty() {
            let (kind, length);
            (kind, rest) = read_varint(rest);
            (length, rest) = read_varint(rest);
            let (payload, after) = rest.split_at(length as usize);
            frames.push((kind, payload.to_vec()));
            rest = after;
        }
        frames
    }
}

pub(crate) fn read_varint(bytes: &[u8]) -> (u64, &[u8]) {
    let length = 1 << (bytes[0] >> 6);
    let first = u64::from(bytes[0] & 0x3f);
    let value = bytes[1..length].iter().fold(first, |sum, byte| sum << 8 | u64::from(*byte));
    (value, &bytes[length..])
}
