//! One exchange in flight: from a handler's decision to its last byte.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_buffers::Chunk;
use bolide_connection::{Connection, SharedFields};
use bolide_eventloop::{BbrInfo, Meter, Path, TcpInfo};
use bolide_semantics::{
    Content, Context, Date, End, ExchangeId, FieldName, FieldRef, Misuse, ResponseHead, has_no_body,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;

use crate::advertised::Advertised;
use crate::ends::Ends;
use crate::events_left::take_event;
use crate::ingress::REQUEST_ID;
use crate::limits::ENCODED_PIECE_BYTES;
use crate::local_waker::{Calls, LocalWaker};
use crate::outward::Outward;
use crate::responder::Address;
use crate::response::{Body, Fields, Pull, ResponseKind, Trailed};
use crate::server_timing;
use crate::{Response, Waker};
use bolide_observability::{ENCODE, HANDLER};

mod active;
mod cancel;
mod encode;
mod encoded;
mod files;
mod notes;
mod paced;
mod slowed_body;
mod state;
mod timeouts;

pub(crate) use active::{Active, OrElse, WaitingBody};
pub(crate) use encoded::Encoded;
pub(crate) use slowed_body::{Part, SlowedBody};
pub(crate) use state::{Kind, Phase, Record, State};

/// The largest piece that a body stream is asked for at once, in bytes.
const PULL_BYTES_MAX: usize = 256 * 1024;

/// The field that names other ways to a server (RFC 7838 §3).
const ALT_SVC: &str = "alt-svc";

/// A response with more fields of its own than that takes memory while it is written.
const OWN_FIELDS_COUNT: usize = 8;

/// By what an [`Exchange`](crate::Exchange) answers: orders to the connection, for this exchange.
#[derive(Debug)]
pub struct Io<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) cx: Context<'a>,
    pub(crate) id: ExchangeId,
    pub(crate) state: &'a mut State,
    pub(crate) date: &'a Date,
    pub(crate) advertised: &'a [Advertised],
    pub(crate) address: Address<'a>,
    pub(crate) ends: &'a Ends,
    pub(crate) path: &'a dyn Path,
    pub(crate) meter: &'a Meter,
    pub(crate) outward: Outward<'a>,
    pub(crate) calls: &'a mut Option<Calls>,
    pub(crate) events_left: &'a Cell<u32>,
    /// The handler has events left for the next call.
    pub(crate) yields: bool,
    /// A limit of the handler's ended the exchange.
    pub(crate) limit: Option<&'static str>,
}

impl<'a> Io<'a> {
    /// The connections that this worker makes: to another server, say.
    pub fn outward(&mut self) -> &mut Outward<'a> {
        &mut self.outward
    }

    /// Returns what a response with these fields says of HTTP/3, if it is served here and the client does not use it.
    #[inline]
    fn alternative(&self, fields: &[FieldRef<'_>]) -> Option<&'a str> {
        if self.advertised.is_empty() || !self.connection.is_tls() {
            return None;
        }
        let is_said = fields.iter().any(|field| field.name.eq_ignore_ascii_case(ALT_SVC));
        let port = self.ends.local().filter(|_| !is_said)?.port();
        Advertised::at(self.advertised, port)
    }
}

impl Io<'_> {
    /// Does the connection's part of what a handler asks for.
    #[inline]
    fn encoding<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.meter.enter(ENCODE);
        let done = act(self);
        self.meter.enter(before);
        done
    }

    /// Sends a whole response. Ignored when the response has begun already.
    pub fn respond(&mut self, mut response: Response) {
        if let Some(began) = self.state.timed.take() {
            server_timing::add_total(&mut response, began);
        }
        self.encoding(|io| io.answer(&mut response));
    }

    /// [`Self::respond`], whatever stage of the turn that counts for, which leaves the response without its
    /// body.
    #[inline]
    pub(crate) fn answer(&mut self, response: &mut Response) {
        if !self.state.phase.is_unanswered() {
            return;
        }
        if response.kind != ResponseKind::Plain {
            self.make_error(response);
        }
        let no_body = has_no_body(self.state.method(), response.status);
        let mut whole = match std::mem::take(&mut response.body) {
            Body::Empty => None,
            Body::Bytes(bytes) => Some(Chunk::from(bytes)),
            Body::Own(bytes) => Some(Chunk::shared(bytes)),
            in_pieces => return self.answer_in_pieces(response, in_pieces, no_body),
        };
        let bytes = whole.as_ref().map_or(0, |whole| whole.bytes.len() as u64);
        // The length of what HEAD would have got is not known of an empty body.
        let knows_length = !no_body || (whole.is_some() && self.state.kind == Kind::Head);
        let content = match &mut whole {
            Some(whole) if !no_body => Content::Whole(whole),
            _ => Content::None,
        };
        self.begin(response, knows_length.then_some(bytes), content);
    }

    /// Makes a response that can't be sent an error, and gives an error the page that it has here.
    #[cold]
    fn make_error(&self, response: &mut Response) {
        if response.kind == ResponseKind::Invalid {
            *response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let policy = self.state.policy.get();
        if let Some((page, media_type)) = policy.and_then(|one| one.error_page(response.status)) {
            response.take_page(page, media_type);
        }
    }

    /// Sends a response whose body ends with trailers, or is made while it is sent.
    fn answer_in_pieces(&mut self, response: &Response, body: Body, no_body: bool) {
        let follows = if no_body { Content::None } else { Content::Follows };
        match body {
            Body::Trailed(body) => {
                if self.begin(response, body.length, follows) && !no_body {
                    self.finish_whole(*body);
                }
            }
            Body::Stream(stream) => {
                if self.begin(response, stream.length(), follows) && !no_body {
                    self.state.stream = Some(stream);
                    self.pull();
                    self.pause();
                }
            }
            Body::Empty | Body::Bytes(_) | Body::Own(_) => {}
        }
    }

    /// Sends a body that is at hand, and its trailers.
    fn finish_whole(&mut self, body: Trailed) {
        if self.state.encoded.is_some() {
            self.encode(body.bytes, End::No);
        } else if !body.bytes.is_empty() {
            self.state.record.sent_bytes += body.bytes.len() as u64;
            let sent = self.connection.send_data(&mut self.cx, self.id, body.bytes, End::No);
            self.settle(sent, End::No);
        }
        self.finish_with(&body.trailers);
    }

    /// Begins a response whose body comes by [`Self::send`]; `length` is its length in bytes, if
    /// known. A body of `response` is ignored. With `101 Switching Protocols`, or a 2xx to CONNECT,
    /// what follows is a tunnel.
    pub fn start(&mut self, response: &Response, length: Option<u64>) {
        if self.state.phase.is_unanswered() {
            let no_body = has_no_body(self.state.method(), response.status);
            let tunnel = self.state.begins_tunnel(response.status);
            let length = if tunnel { None } else { length };
            let ends = no_body && !tunnel;
            let content = if ends { Content::None } else { Content::Follows };
            self.encoding(|io| io.begin(response, length, content));
        }
    }

    /// Returns whether [`Self::send`] takes a piece now.
    #[must_use]
    pub fn is_sendable(&self) -> bool {
        !self.state.has_rest() && self.may_send()
    }

    /// Sends the next piece of the body. Gives it back while the piece before has not left:
    /// [`Exchange::on_sendable`](crate::Exchange::on_sendable) will be called.
    ///
    /// # Errors
    ///
    /// The piece itself, when it can't be taken now.
    pub fn send(&mut self, data: Bytes, end: End) -> Result<(), Bytes> {
        match self.state.phase {
            Phase::Sendable if self.state.has_rest() => Err(data),
            Phase::Sendable if self.state.encoded.is_some() => self.send_encoded(data, end),
            Phase::Sendable => {
                self.encoding(|io| io.send_piece(data, end));
                if self.state.has_rest() {
                    self.pull();
                }
                Ok(())
            }
            // What is sent after the end, or in response to HEAD, goes nowhere.
            Phase::Done => Ok(()),
            Phase::Expected | Phase::Unanswered | Phase::Blocked => Err(data),
        }
    }

    /// Ends the body with trailers.
    pub fn finish_with(&mut self, trailers: &HeaderMap) {
        if self.state.phase.is_answering() {
            let fields: SmallVec<[FieldRef<'_>; OWN_FIELDS_COUNT]> =
                trailers.iter().map(FieldRef::from).collect();
            self.finish_with_fields(&fields);
        }
    }

    /// Reports `bytes` of the request's body as used: the client may send as many more.
    pub fn consumed(&mut self, bytes: usize) {
        self.encoding(|io| io.connection.consumed(&mut io.cx, io.id, bytes));
    }

    /// Breaks the exchange off: the client sees that the response is not complete.
    pub fn abort(&mut self) {
        if self.state.phase != Phase::Done {
            self.connection.abort(&mut self.cx, self.id);
            self.state.phase = Phase::Done;
            self.state.record.aborted.get_or_insert("aborted");
        }
    }

    /// The client's address; none on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.ends.peer()
    }

    /// The address that the client has connected to; none on a Unix socket.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.ends.local()
    }

    /// Returns what the kernel has measured of the client's connection, by a system call; `None` on a Unix socket, and
    /// where it isn't told.
    #[must_use]
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        self.path.tcp_info()
    }

    /// Returns what BBR believes of the client's connection, by two system calls; `None` where it is not its congestion
    /// control.
    #[must_use]
    pub fn bbr(&self) -> Option<BbrInfo> {
        self.path.bbr()
    }

    /// Returns whether one more event may be handled of which one piece of data may bring many, a message say. If not, the other
    /// connections have their turn first, and [`Exchange::on_wake`](crate::Exchange::on_wake) follows.
    pub(crate) fn may_go_on(&mut self) -> bool {
        let may = self.events_left.get() > 0;
        self.yields |= !may;
        may
    }

    /// Reports that the limit of this name ends the exchange.
    pub(crate) fn note_limit(&mut self, limit: &'static str) {
        self.limit = Some(limit);
    }

    /// Counts such an event.
    pub(crate) fn count_event(&self) {
        take_event(self.events_left);
    }

    /// Asks for [`Exchange::on_wake`](crate::Exchange::on_wake) at this time, in place of any asked for before; `None`: not any more. It
    /// may come some milliseconds late, and once: who wants more asks again.
    pub fn wake_at(&mut self, at: Option<Instant>) {
        // Never in this turn, for the clock stands still in it; but one that is due stays so, or data that
        // keeps coming would put it off for ever.
        let now = self.cx.now;
        let is_due = self.state.alarm.is_some_and(|set| set <= now);
        let later = now + Duration::from_millis(1);
        self.state.alarm = at.map(|at| if at > now || is_due { at } else { later });
    }

    /// A handle with which any thread can ask for [`Exchange::on_wake`](crate::Exchange::on_wake).
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.address.waker()
    }

    /// A handle with which the worker's other connections ask for [`Exchange::on_wake`](crate::Exchange::on_wake).
    #[must_use]
    pub fn local_waker(&mut self) -> LocalWaker {
        LocalWaker::new(self.address.token, self.id, self.calls.get_or_insert_default())
    }

    /// The time of this turn of the loop.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.cx.now
    }

    /// Sends the head of a response, interim or final, from field lines that were received or written
    /// elsewhere; of a final one, the body follows by [`Self::send`] unless `end` says that there is none.
    /// `Date` is added when it is missing. Ignored when the response has begun already; an interim one, which a client
    /// can do without, also while what was queued before it has no room left.
    pub fn start_with(&mut self, status: StatusCode, fields: &[FieldRef<'_>], end: End) {
        if !self.state.phase.is_unanswered() {
            return;
        }
        if is_interim(status) {
            if self.cx.output_room() == 0 {
                return;
            }
            return self.encoding(|io| io.send_interim(status, fields));
        }
        let is_dated = fields.iter().any(|field| field.known == Some(FieldName::Date));
        let is_final = !status.is_informational();
        let date = (!is_dated && is_final).then_some(self.date.as_bytes());
        let timed = self.state.timed.map(server_timing::total);
        let id = self.state.request_id.take();
        let mut own: SmallVec<[FieldRef<'_>; 2 * OWN_FIELDS_COUNT]> = SmallVec::new();
        let mut fields = fields;
        let alternative = self.alternative(fields).filter(|_| is_final);
        if timed.is_some() || id.is_some() || alternative.is_some() {
            own.extend_from_slice(fields);
            let is_same = |field: &FieldRef<'_>| field.name.eq_ignore_ascii_case(REQUEST_ID);
            own.retain(|field| id.is_none() || !is_same(field));
            let timed = timed.as_deref().map(|value| ("server-timing", value));
            let id = id.as_deref().map(|id| (REQUEST_ID, id));
            let alternative = alternative.map(|value| (ALT_SVC, value));
            for (name, value) in timed.into_iter().chain(id).chain(alternative) {
                own.push(FieldRef::named(name, value.as_bytes()));
            }
            fields = &own;
        }
        let head = ResponseHead { date, ..ResponseHead::new(status, fields) };
        let content = if end == End::Yes { Content::None } else { Content::Follows };
        self.encoding(|io| io.send_response(&head, content));
    }

    /// Ends the body with these trailers.
    pub fn finish_with_fields(&mut self, fields: &[FieldRef<'_>]) {
        if self.state.encoded.is_some() {
            return self.end_encoded(fields);
        }
        if self.state.phase.is_answering() {
            self.send_rest();
            let sent = self.encoding(|io| io.connection.send_trailers(&mut io.cx, io.id, fields));
            if sent.is_err() {
                self.abort();
            }
            self.state.phase = Phase::Done;
        }
    }

    /// Tells a client that waits for it to send its body (RFC 9110 §15.2.1). Ignored when the client
    /// does not wait, was told already, or has its response.
    pub fn send_continue(&mut self) {
        if self.state.take_expectation() {
            self.send_interim(StatusCode::CONTINUE, &[]);
        }
    }

    /// Pulls the body stream as long as the connection takes more.
    pub(crate) fn pull(&mut self) {
        self.encoding(Self::pull_pieces);
    }

    fn pull_pieces(&mut self) {
        while self.may_send() {
            if let Some((rest, end)) = self.state.take_rest() {
                self.send_piece(rest, end);
                continue;
            }
            let is_encoded = self.state.encoded.is_some();
            if !is_encoded && self.send_file_piece() {
                continue;
            }
            let allowed = self.allowance();
            let Some(stream) = &mut self.state.stream else { return };
            let most = if is_encoded { ENCODED_PIECE_BYTES } else { PULL_BYTES_MAX };
            let bytes_max = self.cx.output_room().clamp(16 * 1024, most).min(allowed);
            let before = self.meter.enter(HANDLER);
            let pulled = stream.pull(bytes_max);
            self.meter.enter(before);
            let (data, end) = match pulled {
                Pull::Data(data) => (data, End::No),
                Pull::Last(data) => (data, End::Yes),
                Pull::End => (Bytes::new(), End::Yes),
                Pull::Pending => return,
                Pull::Failed => return self.abort(),
                Pull::Trailers(trailers) => {
                    self.state.stream = None;
                    return self.finish_with(&trailers);
                }
            };
            if is_encoded {
                self.encode(data, end);
                continue;
            }
            self.send_piece(data, end);
        }
    }

    /// The connection takes the next piece.
    pub(crate) fn sendable(&mut self) {
        if self.state.phase == Phase::Blocked {
            self.state.phase = Phase::Sendable;
            self.finish_encoded();
            self.pull();
        }
    }

    /// Notes what became of a piece.
    #[inline]
    pub(crate) fn settle(&mut self, sent: Result<bool, Misuse>, end: End) {
        self.note_pace();
        self.state.phase = match (sent, end) {
            (Ok(_), End::Yes) => Phase::Done,
            (Ok(true), End::No) => Phase::Sendable,
            (Ok(false), End::No) => Phase::Blocked,
            (Err(Misuse::UnknownExchange), _) => {
                self.state.record.aborted.get_or_insert("client-gone");
                Phase::Done
            }
            // A body that breaks its announced length, which only its maker could have prevented.
            (Err(_), _) => {
                self.state.record.aborted.get_or_insert("wrong-length");
                self.connection.abort(&mut self.cx, self.id);
                Phase::Done
            }
        };
        if self.state.phase == Phase::Done {
            self.state.stream = None;
        }
    }

    /// Begins a response that has not begun. Whether its head could be sent, and its content where that is whole.
    #[inline]
    fn begin(&mut self, response: &Response, length: Option<u64>, content: Content<'_>) -> bool {
        let status = response.status;
        let shared = response.shared.as_ref();
        let (mut has_date, mut has_length) =
            shared.map(Fields::has_date_and_length).unwrap_or_default();
        let id = if is_interim(status) { None } else { self.state.request_id.take() };
        let mut own: SmallVec<[FieldRef<'_>; OWN_FIELDS_COUNT]> = SmallVec::new();
        // What may be edited is sent field by field.
        let is_separate = is_interim(status) | self.state.policy.is_there();
        let written = shared.and_then(Fields::shared).filter(|_| !is_separate);
        if written.is_none()
            && let Some(shared) = shared
        {
            own.extend(shared.refs());
        }
        response.fields.iter().map(FieldRef::from).for_each(|field| {
            has_date |= field.known == Some(FieldName::Date);
            has_length |= field.known == Some(FieldName::ContentLength);
            own.push(field);
        });
        if is_interim(status) {
            self.send_interim(status, &own);
            return false;
        }
        if let Some(id) = id.as_deref() {
            own.push(FieldRef::named(REQUEST_ID, id.as_bytes()));
        }
        if let Some(value) = self.alternative(&own) {
            own.push(FieldRef::named(ALT_SVC, value.as_bytes()));
        }
        let head = ResponseHead {
            status,
            shared: written,
            own: &own,
            length: length.filter(|_| !has_length),
            date: (!has_date && !status.is_informational()).then_some(self.date.as_bytes()),
        };
        self.send_response(&head, content)
    }

    /// Sends the head of an interim response.
    fn send_interim(&mut self, status: StatusCode, fields: &[FieldRef<'_>]) {
        match self.connection.send_interim(&mut self.cx, self.id, status, fields) {
            // A client that has gone meanwhile is noticed by the next event.
            Ok(()) | Err(Misuse::UnknownExchange) => {}
            Err(_) => self.head_is_refused(),
        }
    }

    /// Sends the head of the final response, and its content where that is whole. Whether they could be sent.
    #[inline]
    fn send_response(
        &mut self,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> bool {
        if self.state.policy.is_there() {
            return self.send_edited(head, content);
        }
        self.send_final(head, content)
    }

    /// Sends the head of the final response as it is.
    #[inline]
    fn send_final(&mut self, head: &ResponseHead<'_, SharedFields>, content: Content<'_>) -> bool {
        let (follows, whole_bytes) = match &content {
            Content::None => (false, 0),
            Content::Whole(whole) => (false, whole.bytes.len() as u64),
            Content::Follows => (true, 0),
        };
        if self.state.begins_tunnel(head.status) {
            self.state.kind = Kind::Tunnel;
            // What comes in it is not a request's body.
            self.state.body_left = u64::MAX;
        }
        match self.connection.send_response(&mut self.cx, self.id, head, content) {
            Ok(more) => {
                self.state.phase = match (follows, more) {
                    (false, _) => Phase::Done,
                    (true, true) => Phase::Sendable,
                    (true, false) => Phase::Blocked,
                };
                self.state.record.status = head.status.as_u16();
                self.state.record.sent_bytes += whole_bytes;
                self.state.record.answered = self.state.record.began.map(|_| self.cx.now);
                return true;
            }
            Err(Misuse::UnknownExchange) => {
                self.state.record.aborted = Some("client-gone");
                self.state.phase = Phase::Done;
            }
            Err(_) => self.head_is_refused(),
        }
        false
    }

    /// A head that its connection does not send: its maker could have prevented that.
    #[cold]
    fn head_is_refused(&mut self) {
        self.state.record.aborted = Some("head-not-sent");
        self.connection.abort(&mut self.cx, self.id);
        self.state.phase = Phase::Done;
    }
}

/// Returns whether a final response is still to come after this status.
#[inline]
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}
