//! RFC 9110 §3.3: one connection, from records to exchanges.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Chunk, Flush, ReceiveBuffer, SendQueue};
use bolide_h1::{HeadLines, WrittenHead};
use bolide_h2::OwnLines;
use bolide_semantics::{
    CloseReason, Context, Deadline, DeadlineReason, End, ExchangeId, FieldRef, HeadName, Misuse,
    OutgoingHead, Output, Role,
};
use bolide_tls::{HandshakeFacts, TlsFailure, TlsLayer};
use bytes::Bytes;

use crate::version::{Version, by_alpn, by_preface};
use crate::{Http2Stats, Limits, Resets};

mod cancel;

mod outside;

mod windows;

mod written;

static TLS_HANDSHAKE: CloseReason = CloseReason::peer("tls-handshake", "the TLS handshake failed");
static TLS_RECORD: CloseReason = CloseReason::peer("tls-record", "a TLS record was wrong");
static TLS_TIMEOUT: CloseReason =
    CloseReason::circumstance("tls-timeout", "the TLS handshake took too long");
static HEAD_TIMEOUT: CloseReason =
    CloseReason::circumstance("head-timeout", "the preface took too long");
static IDLE: CloseReason = CloseReason::orderly("idle", "nothing was sent on the connection");
static ENDED: CloseReason = CloseReason::orderly("eof", "the peer closed the connection");
static SHUT_DOWN: CloseReason = CloseReason::orderly("shutdown", "the server is shutting down");

/// One connection: TLS or not, then HTTP/1.1 or HTTP/2.
///
/// The owner reads into an input buffer, calls [`poll`](Self::poll) until it waits, and
/// [flushes](Self::flush). With TLS it first [opens](Self::open_records) the records into a second
/// buffer and polls with that one.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    tls: Option<Box<TlsLayer>>,
    stack: Stack,
    ended: bool,
    /// Why the connection is over, when it was not the version's core that ended it.
    closed: Option<&'static CloseReason>,
    /// What TLS found wrong.
    tls_failure: Option<Box<TlsFailure>>,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "an HTTP/1.1 connection fits in the place of every session, without an allocation"
)]
enum Stack {
    /// The version is not known yet.
    Open {
        /// When the connection was made.
        since: Instant,
        /// The owner [leaves](Connection::leave): since when.
        leaving: Option<Instant>,
    },
    H1(bolide_h1::Connection),
    H2(Box<bolide_h2::Connection>),
}

/// The head of a final response that many exchanges have in common.
#[derive(Debug, Clone, Copy)]
pub struct KnownHead<'a> {
    /// What it is called.
    pub name: HeadName,
    /// Its lines but `Content-Length` and `Date`, written out; none when they can't be.
    pub lines: Option<&'a HeadLines>,
    /// The value of `Date`, unless that is among the lines.
    pub date: Option<&'a [u8; 29]>,
}

/// Calls the same verb of whichever core there is; `$none` when there is none yet.
macro_rules! core {
    ($self:ident, $core:ident => $call:expr, $none:expr) => {
        match &mut $self.stack {
            Stack::H1($core) => $call,
            Stack::H2($core) => $call,
            Stack::Open { .. } => $none,
        }
    };
}

impl Connection {
    /// A new connection: cleartext, or TLS by its layer.
    #[must_use]
    pub fn new(role: Role, tls: Option<TlsLayer>, now: Instant) -> Self {
        Self {
            role,
            tls: tls.map(Box::new),
            stack: Stack::Open { since: now, leaving: None },
            ended: false,
            closed: None,
            tls_failure: None,
        }
    }

    /// A client's connection that speaks HTTP/2 over cleartext without asking (RFC 9113 §3.3).
    #[must_use]
    pub fn with_prior_knowledge(limits: &Limits, now: Instant) -> Self {
        let core = bolide_h2::Connection::new(Role::Client, &limits.h2, now);
        Self { stack: Stack::H2(Box::new(core)), ..Self::new(Role::Client, None, now) }
    }

    /// A client's connection that speaks HTTP/1.1 over cleartext.
    #[must_use]
    pub fn http1(limits: &Limits, now: Instant) -> Self {
        let core = bolide_h1::Connection::new(Role::Client, &limits.h1, now);
        Self { stack: Stack::H1(core), ..Self::new(Role::Client, None, now) }
    }

    /// Whether records must be opened before polling.
    #[inline]
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// What the TLS handshake agreed on, once it is complete.
    #[must_use]
    pub fn tls_facts(&self) -> Option<HandshakeFacts> {
        self.tls.as_ref()?.facts()
    }

    /// The same, made once: every later call shares it.
    #[must_use]
    pub fn tls_facts_shared(&self) -> Option<Arc<HandshakeFacts>> {
        self.tls.as_ref()?.shared_facts()
    }

    /// What was wrong with the handshake or a record, in words, once TLS has failed.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&TlsFailure> {
        self.tls_failure.as_deref()
    }

    /// The version in use: `None` while it is not decided.
    #[must_use]
    pub fn is_h2(&self) -> Option<bool> {
        match self.stack {
            Stack::Open { .. } => None,
            Stack::H1(_) => Some(false),
            Stack::H2(_) => Some(true),
        }
    }

    /// Opens the records of `input` into `plain`, which then takes the place of `input`.
    pub fn open_records(&mut self, input: &mut ReceiveBuffer, plain: &mut ReceiveBuffer) {
        let Some(tls) = &mut self.tls else { return };
        match tls.receive(input, plain) {
            Ok(ended) => {
                if ended {
                    self.receive_eof();
                }
            }
            Err(failure) => {
                self.closed = Some(if failure.in_handshake { &TLS_HANDSHAKE } else { &TLS_RECORD });
                self.tls_failure = Some(Box::new(failure));
            }
        }
    }

    /// Keeps what polling left of the plaintext.
    #[inline]
    pub fn keep_records(&mut self, plain: &mut ReceiveBuffer) {
        if let Some(tls) = &mut self.tls {
            tls.keep_rest(plain);
        }
    }

    /// Parses and advances until there is one thing to report: call until it waits or has closed.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>, limits: &Limits) -> Output {
        if let Some(reason) = self.closed {
            return Output::Closed(*reason);
        }
        if let Stack::Open { since, leaving } = self.stack
            && let Some(output) = self.decide(cx, limits, since, leaving)
        {
            return output;
        }
        core!(self, core => core.poll(cx), Output::Wait(None))
    }

    /// Server: a copy of the whole body of the request whose head was just reported, if all of it has arrived and it
    /// has at most `bytes_max` bytes; it counts as received, and is [consumed](Self::consumed) as any other. `None`,
    /// and nothing has happened: the body comes by [`poll`](Self::poll).
    #[inline]
    pub fn whole_body(
        &mut self,
        input: &mut ReceiveBuffer,
        id: ExchangeId,
        bytes_max: usize,
    ) -> Option<Bytes> {
        core!(self, core => core.whole_body(input, id, bytes_max), None)
    }

    /// Decides the version, or says what is waited for.
    #[cold]
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        opened: Instant,
        leaving: Option<Instant>,
    ) -> Option<Output> {
        let (version, timeout, reason) = match &self.tls {
            Some(tls) if tls.is_handshaking() => {
                (None, limits.handshake_timeout, DeadlineReason::Handshake)
            }
            Some(tls) => (Some(by_alpn(tls.alpn())), Duration::ZERO, DeadlineReason::Handshake),
            None => (by_preface(cx.input.unread()), limits.version_timeout, DeadlineReason::Head),
        };
        let undecided = version.is_none();
        let timeout = match reason {
            // Nothing has come at all: that is an idle connection, not a slow one.
            DeadlineReason::Head if cx.input.is_empty() => limits.h1.idle_timeout,
            _ => timeout,
        };
        let mut at = opened + timeout;
        if let (Some(since), DeadlineReason::Head) = (leaving, reason)
            && cx.input.is_empty()
        {
            at = at.min(since + bolide_h1::LEAVE_NOTICE);
        }
        if undecided && self.ended && (self.tls.is_some() || cx.input.is_empty()) {
            return Some(self.close(&ENDED));
        }
        if undecided && !self.ended && cx.now < at {
            return Some(Output::Wait(Some(Deadline { at, reason })));
        }
        if undecided && cx.now >= at {
            let reason = match reason {
                DeadlineReason::Handshake => &TLS_TIMEOUT,
                _ if cx.input.is_empty() => &IDLE,
                _ => &HEAD_TIMEOUT,
            };
            return Some(self.close(reason));
        }
        self.stack = match version.unwrap_or(Version::Http1) {
            Version::Http1 => Stack::H1(bolide_h1::Connection::new(self.role, &limits.h1, opened)),
            Version::Http2 => {
                Stack::H2(Box::new(bolide_h2::Connection::new(self.role, &limits.h2, cx.now)))
            }
        };
        if self.ended {
            self.receive_eof();
        }
        if leaving.is_some() {
            self.leave(cx);
        }
        None
    }

    fn close(&mut self, reason: &'static CloseReason) -> Output {
        self.closed = Some(reason);
        Output::Closed(*reason)
    }

    /// The peer will send nothing more. Takes effect once the input has been consumed.
    pub fn receive_eof(&mut self) {
        self.ended = true;
        core!(self, core => core.receive_eof(), ());
    }

    /// Whether the peer has ended its side.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes what is queued: sealed, if there is TLS.
    ///
    /// # Errors
    ///
    /// Whatever `sink` reports, except `WouldBlock`.
    #[inline]
    pub fn flush(
        &mut self,
        queue: &mut SendQueue,
        sink: &mut (impl Write + ?Sized),
    ) -> io::Result<Flush> {
        match &mut self.tls {
            None => queue.flush(sink),
            Some(tls) => tls.flush(queue, sink),
        }
    }

    /// Whether the TLS layer has bytes of its own to write.
    #[inline]
    #[must_use]
    pub fn wants_flush(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Nothing more will be sent: with TLS, tells the peer so.
    pub fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close();
        }
    }

    /// Sends a request (client).
    ///
    /// # Errors
    ///
    /// [`Misuse::Refused`] when no exchange can be opened, [`Misuse::InvalidHead`] when the head
    /// can't be sent.
    pub fn send_request<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<ExchangeId, Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        core!(self, core => core.send_request(cx, head, end), Err(Misuse::Refused))
    }

    /// The same for a head that is sent again and again: `name`, which is not 0, stands for it. Two
    /// calls of a connection with the same name must have the same head.
    ///
    /// # Errors
    ///
    /// As [`Self::send_request`].
    pub fn send_named_request<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        name: u16,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<ExchangeId, Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        match &mut self.stack {
            // Copying a head's octets costs as much as writing them.
            Stack::H1(core) => core.send_request(cx, head, end),
            Stack::H2(core) => core.send_named_request(cx, name, head, end),
            Stack::Open { .. } => Err(Misuse::Refused),
        }
    }

    /// HTTP/1.1: sends a whole answer in one step, if nothing about it and its request is unusual: its head is
    /// written out, and its body is so small that it is copied anyway. False: nothing has happened.
    #[inline]
    pub fn send_whole(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: &KnownHead<'_>,
        body: &[u8],
    ) -> bool {
        let (Stack::H1(core), Some(lines)) = (&mut self.stack, head.lines) else { return false };
        let HeadName { status, length, .. } = head.name;
        core.send_whole(cx, id, &WrittenHead { status, lines, length, date: head.date }, body)
    }

    /// Sends the head of a response, interim or final (server).
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    #[inline]
    pub fn send_head<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: OutgoingHead<'a, I>,
        end: End,
    ) -> Result<(), Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        core!(self, core => core.send_head(cx, id, head, end), Err(Misuse::UnknownExchange))
    }

    /// The same for the head of a final response that is at hand as its version needs it: written out for
    /// HTTP/1.1, remembered from the last time under its name by HTTP/2. `None`: it isn't, and nothing has happened.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    #[inline]
    pub fn send_head_again(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: &KnownHead<'_>,
        end: End,
    ) -> Option<Result<(), Misuse>> {
        match &mut self.stack {
            Stack::H1(core) => {
                let HeadName { status, length, .. } = head.name;
                let head = WrittenHead { status, lines: head.lines?, length, date: head.date };
                core.send_written_head(cx, id, &head, end)
            }
            Stack::H2(core) => core.send_head_again(cx, id, &head.name, end),
            Stack::Open { .. } => None,
        }
    }

    /// Sends the head of a final response: the lines that `name` stands for, with no `Content-Length` among them,
    /// and `own` ones, which are encoded already. `None`: the connection's version has no use for that, and nothing
    /// has happened.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_common_head<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        named: (&HeadName, I),
        own: &OwnLines,
        end: End,
    ) -> Option<Result<(), Misuse>>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        match &mut self.stack {
            Stack::H2(core) => Some(core.send_common_head(cx, id, named, own, end)),
            Stack::H1(_) | Stack::Open { .. } => None,
        }
    }

    /// The same with a small body, which is copied, and the end of the answer. `None`: that can't be done in one
    /// step, and nothing has happened.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    #[inline]
    pub fn send_whole_again(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        name: &HeadName,
        own: &OwnLines,
        body: &[u8],
    ) -> Option<Result<(), Misuse>> {
        match &mut self.stack {
            Stack::H2(core) => core.send_whole_again(cx, id, name, own, body),
            Stack::H1(_) | Stack::Open { .. } => None,
        }
    }

    /// Names the head that was sent last, for [`Self::send_head_again`].
    #[inline]
    pub fn name_head(&mut self, name: HeadName) {
        if let Stack::H2(core) = &mut self.stack {
            core.name_head(name);
        }
    }

    /// Gives the next piece of a body. `Ok(false)`: wait for `Sendable` before the next one. Plain
    /// [`Bytes`](bytes::Bytes) are lent: what of them has to wait is copied. An [own](Chunk::own) chunk waits as it is.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    #[inline]
    pub fn send_data(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        data: impl Into<Chunk>,
        end: End,
    ) -> Result<bool, Misuse> {
        core!(self, core => core.send_data(cx, id, data, end), Err(Misuse::UnknownExchange))
    }

    /// Ends a body with trailers.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_trailers<'a, I>(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        fields: I,
    ) -> Result<(), Misuse>
    where
        I: Iterator<Item = FieldRef<'a>> + Clone,
    {
        core!(self, core => core.send_trailers(cx, id, fields), Err(Misuse::UnknownExchange))
    }

    /// Reports `bytes` of received data as used up: opens windows.
    #[inline]
    pub fn consumed(&mut self, cx: &mut Context<'_>, id: ExchangeId, bytes: usize) {
        core!(self, core => core.consumed(cx, id, bytes), ());
    }

    /// Gives an exchange up.
    pub fn abort(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        core!(self, core => core.abort(cx, id), ());
    }

    /// Ends the connection gracefully: what is open is completed, nothing new begins.
    pub fn shut_down(&mut self, cx: &mut Context<'_>) {
        core!(self, core => core.shut_down(cx), {
            self.closed = Some(&SHUT_DOWN);
        });
    }

    /// Ends a server's connection without losing a request that is on its way: HTTP/1.1 announces the end in
    /// its next answer, HTTP/2 by GOAWAY in two steps; one whose version is not known yet does so once it is.
    pub fn leave(&mut self, cx: &mut Context<'_>) {
        match &mut self.stack {
            Stack::H1(core) => core.leave(cx),
            Stack::H2(core) => core.shut_down(cx),
            Stack::Open { leaving, .. } => _ = leaving.get_or_insert(cx.now),
        }
    }

    /// How many exchanges may be opened now (client): 0 while the version is not known, and once the
    /// connection draws to its end.
    #[inline]
    #[must_use]
    pub fn exchanges_available(&self) -> u32 {
        match &self.stack {
            Stack::H1(core) => core.exchanges_available(),
            Stack::H2(core) => core.exchanges_available(),
            Stack::Open { .. } => 0,
        }
    }

    /// Whether the peer takes tunnels to protocols by name (client): by `Upgrade` over HTTP/1.1, by extended
    /// CONNECT over HTTP/2 (RFC 8441 §3). `None` while that is not known.
    #[must_use]
    pub fn takes_protocols(&self) -> Option<bool> {
        match &self.stack {
            Stack::H1(_) => Some(true),
            Stack::H2(core) => core.takes_protocols(),
            Stack::Open { .. } => None,
        }
    }

    /// What an HTTP/2 connection has counted, up to its last turn.
    pub fn http2_stats(&mut self) -> Option<Http2Stats> {
        if let Stack::H2(core) = &mut self.stack { Some(core.stats()) } else { None }
    }

    /// RST_STREAM frames over HTTP/2 by error code, since this was asked last; `None`: there were none.
    pub fn take_resets(&mut self) -> Option<Box<Resets>> {
        if let Stack::H2(core) = &mut self.stack { core.take_resets() } else { None }
    }

    /// Whether reading from the socket makes sense.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match &self.stack {
            Stack::H1(core) => core.wants_input(),
            Stack::H2(core) => core.wants_input(),
            Stack::Open { .. } => true,
        }
    }

    /// Whether no exchange is open and nothing is half received.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match &self.stack {
            Stack::H1(core) => core.is_idle(),
            Stack::H2(core) => core.is_idle(),
            Stack::Open { .. } => false,
        }
    }
}
