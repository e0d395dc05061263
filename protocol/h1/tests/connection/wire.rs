//! A connection with everything that its owner lends it, and a log of what it reports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_h1::{Connection, Limits, SharedFields};
use bolide_semantics::{
    CloseReason, Content, Context, Deadline, End, ExchangeEvent, ExchangeId, FieldName, FieldRef,
    Head, Misuse, Output, RequestHead, ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode};

#[expect(clippy::disallowed_methods, reason = "the base of virtual time, read once a test")]
fn base() -> Instant {
    Instant::now()
}

/// One end of a connection.
pub(crate) struct Wire {
    pub(crate) connection: Connection,
    pub(crate) input: ReceiveBuffer,
    pub(crate) output: SendQueue,
    pub(crate) output_limit: usize,
    pub(crate) head: Head,
    pub(crate) now: Instant,
    /// Reports: one line each, pieces of a body joined.
    pub(crate) log: Vec<String>,
    pub(crate) deadline: Option<Deadline>,
    rest: Box<[u8]>,
}

/// Reaction of an owner to a report, while it is handled.
pub(crate) type Owner<'a> = &'a mut dyn FnMut(&mut Wire, ExchangeId, &ExchangeEvent);

impl Wire {
    pub(crate) fn new(role: Role, limits: &Limits) -> Self {
        let now = base();
        Self {
            connection: Connection::new(role, &Arc::new(limits.clone()), now),
            input: ReceiveBuffer::new(64 * 1024),
            output: SendQueue::new(),
            output_limit: 1 << 20,
            head: Head::default(),
            now,
            log: Vec::new(),
            deadline: None,
            rest: Box::default(),
        }
    }

    pub(crate) fn server() -> Self {
        Self::new(Role::Server, &Limits::default())
    }

    pub(crate) fn client() -> Self {
        Self::new(Role::Client, &Limits::default())
    }

    pub(crate) fn with<T>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> T,
    ) -> T {
        let mut cx = Context {
            input: &mut self.input,
            output: &mut self.output,
            output_limit: self.output_limit,
            head: &mut self.head,
            now: self.now,
        };
        act(&mut self.connection, &mut cx)
    }

    /// One turn: `bytes` come in, and everything there is to report is reported.
    pub(crate) fn turn(&mut self, bytes: &[u8], owner: Owner<'_>) {
        self.input.start(&std::mem::take(&mut self.rest));
        self.input.extend(bytes);
        loop {
            match self.with(|connection, cx| connection.poll(cx)) {
                Output::Exchange(id, event) => {
                    self.note(id, &event);
                    owner(self, id, &event);
                }
                Output::Connection(event) => self.log.push(format!("{event:?}")),
                Output::Closed(reason) => {
                    let line = format!("closed {}", reason.name);
                    if self.log.last() != Some(&line) {
                        self.log.push(line);
                    }
                    self.deadline = None;
                    break;
                }
                Output::Wait(deadline) => {
                    self.deadline = deadline;
                    break;
                }
            }
        }
        self.rest = self.input.take_rest();
    }

    /// A turn of an owner who only listens.
    pub(crate) fn listen(&mut self, bytes: &[u8]) {
        self.turn(bytes, &mut |_, _, _| {});
    }

    /// Returns what the connection left for the next turn.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    /// The peer ends its side.
    pub(crate) fn eof(&mut self) {
        self.connection.receive_eof();
    }

    /// Goes on to the deadline, which must be so many seconds away, and polls there.
    pub(crate) fn expire(&mut self, seconds: u64) {
        let deadline = self.deadline.expect("a deadline was set");
        assert_eq!(deadline.at - self.now, Duration::from_secs(seconds), "{:?}", deadline.reason);
        self.now = deadline.at;
        self.listen(b"");
    }

    /// Returns what was sent since the last call, as text.
    pub(crate) fn sent(&mut self) -> String {
        String::from_utf8_lossy(&self.sent_bytes()).into_owned()
    }

    pub(crate) fn sent_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.output.flush(&mut bytes).unwrap();
        bytes
    }

    /// The log since the last call.
    pub(crate) fn logged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn note(&mut self, id: ExchangeId, event: &ExchangeEvent) {
        let id = id.0;
        let ends = |end: End| if end == End::Yes { " end" } else { "" };
        let line = match event {
            ExchangeEvent::Head(end) => format!("{id} {}{}", self.head_line(), ends(*end)),
            ExchangeEvent::Informational => format!("{id} interim {}", self.head_line()),
            ExchangeEvent::Rejected(status) => format!("{id} rejected {}", status.as_u16()),
            ExchangeEvent::Data(data, end) => {
                let data = String::from_utf8_lossy(data).into_owned();
                let before = format!("{id} data ");
                let line = match self.log.last() {
                    Some(last) if last.starts_with(&before) => {
                        self.log.pop().unwrap_or_default() + &data
                    }
                    _ => before + &data,
                };
                line + ends(*end)
            }
            ExchangeEvent::Trailers => format!("{id} trailers{}", self.field_lines()),
            ExchangeEvent::Sendable => format!("{id} sendable"),
            ExchangeEvent::Aborted(reason) => {
                let untouched = if reason.untouched { " untouched" } else { "" };
                format!("{id} aborted{untouched}: {}", reason.what)
            }
        };
        self.log.push(line);
    }

    fn head_line(&self) -> String {
        let head = &self.head;
        let start = match head.kind() {
            bolide_semantics::HeadKind::Response => head.status().as_u16().to_string(),
            _ => format!(
                "{} {}{}{}",
                head.method(),
                head.scheme().map(|scheme| scheme.to_owned() + "://").unwrap_or_default(),
                head.authority().unwrap_or("-"),
                head.path_and_query(),
            ),
        };
        start + &self.field_lines()
    }

    /// The fields but Host, which [`Self::head_line`] shows as the authority.
    fn field_lines(&self) -> String {
        self.head
            .fields()
            .filter(|field| field.known != Some(FieldName::Host))
            .map(|field| format!(" [{}: {}]", field.name, String::from_utf8_lossy(field.value)))
            .collect()
    }

    pub(crate) fn respond(
        &mut self,
        id: ExchangeId,
        status: u16,
        fields: &[(&str, &str)],
        end: End,
    ) -> Result<(), Misuse> {
        let status = StatusCode::from_u16(status).unwrap();
        let fields = lines(fields);
        let is_interim = status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS;
        self.with(|connection, cx| {
            if is_interim {
                return connection.send_interim(cx, id, status, &fields);
            }
            let content = if end == End::Yes { Content::None } else { Content::Follows };
            let head = ResponseHead::new(status, &fields);
            connection.send_response(cx, id, &head, content).map(|_| ())
        })
    }

    pub(crate) fn respond_whole(
        &mut self,
        id: ExchangeId,
        status: u16,
        body: &str,
    ) -> Result<bool, Misuse> {
        let head = ResponseHead::<SharedFields>::new(StatusCode::from_u16(status).unwrap(), &[]);
        let head = ResponseHead { length: Some(body.len() as u64), ..head };
        let mut chunk = Bytes::copy_from_slice(body.as_bytes()).into();
        self.with(|connection, cx| {
            connection.send_response(cx, id, &head, Content::Whole(&mut chunk))
        })
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        end: End,
    ) -> Result<ExchangeId, Misuse> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (scheme, authority, fields) = ("http", "example:80", lines(fields));
        let method = &method;
        let head = RequestHead { method, scheme, authority, path, protocol: None, fields: &fields };
        self.with(|connection, cx| connection.send_request(cx, &head, end))
    }

    pub(crate) fn data(&mut self, id: ExchangeId, data: &str, end: End) -> Result<bool, Misuse> {
        let data = Bytes::copy_from_slice(data.as_bytes());
        self.with(|connection, cx| connection.send_data(cx, id, data, end))
    }

    pub(crate) fn trailers(
        &mut self,
        id: ExchangeId,
        fields: &[(&str, &str)],
    ) -> Result<(), Misuse> {
        self.with(|connection, cx| connection.send_trailers(cx, id, &lines(fields)))
    }

    pub(crate) fn consumed(&mut self, id: ExchangeId, bytes: usize) {
        self.with(|connection, cx| connection.consumed(cx, id, bytes));
    }

    pub(crate) fn abort(&mut self, id: ExchangeId) {
        self.with(|connection, cx| connection.abort(cx, id));
    }

    pub(crate) fn shut_down(&mut self) {
        self.input.start(&self.rest);
        self.with(|connection, cx| connection.shut_down(cx));
    }

    pub(crate) fn leave(&mut self) {
        self.input.start(&self.rest);
        self.with(|connection, cx| connection.leave(cx));
    }

    /// Returns whether the connection has closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.close_reason().is_some()
    }

    /// Why the connection has closed, if it has.
    pub(crate) fn close_reason(&mut self) -> Option<CloseReason> {
        match self.with(|connection, cx| connection.poll(cx)) {
            Output::Closed(reason) => Some(reason),
            _ => None,
        }
    }
}

fn lines<'a>(fields: &'a [(&'a str, &'a str)]) -> Vec<FieldRef<'a>> {
    fields.iter().map(|(name, value)| FieldRef::named(name, value.as_bytes())).collect()
}

/// An owner that answers each request, once it is complete, with 200 and its path, and each that was
/// rejected with its status. Bodies are consumed as they come.
pub(crate) fn answer_all(wire: &mut Wire, id: ExchangeId, event: &ExchangeEvent) {
    let complete = match event {
        ExchangeEvent::Head(end) => {
            let path = wire.head.path_and_query().to_owned();
            wire.log.push(format!("responses {path}"));
            *end == End::Yes
        }
        ExchangeEvent::Data(data, end) => {
            wire.consumed(id, data.len());
            *end == End::Yes
        }
        ExchangeEvent::Trailers => true,
        ExchangeEvent::Rejected(status) => {
            let text = status.as_u16().to_string();
            wire.respond(id, status.as_u16(), &[("content-length", "3")], End::No).unwrap();
            wire.data(id, &text, End::Yes).unwrap();
            false
        }
        _ => false,
    };
    let at = wire.log.iter().rposition(|line| line.starts_with("responses "));
    if complete && let Some(at) = at {
        let path = wire.log.remove(at)["responses ".len()..].to_owned();
        let length = path.len().to_string();
        wire.respond(id, 200, &[("content-length", &length)], End::No).unwrap();
        wire.data(id, &path, End::Yes).unwrap();
    }
}

/// Returns what a server reports and sends when `bytes` come in pieces of this length.
pub(crate) fn serve(bytes: &[u8], piece: usize) -> (Vec<String>, String) {
    let mut wire = Wire::server();
    for piece in bytes.chunks(piece.max(1)) {
        wire.turn(piece, &mut answer_all);
    }
    wire.log.retain(|line| !line.starts_with("responses "));
    (wire.logged(), wire.sent())
}
