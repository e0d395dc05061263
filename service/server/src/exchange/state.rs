//! How far an exchange is, and what is counted and logged of it.

use std::time::Instant;

use bolide_semantics::End;
use http::{Method, StatusCode};

use super::Encoded;
use super::paced::Paced;
use super::slowed_body::SlowedBody;
use crate::policy::PolicySlot;
use crate::response::BodyStream;
use crate::router::RouteId;
use bolide_observability::Entry;

/// State of an exchange while it is open.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    /// The body that is being pulled.
    pub(crate) stream: Option<Box<dyn BodyStream>>,
    /// How many bytes of the request's body may still come.
    pub(crate) body_left: u64,
    /// A body follows the request's head.
    pub(crate) has_body: bool,
    /// When the handler wants to be woken.
    pub(crate) alarm: Option<Instant>,
    /// The client is told how long the response took since then.
    pub(crate) timed: Option<Instant>,
    /// Decisions of the handlers about the response, whatever makes it.
    pub(crate) policy: PolicySlot,
    /// The body is encoded on its way.
    pub(crate) encoded: Option<Box<Encoded>>,
    /// The content is sent no faster than this.
    pub(crate) paced: Option<Box<Paced>>,
    /// The request's content is handed on no faster than this.
    pub(crate) slowed: Option<Box<SlowedBody>>,
    /// The client is told so the name of its request.
    pub(crate) request_id: Option<Box<str>>,
    pub(crate) record: Record,
}

/// Kind of an exchange, as far as it decides about content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request and a response.
    Message,
    /// HEAD: a response without content.
    Head,
    /// CONNECT that has not succeeded.
    Connect,
    /// CONNECT succeeded, or the protocol was switched: what follows the head is a tunnel.
    Tunnel,
}

/// How far the response is.
///
/// ```text
///            100, or the body             its                a piece waits,
///            is not read                  head               or has left
///  Expected ───────────────▶ Unanswered ────────▶ Sendable ◀────────────▶ Blocked
///     │                          │                   │                       │
///     └──────────────────────────┴───────────────────┴───────────────────────┴──▶ Done
///               a whole response, its end, or the exchange was given up
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No final head was sent, and the client waits for `100 Continue`.
    Expected,
    /// No final head was sent.
    Unanswered,
    /// The next piece may be given.
    Sendable,
    /// The piece before has not left.
    Blocked,
    /// Everything was given.
    Done,
}

impl Phase {
    /// Returns whether the final head is still to be sent.
    #[inline]
    pub(crate) fn is_unanswered(self) -> bool {
        matches!(self, Self::Expected | Self::Unanswered)
    }

    /// Returns whether the response has begun and not ended.
    #[inline]
    pub(crate) fn is_answering(self) -> bool {
        matches!(self, Self::Sendable | Self::Blocked)
    }
}

/// Facts about an exchange for metrics and the access log.
#[derive(Debug)]
pub(crate) struct Record {
    /// The route that it counts for; none: it was counted already.
    pub(crate) route: Option<RouteId>,
    /// When its head arrived, unless it is answered in the same turn.
    pub(crate) began: Option<Instant>,
    /// When the response's head was given, unless that was in the same turn.
    pub(crate) answered: Option<Instant>,
    /// The status of the final head; 0 before.
    pub(crate) status: u16,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    /// Why it ended before it was complete.
    pub(crate) aborted: Option<&'static str>,
    /// Facts about the request that the access log needs.
    pub(crate) entry: Option<Box<Entry>>,
}

impl State {
    #[inline]
    pub(crate) fn new(method: &Method, body_bytes_max: u64, route: RouteId) -> Self {
        let kind = match *method {
            Method::HEAD => Kind::Head,
            Method::CONNECT => Kind::Connect,
            _ => Kind::Message,
        };
        Self {
            kind,
            phase: Phase::Unanswered,
            stream: None,
            body_left: body_bytes_max,
            has_body: false,
            alarm: None,
            timed: None,
            policy: PolicySlot::default(),
            encoded: None,
            paced: None,
            slowed: None,
            request_id: None,
            record: Record {
                route: Some(route),
                began: None,
                answered: None,
                status: 0,
                received_bytes: 0,
                sent_bytes: 0,
                aborted: None,
                entry: None,
            },
        }
    }

    /// Returns whether nothing of it is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns whether a response with this status turns the exchange into a tunnel.
    #[inline]
    pub(crate) fn begins_tunnel(&self, status: StatusCode) -> bool {
        status == StatusCode::SWITCHING_PROTOCOLS
            || (self.kind == Kind::Connect && status.is_success())
    }

    /// The method as far as it decides whether a response has a body.
    pub(crate) fn method(&self) -> &'static Method {
        const HEAD: Method = Method::HEAD;
        const CONNECT: Method = Method::CONNECT;
        const GET: Method = Method::GET;
        match self.kind {
            Kind::Head => &HEAD,
            Kind::Connect => &CONNECT,
            Kind::Message | Kind::Tunnel => &GET,
        }
    }

    /// The client does not wait for `100 Continue` any more. Whether it did.
    #[inline]
    pub(crate) fn take_expectation(&mut self) -> bool {
        let waits = self.phase == Phase::Expected;
        if waits {
            self.phase = Phase::Unanswered;
        }
        waits
    }
}

impl Record {
    /// A piece of the request has come.
    #[inline]
    pub(crate) fn note_received(&mut self, end: End, now: Instant) {
        if end == End::Yes
            && let Some(entry) = &mut self.entry
        {
            entry.times.received = Some(now);
        }
    }
}
