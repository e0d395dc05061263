//! RFC 9112 §9: one connection, in either role.

use std::sync::Arc;
use std::time::Instant;

use bolide_semantics::{Context, ExchangeId, Role};

use crate::Limits;
use crate::body::Body;
use crate::deadlines::Clock;
use crate::error::{ABORTED, ABORTED_UNFRAMED, Failure, SHUT_DOWN, TUNNEL_ENDED};
use crate::exchanges::{Exchanges, Kind};
use crate::gate::Gate;
use crate::head_scan::HeadScan;
use crate::persistence::{PeerSide, Persistence, Wish};
use crate::progress::WriteProgress;
use crate::sending::{Framing, Sending};

/// Part that is read next.
///
/// A server reads the next request when this one and its response are complete:
///
/// ```text
///        the output is full
///  Held ◀──────────────────▶ Head ◀──────────────────────────────────────┐
///                             │ a head                                   │
///                 ┌───────────┴───────────┐                              │
///                 ▼ with a body           ▼ without                      │
///                Body ────────────────▶ Complete ── the response's end ──┤
///                 │ │  the body's end                                    │
///                 │ └─ the response's end ──▶ Discard ── the body's end ─┘
///                 └─── malformed or late ──▶ Refused ── the response's end ──▶ over
/// ```
///
/// A head that is malformed or late leads to `Refused`, too. A client reads `Head` and `Body` alternately, one response
/// after the other. In a tunnel, `Body` ends in `Complete`, and the end of what a server sends ends the
/// connection; a client reads on until the server ends its side.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// The next message's head.
    Head,
    /// No further request, for the output is full.
    Held,
    /// The body of the current message.
    Body(Body),
    /// Nothing: the current message is complete, and its exchange still open.
    Complete,
    /// The rest of a body whose request was answered, while it is no longer than that, in bytes.
    Discard(Body, u32),
    /// Nothing more: the request was refused, and the connection ends with the response to it.
    Refused(&'static Failure),
}

/// State of the current exchange that its framing depends on.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// Server: the request came in HTTP/1.0.
    pub(crate) version_10: bool,
    /// Server: the client waits for `100 Continue`.
    pub(crate) expects_continue: bool,
    /// Client: interim responses so far.
    pub(crate) interim_count: u8,
}

/// One HTTP/1.1 connection.
///
/// The owner reads into the context's input, calls [`poll`](Self::poll) until it waits, gives
/// orders while it handles what was reported, and flushes the context's output.
///
/// A server has one exchange open at a time: the next request is read once the one before has been
/// answered and its body read. A client may have several requests open
/// ([`Limits::pipelined_count`](crate::Limits::pipelined_count)); they are answered in order.
///
/// A request that asks for another protocol (`Upgrade`, or CONNECT) and gets it (101, or 2xx) turns
/// its exchange into a tunnel: data goes both ways as it is, until the server ends its side, or either end closes.
#[derive(Debug)]
pub struct Connection {
    pub(crate) role: Role,
    pub(crate) limits: Arc<Limits>,
    pub(crate) reading: Reading,
    pub(crate) sending: Sending,
    pub(crate) exchanges: Exchanges,
    pub(crate) current: Current,
    /// Bytes of the current body that were reported and not consumed.
    pub(crate) gate: Gate,
    pub(crate) clock: Clock,
    pub(crate) progress: WriteProgress,
    pub(crate) scan: HeadScan,
    pub(crate) persistence: Persistence,
    /// Why the connection is over.
    pub(crate) ending: Option<&'static Failure>,
}

impl Connection {
    /// A new connection, which owns no memory on the heap.
    #[must_use]
    pub fn new(role: Role, limits: &Arc<Limits>, now: Instant) -> Self {
        Self {
            role,
            limits: Arc::clone(limits),
            reading: Reading::Head,
            sending: Sending::Ready,
            exchanges: Exchanges::new(),
            current: Current::default(),
            gate: Gate::default(),
            clock: Clock::new(now),
            progress: WriteProgress::new(now),
            scan: HeadScan::default(),
            persistence: Persistence::new(),
            ending: None,
        }
    }

    /// The peer has closed its side. Takes effect once the input has been consumed, in the next
    /// poll.
    pub fn receive_eof(&mut self) {
        if !self.persistence.has_ended() {
            self.persistence.peer_side = PeerSide::Ended;
        }
    }

    /// The same, but the peer did not close its side as TLS has it: any host on the way may have (RFC 9112 §9.8). A
    /// body that only the end of the connection delimits is not complete.
    pub fn receive_cut(&mut self) {
        self.persistence.peer_side = PeerSide::Cut;
    }

    /// Reports `bytes` of received data as used up, so that more is read.
    #[inline]
    pub fn consumed(&mut self, _cx: &mut Context<'_>, id: ExchangeId, bytes: usize) {
        if self.exchanges.is_oldest(id) {
            self.gate.consumed(bytes, &self.limits);
        }
    }

    /// Gives an exchange up: HTTP/1.1 can only do so by closing the connection. What else was open is
    /// reported as aborted.
    pub fn abort(&mut self, _cx: &mut Context<'_>, id: ExchangeId) {
        let is_sending = id.0 == self.exchanges.total() && !self.sending.is_ready();
        let is_open = self.exchanges.give_up(id);
        if self.ending.is_none() && (is_open || (is_sending && self.role == Role::Client)) {
            // RFC 9112 §8, RFC 9113 §8.5: an end is all that such content has, so it must not look like one.
            let framing = self.sending.framing();
            let unframed = matches!(framing, Ok(Framing::UntilClose | Framing::Tunnel));
            self.end(if unframed { &ABORTED_UNFRAMED } else { &ABORTED });
        }
    }

    /// Ends the connection gracefully: what is open is completed, nothing new begins.
    pub fn shut_down(&mut self, cx: &mut Context<'_>) {
        self.persistence.wish = Wish::Drain;
        if self.role == Role::Server {
            self.persistence.persists = false;
        }
        // A request whose first bytes have come is answered: it can't be told from one that was read.
        if self.is_idle() && cx.input.is_empty() {
            self.end(&SHUT_DOWN);
        }
    }

    /// Ends a server's connection without losing a request that is on its way: the next response, or the one
    /// that is open, says `Connection: close`; a connection without requests is closed after
    /// [`LEAVE_NOTICE`](crate::LEAVE_NOTICE) (RFC 9112 §9.5 lets a client send until it sees the end).
    pub fn leave(&mut self, cx: &mut Context<'_>) {
        if self.role == Role::Client {
            return self.shut_down(cx);
        }
        if self.persistence.wish == Wish::Stay {
            self.persistence.wish = Wish::Leave(cx.now);
        }
        // A response whose head has left said nothing of an end: one more request may follow it.
        if !self.is_idle() && self.sending.is_ready() {
            self.persistence.persists = false;
        }
    }

    /// Returns whether reading from the socket makes sense now.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        if self.persistence.has_ended() || self.ending.is_some() {
            return false;
        }
        match self.reading {
            Reading::Body(_) => !self.is_gated(),
            Reading::Head | Reading::Discard(..) => true,
            Reading::Held | Reading::Complete | Reading::Refused(_) => false,
        }
    }

    /// Returns whether this client has ended its side of a tunnel and reads on: once the output has left, the sending side of the
    /// socket is to end.
    #[must_use]
    pub fn ends_sending(&self) -> bool {
        self.role == Role::Client && matches!(self.sending, Sending::Complete)
    }

    /// How many bytes of the body that is read are still to come, as far as its length is known (RFC 9112 §6.3): the
    /// peer sends them without waiting for anything. 0: unknown.
    #[inline]
    #[must_use]
    pub fn expects(&self) -> u64 {
        match self.reading {
            Reading::Body(Body::Length(left)) => left,
            _ => 0,
        }
    }

    /// Returns whether no exchange is open and nothing is half received.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
            && matches!(self.reading, Reading::Head)
            && self.sending.is_ready()
            && !self.clock.is_in_head()
            && self.ending.is_none()
    }

    /// Bytes of the current body or tunnel that were reported and are not [consumed](Self::consumed).
    #[inline]
    #[must_use]
    pub fn unconsumed_bytes(&self) -> usize {
        self.gate.unconsumed() as usize
    }

    /// Returns whether the owner has enough of the body for now.
    #[inline]
    pub(crate) fn is_gated(&self) -> bool {
        self.gate.is_closed(&self.limits)
    }

    /// The connection is over, if it was not already.
    pub(crate) fn end(&mut self, failure: &'static Failure) {
        self.ending.get_or_insert(failure);
    }

    /// Begins a tunnel: what goes both ways belongs to the oldest exchange as it is.
    pub(crate) fn begin_tunnel(&mut self) {
        self.reading = Reading::Body(Body::Tunnel);
        self.sending.begin(Framing::Tunnel);
        self.gate = Gate::default();
        self.persistence.persists = false;
    }

    /// Both directions of a tunnel are complete, or a server's own is.
    pub(crate) fn end_tunnel(&mut self) {
        self.exchanges.close_oldest();
        self.end(&TUNNEL_ENDED);
    }

    /// Server: request and response are complete, and the next request is read.
    #[inline]
    pub(crate) fn next_request(&mut self) {
        self.reading = Reading::Head;
        self.sending = Sending::Ready;
        if !self.persistence.persists {
            self.end(self.persistence.reason());
        }
    }

    /// The open exchange's kind, when `id` is the oldest.
    #[inline]
    pub(crate) fn kind_of(&self, id: ExchangeId) -> Option<Kind> {
        self.exchanges.oldest().filter(|(oldest, _)| *oldest == id).map(|(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() <= 256, "{}", size_of::<Connection>());
    }
}
