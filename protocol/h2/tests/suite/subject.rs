//! RFC 9113 §5: a connection under test, with the buffers and the time of a worker.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bolide_buffers::{Chunk, Flush, ReceiveBuffer, SendQueue};
use bolide_h2::{Connection, Limits};
use bolide_semantics::{
    AbortReason, ConnectionEvent, Content, Context, Deadline, End, ExchangeEvent, ExchangeId,
    FieldRef, Head, HeadKind, Misuse, Output, RequestHead, ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode};

use crate::raw::{self, Frame};

pub(crate) type Fields = Vec<(String, String)>;

/// Report of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Head(u32, End, Fields),
    Rejected(u32, u16),
    Informational(u32, u16),
    Data(u32, Vec<u8>, End),
    Trailers(u32, Fields),
    Sendable(u32),
    Aborted(u32, AbortReason),
    Draining(u32),
    Concurrency(u32),
    Closed(&'static str),
}

/// The instant from which every test counts.
#[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub(crate) struct Subject {
    pub(crate) connection: Connection,
    input: ReceiveBuffer,
    rest: Box<[u8]>,
    pub(crate) output: SendQueue,
    pub(crate) output_limit: usize,
    pub(crate) head: Head,
    pub(crate) now: Instant,
    pub(crate) deadline: Option<Deadline>,
}

impl Subject {
    pub(crate) fn new(role: Role, limits: Limits) -> Self {
        Self {
            connection: Connection::new(role, &Arc::new(limits), start()),
            input: ReceiveBuffer::new(64 * 1024),
            rest: Box::default(),
            output: SendQueue::new(),
            output_limit: 1 << 20,
            head: Head::default(),
            now: start(),
            deadline: None,
        }
    }

    /// A server whose settings are acknowledged and whose first frames have been read.
    pub(crate) fn server_with(limits: Limits, settings: &[(u16, u32)]) -> Self {
        let mut server = Self::new(Role::Server, limits);
        assert_eq!(server.feed(&raw::client_preface(settings)), []);
        assert_eq!(server.feed(&raw::settings_ack()), []);
        server.sent();
        server
    }

    pub(crate) fn server() -> Self {
        Self::server_with(Limits::default(), &[])
    }

    /// A client whose settings are acknowledged and whose first frames have been read.
    pub(crate) fn client_with(limits: Limits, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::new(Role::Client, limits);
        client.feed(&raw::settings(settings));
        client.feed(&raw::settings_ack());
        client.sent_bytes();
        client
    }

    pub(crate) fn client() -> Self {
        Self::client_with(Limits::default(), &[])
    }

    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context {
            input: &mut self.input,
            output: &mut self.output,
            output_limit: self.output_limit,
            head: &mut self.head,
            now: self.now,
        };
        act(&mut self.connection, &mut cx)
    }

    /// One poll; `None` for Wait.
    pub(crate) fn poll(&mut self) -> Option<Seen> {
        let output = self.with(|connection, cx| connection.poll(cx));
        Some(match output {
            Output::Wait(deadline) => {
                self.deadline = deadline;
                return None;
            }
            Output::Closed(reason) => Seen::Closed(reason.name),
            Output::Connection(ConnectionEvent::Draining { last }) => Seen::Draining(last.0),
            Output::Connection(ConnectionEvent::Concurrency { exchanges_max }) => {
                Seen::Concurrency(exchanges_max)
            }
            Output::Exchange(ExchangeId(id), event) => match event {
                ExchangeEvent::Head(end) => Seen::Head(id, end, self.fields()),
                ExchangeEvent::Rejected(status) => Seen::Rejected(id, status.as_u16()),
                ExchangeEvent::Informational => {
                    Seen::Informational(id, self.head.status().as_u16())
                }
                ExchangeEvent::Data(bytes, end) => Seen::Data(id, bytes.to_vec(), end),
                ExchangeEvent::Trailers => Seen::Trailers(id, self.fields()),
                ExchangeEvent::Sendable => Seen::Sendable(id),
                ExchangeEvent::Aborted(reason) => Seen::Aborted(id, reason),
            },
        })
    }

    /// Begins a turn with these bytes behind what is left of earlier ones.
    pub(crate) fn arrive(&mut self, bytes: &[u8]) {
        let rest = std::mem::take(&mut self.rest);
        self.input.start(&rest);
        self.input.extend(bytes);
    }

    /// Ends a turn.
    pub(crate) fn leave(&mut self) {
        self.rest = self.input.take_rest();
    }

    /// One turn with these bytes: everything that is reported.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Seen> {
        self.arrive(bytes);
        let mut seen = Vec::new();
        while let Some(one) = self.poll() {
            let closed = matches!(one, Seen::Closed(_));
            seen.push(one);
            if closed {
                break;
            }
        }
        self.leave();
        seen
    }

    /// One turn without new bytes.
    pub(crate) fn turn(&mut self) -> Vec<Seen> {
        self.feed(&[])
    }

    pub(crate) fn after(&mut self, time: Duration) -> Vec<Seen> {
        self.now += time;
        self.turn()
    }

    /// Everything that was queued, as bytes.
    pub(crate) fn sent_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert_eq!(self.output.flush(&mut bytes).unwrap(), Flush::Drained);
        bytes
    }

    /// Everything that was queued, as frames.
    pub(crate) fn sent(&mut self) -> Vec<Frame> {
        raw::frames(&self.sent_bytes())
    }

    /// The one frame that was queued.
    pub(crate) fn sent_one(&mut self) -> Frame {
        let mut frames = self.sent();
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames.remove(0)
    }

    fn fields(&self) -> Fields {
        let head = &self.head;
        let mut fields = Vec::new();
        let mut add = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
        match head.kind() {
            HeadKind::Request => {
                add(":method", head.method().as_str());
                add(":path", head.path_and_query());
                add(":authority", head.authority().unwrap_or_default());
                if let Some(protocol) = head.protocol() {
                    add(":protocol", protocol);
                }
            }
            HeadKind::Response => add(":status", head.status().as_str()),
            HeadKind::Trailers => {}
        }
        for field in head.fields() {
            add(field.name, std::str::from_utf8(field.value).unwrap());
        }
        fields
    }

    /// Answers with a status and nothing more, or with the head of more.
    pub(crate) fn answer(&mut self, id: u32, status: u16, end: End) -> Result<(), Misuse> {
        self.answer_with(id, status, &[], end)
    }

    pub(crate) fn answer_with(
        &mut self,
        id: u32,
        status: u16,
        fields: &[(&str, &str)],
        end: End,
    ) -> Result<(), Misuse> {
        let status = StatusCode::from_u16(status).unwrap();
        let fields: Vec<_> = fields.iter().map(|(name, value)| field(name, value)).collect();
        self.with(|connection, cx| {
            if status.is_informational() && end == End::No {
                return connection.send_interim(cx, ExchangeId(id), status, &fields);
            }
            let head = ResponseHead::new(status, &fields);
            let content = if end == End::Yes { Content::None } else { Content::Follows };
            connection.send_response(cx, ExchangeId(id), &head, content).map(|_| ())
        })
    }

    pub(crate) fn ask(&mut self, method: &Method, end: End) -> Result<u32, Misuse> {
        self.ask_with(method, &[], end)
    }

    pub(crate) fn ask_with(
        &mut self,
        method: &Method,
        fields: &[(&str, &str)],
        end: End,
    ) -> Result<u32, Misuse> {
        let (scheme, authority) = ("http", "a:1");
        let path = if method == Method::CONNECT { "" } else { "/" };
        let fields: Vec<_> = fields.iter().map(|(name, value)| field(name, value)).collect();
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields: &fields };
        let id = self.with(|connection, cx| connection.send_request(cx, &head, end));
        id.map(|id| id.0)
    }

    pub(crate) fn give(&mut self, id: u32, bytes: &[u8], end: End) -> Result<bool, Misuse> {
        self.give_chunk(id, Bytes::copy_from_slice(bytes), end)
    }

    pub(crate) fn give_chunk(
        &mut self,
        id: u32,
        chunk: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        self.with(|connection, cx| connection.send_data(cx, ExchangeId(id), chunk, end))
    }

    pub(crate) fn give_trailers(&mut self, id: u32, fields: &[(&str, &str)]) -> Result<(), Misuse> {
        let fields: Vec<_> = fields.iter().map(|(name, value)| field(name, value)).collect();
        self.with(|connection, cx| connection.send_trailers(cx, ExchangeId(id), &fields))
    }

    pub(crate) fn consumed(&mut self, id: u32, bytes: usize) {
        self.with(|connection, cx| connection.consumed(cx, ExchangeId(id), bytes));
    }

    pub(crate) fn abort(&mut self, id: u32) {
        self.with(|connection, cx| connection.abort(cx, ExchangeId(id)));
    }

    pub(crate) fn cancel(&mut self, id: u32) {
        self.with(|connection, cx| connection.cancel(cx, ExchangeId(id)));
    }

    /// Feeds bytes that end the connection: the name of the reason, and the GOAWAY's error code.
    pub(crate) fn dies_of(&mut self, bytes: &[u8]) -> (&'static str, u32) {
        let seen = self.feed(bytes);
        let Some(Seen::Closed(name)) = seen.last() else { panic!("not closed: {seen:?}") };
        let frames = self.sent();
        let last = frames.last().expect("a GOAWAY");
        assert_eq!(last.kind, raw::GOAWAY, "{frames:?}");
        (name, last.u32_at(4))
    }

    /// Feeds bytes that make one stream fail: the RST_STREAM's error code.
    pub(crate) fn resets(&mut self, bytes: &[u8], stream: u32) -> u32 {
        let seen = self.feed(bytes);
        assert!(!seen.iter().any(|one| matches!(one, Seen::Closed(_))), "{seen:?}");
        let frames = self.sent();
        let reset = frames.iter().find(|frame| frame.kind == raw::RST_STREAM);
        let reset = reset.unwrap_or_else(|| panic!("no reset: {seen:?} {frames:?}"));
        assert_eq!(reset.stream, stream);
        reset.u32_at(0)
    }
}

pub(crate) fn field<'a>(name: &'a str, value: &'a str) -> FieldRef<'a> {
    FieldRef::named(name, value.as_bytes())
}

/// Only the frames of one kind.
pub(crate) fn of_kind(frames: &[Frame], kind: u8) -> Vec<&Frame> {
    frames.iter().filter(|frame| frame.kind == kind).collect()
}
