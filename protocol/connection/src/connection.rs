//! RFC 9110 §3.3: one connection, from records or datagrams to exchanges.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_buffers::{Chunk, Flush, ReceiveBuffer, SendQueue};
use bolide_semantics::{
    CloseReason, Content, Context, Deadline, DeadlineReason, End, ExchangeId, FieldRef, Misuse,
    Output, RequestHead, ResponseHead, Role,
};
use bolide_tls::{HandshakeFacts, Opened, TlsFailure, TlsLayer};
use bytes::Bytes;
use http::StatusCode;

use crate::http3::Http3;
use crate::version::{Version, by_alpn, by_preface};
use crate::{Http2Stats, Limits, Resets, SharedFields};

mod cancel;

mod held;

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

/// One connection: TLS or not, then HTTP/1.1 or HTTP/2; or HTTP/3 over QUIC.
///
/// The owner reads into an input buffer, calls [`poll`](Self::poll) until it waits, and
/// [flushes](Self::flush). With TLS it first [opens](Self::open_records) the records into a second
/// buffer and polls with that one. Of a connection over QUIC, it [takes](Self::receive_datagrams) datagrams in before it
/// polls, and [sends](Self::flush_datagrams) them after it.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    tls: Option<Box<TlsLayer>>,
    pub(crate) stack: Stack,
    ended: bool,
    /// The transport ended without `close_notify`.
    is_cut: bool,
    /// Why the connection is over, when it was not the version's core that ended it.
    pub(crate) closed: Option<&'static CloseReason>,
    /// Error that TLS found.
    tls_failure: Option<Box<TlsFailure>>,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "an HTTP/1.1 connection fits in the place of every session, without an allocation"
)]
pub(crate) enum Stack {
    /// The version is not known yet.
    Open {
        /// When the connection was made.
        since: Instant,
        /// The owner [leaves](Connection::leave): since when.
        leaving: Option<Instant>,
    },
    H1(bolide_h1::Connection),
    H2(Box<bolide_h2::Connection>),
    H3(Box<Http3>),
}

/// Calls the same verb of whichever core there is; `$none` when there is none yet. HTTP/3 has a context of its own.
macro_rules! core {
    ($self:ident, $core:ident, $cx:ident => $call:expr, $none:expr) => {
        match &mut $self.stack {
            Stack::H1($core) => $call,
            Stack::H2($core) => $call,
            Stack::H3(http3) => {
                let ($core, mut $cx) = http3.lend($cx);
                let $cx = &mut $cx;
                $call
            }
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
            is_cut: false,
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

    /// Returns whether records must be opened before polling.
    #[inline]
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns what the TLS handshake agreed on, once it is complete.
    #[must_use]
    pub fn tls_facts(&self) -> Option<HandshakeFacts> {
        if let Stack::H3(http3) = &self.stack {
            return http3.quic.facts();
        }
        self.tls.as_ref()?.facts()
    }

    /// The same, made once: every later call shares it.
    #[must_use]
    pub fn tls_facts_shared(&self) -> Option<Arc<HandshakeFacts>> {
        if let Stack::H3(http3) = &self.stack {
            return http3.shared_facts();
        }
        self.tls.as_ref()?.shared_facts()
    }

    /// Returns what was wrong with the handshake or a record, in words, once TLS has failed.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&TlsFailure> {
        self.tls_failure.as_deref()
    }

    /// Returns whether what is sent can be read by the peer alone: TLS, or QUIC.
    #[inline]
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_tls() || self.is_quic()
    }

    /// RFC 8470 §3: whether what comes could be a replay of what another connection has sent.
    #[inline]
    #[must_use]
    pub fn is_early(&self) -> bool {
        matches!(&self.stack, Stack::H3(http3) if http3.quic.is_early())
    }

    /// The version in use: `None` while it is not decided. That of HTTP/1.1 stands for HTTP/1.0, too.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Option<http::Version> {
        match self.stack {
            Stack::Open { .. } => None,
            Stack::H1(_) => Some(http::Version::HTTP_11),
            Stack::H2(_) => Some(http::Version::HTTP_2),
            Stack::H3(ref http3) => http3.version(),
        }
    }

    /// Opens the records of `input` into `plain`, which then takes the place of `input`.
    pub fn open_records(&mut self, input: &mut ReceiveBuffer, plain: &mut ReceiveBuffer) {
        let Some(tls) = &mut self.tls else { return };
        let opened = tls.receive(input, plain);
        self.opened(opened.map(|ended| if ended { Opened::Ended } else { Opened::All }));
    }

    /// The same for as many as are opened at once, behind what is in `plain`. `input` keeps the others, and the peer's end comes behind
    /// them: they [may follow](Opened::Part) once the connection was polled, or have to wait for [the next turn](Opened::Cut).
    pub fn open_some_records(
        &mut self,
        input: &mut ReceiveBuffer,
        plain: &mut ReceiveBuffer,
    ) -> Opened {
        let Some(tls) = &mut self.tls else { return Opened::All };
        let opened = tls.receive_some(input, plain);
        self.opened(opened)
    }

    /// Records were opened.
    fn opened(&mut self, opened: Result<Opened, TlsFailure>) -> Opened {
        match opened {
            Ok(Opened::Ended) => {
                self.ended = true;
                self.pass_end();
            }
            Ok(opened) => return opened,
            Err(failure) => {
                self.closed = Some(if failure.in_handshake { &TLS_HANDSHAKE } else { &TLS_RECORD });
                self.tls_failure = Some(Box::new(failure));
            }
        }
        Opened::All
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
        match &mut self.stack {
            Stack::H1(core) => core.poll(cx),
            Stack::H2(core) => core.poll(cx),
            Stack::H3(http3) => {
                let (core, mut lent) = http3.lend(cx);
                let output = core.poll(&mut lent);
                if matches!(output, Output::Closed(_)) {
                    self.tls_failure = http3.tls_failure();
                }
                output
            }
            Stack::Open { since, leaving } => {
                let (since, leaving) = (*since, *leaving);
                self.poll_open(cx, limits, since, leaving)
            }
        }
    }

    /// Polls the core of the version, once that is decided.
    #[cold]
    fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        since: Instant,
        leaving: Option<Instant>,
    ) -> Output {
        self.decide(cx, limits, since, leaving).unwrap_or_else(|| self.poll(cx, limits))
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
        match &mut self.stack {
            Stack::H1(core) => core.whole_body(input, id, bytes_max),
            Stack::H2(core) => core.whole_body(input, id, bytes_max),
            // What has come is in the transport's streams.
            Stack::H3(_) | Stack::Open { .. } => None,
        }
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
                (None, limits.opening.handshake_timeout, DeadlineReason::Handshake)
            }
            Some(tls) => (Some(by_alpn(tls.alpn())), Duration::ZERO, DeadlineReason::Handshake),
            None => (
                by_preface(cx.input.unread()),
                limits.opening.version_timeout,
                DeadlineReason::Head,
            ),
        };
        let undecided = version.is_none();
        let timeout = match reason {
            // Nothing has come at all: that is an idle connection, not a slow one.
            DeadlineReason::Head if cx.input.is_empty() => limits.h1.times.idle_timeout,
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
            self.pass_end();
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

    /// The transport has ended: the peer will send nothing more. Takes effect once the input has been consumed. With TLS,
    /// the peer says so itself, by `close_notify`, before; else what it sent was cut (RFC 9112 §9.8), and a body that
    /// nothing but the end delimits is not complete.
    pub fn receive_eof(&mut self) {
        if !self.ended {
            self.ended = true;
            self.is_cut = self.is_tls();
            self.pass_end();
        }
    }

    /// Tells the version's core of the end.
    fn pass_end(&mut self) {
        match &mut self.stack {
            Stack::H1(core) if self.is_cut => core.receive_cut(),
            Stack::H1(core) => core.receive_eof(),
            Stack::H2(core) => core.receive_eof(),
            // The transport says itself when it has ended.
            Stack::H3(_) | Stack::Open { .. } => {}
        }
    }

    /// Returns whether the peer has ended its side.
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

    /// Returns whether the TLS layer has bytes of its own to write.
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
    #[inline]
    pub fn send_request(
        &mut self,
        cx: &mut Context<'_>,
        head: &RequestHead<'_>,
        end: End,
    ) -> Result<ExchangeId, Misuse> {
        core!(self, core, cx => core.send_request(cx, head, end), Err(Misuse::Refused))
    }

    /// Sends the head of an interim response (server).
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_interim(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        status: StatusCode,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        let none = Err(Misuse::UnknownExchange);
        core!(self, core, cx => core.send_interim(cx, id, status, fields), none)
    }

    /// Sends the head of the final response (server), and its content where that is at hand. Returns what
    /// [`Self::send_data`] does.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    #[inline]
    pub fn send_response(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> Result<bool, Misuse> {
        match &mut self.stack {
            Stack::H1(core) => {
                core.send_response(cx, id, &head.with_shared(|shared| &shared.h1), content)
            }
            Stack::H2(core) => {
                core.send_response(cx, id, &head.with_shared(|shared| &shared.h2), content)
            }
            Stack::H3(http3) => {
                let (core, mut cx) = http3.lend(cx);
                core.send_response(&mut cx, id, &head.with_shared(|shared| &shared.h3), content)
            }
            Stack::Open { .. } => Err(Misuse::UnknownExchange),
        }
    }

    /// Gives the next piece of a body. `Ok(false)`: wait for `Sendable` before the next one. Plain
    /// [`Bytes`](bytes::Bytes) are lent: what of them has to wait is copied. A [shared](Chunk::shared) chunk waits as it is.
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
        core!(self, core, cx => core.send_data(cx, id, data, end), Err(Misuse::UnknownExchange))
    }

    /// Ends a body with trailers.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks.
    pub fn send_trailers(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        fields: &[FieldRef<'_>],
    ) -> Result<(), Misuse> {
        core!(self, core, cx => core.send_trailers(cx, id, fields), Err(Misuse::UnknownExchange))
    }

    /// Reports `bytes` of received data as used up: opens windows.
    #[inline]
    pub fn consumed(&mut self, cx: &mut Context<'_>, id: ExchangeId, bytes: usize) {
        core!(self, core, cx => core.consumed(cx, id, bytes), ());
    }

    /// Gives an exchange up.
    pub fn abort(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        core!(self, core, cx => core.abort(cx, id), ());
    }

    /// Ends the connection gracefully: what is open is completed, nothing new begins.
    pub fn shut_down(&mut self, cx: &mut Context<'_>) {
        core!(self, core, cx => core.shut_down(cx), {
            self.closed = Some(&SHUT_DOWN);
        });
    }

    /// Ends a server's connection without losing a request that is on its way: HTTP/1.1 announces the end in
    /// its next response, HTTP/2 and HTTP/3 by GOAWAY in two steps; one whose version is not known yet does so once it is.
    pub fn leave(&mut self, cx: &mut Context<'_>) {
        match &mut self.stack {
            Stack::H1(core) => core.leave(cx),
            Stack::H2(core) => core.shut_down(cx),
            Stack::H3(http3) => {
                let (core, mut cx) = http3.lend(cx);
                core.shut_down(&mut cx);
            }
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
            Stack::H3(http3) => http3.core.exchanges_available(&http3.quic),
            Stack::Open { .. } => 0,
        }
    }

    /// Returns whether the peer takes tunnels to protocols by name (client): by `Upgrade` over HTTP/1.1, by extended
    /// CONNECT over HTTP/2 and HTTP/3 (RFC 8441 §3, RFC 9220 §3). `None` while that is not known.
    #[must_use]
    pub fn takes_protocols(&self) -> Option<bool> {
        match &self.stack {
            Stack::H1(_) => Some(true),
            Stack::H2(core) => core.takes_protocols(),
            Stack::H3(http3) => http3.core.takes_protocols(),
            Stack::Open { .. } => None,
        }
    }

    /// Returns what an HTTP/2 connection has counted, up to its last turn.
    pub fn http2_stats(&mut self) -> Option<Http2Stats> {
        if let Stack::H2(core) = &mut self.stack { Some(core.stats()) } else { None }
    }

    /// RST_STREAM frames over HTTP/2 by error code, since this was asked last; `None`: there were none.
    pub fn take_resets(&mut self) -> Option<Box<Resets>> {
        if let Stack::H2(core) = &mut self.stack { core.take_resets() } else { None }
    }

    /// Returns whether reading from the socket makes sense.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match &self.stack {
            Stack::H1(core) => core.wants_input(),
            Stack::H2(core) => core.wants_input(),
            Stack::H3(_) | Stack::Open { .. } => true,
        }
    }

    /// Returns whether this client has ended its side of a tunnel over HTTP/1.1 and reads on: it is to call [`Self::finish`], and the
    /// sending side of the socket is to end.
    #[inline]
    #[must_use]
    pub fn ends_sending(&self) -> bool {
        matches!(&self.stack, Stack::H1(core) if core.ends_sending())
    }

    /// Returns whether no exchange is open and nothing is half received.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match &self.stack {
            Stack::H1(core) => core.is_idle(),
            Stack::H2(core) => core.is_idle(),
            Stack::H3(http3) => http3.is_idle(),
            Stack::Open { .. } => false,
        }
    }
}
