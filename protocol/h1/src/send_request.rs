//! RFC 9112 §3, §6: requests, as a client sends them.

use bolide_semantics::{
    Context, End, ExchangeId, FieldRef, Misuse, RequestHead, Role, is_valid_authority,
    is_valid_target,
};
use http::Method;

use crate::connection::Connection;
use crate::encode::{self, Pass, Written};
use crate::exchanges::{Kind, PLACES};
use crate::persistence::Wish;
use crate::sending::Framing;

impl Connection {
    /// Sends a request (client). `Host` and the framing are added; `Upgrade` and `TE` are sent as
    /// given, with their mention in `Connection`.
    ///
    /// A CONNECT, or a request with `Upgrade` and no `Content-Length`, has no content, whatever `end`
    /// says: what follows it, once it was granted, is a tunnel.
    ///
    /// # Errors
    ///
    /// [`Misuse::Refused`] when no exchange can be opened: the request before is not complete, may
    /// become a tunnel, or was the last; or too many are open. [`Misuse::InvalidHead`] when the head
    /// can't be sent, [`Misuse::WrongLength`] when it announces content and `end` says that there is
    /// none.
    pub fn send_request(
        &mut self,
        cx: &mut Context<'_>,
        head: &RequestHead<'_>,
        end: End,
    ) -> Result<ExchangeId, Misuse> {
        if !self.takes_request() {
            return Err(Misuse::Refused);
        }
        let RequestHead { method, authority, path, protocol, .. } = *head;
        if protocol.is_some() || !is_valid_authority(authority.as_bytes()) {
            return Err(Misuse::InvalidHead);
        }
        let target = if *method == Method::CONNECT { authority } else { path };
        if *method != Method::CONNECT && !fits(method, target) {
            return Err(Misuse::InvalidHead);
        }
        let before = cx.output.len();
        let tail = cx.output.tail();
        let start = tail.len();
        request_line(tail, method, target, authority);
        match request_fields(tail, method, head.fields, end) {
            Ok((kind, framing, close)) => {
                if let Some(framing) = framing {
                    self.sending.begin(framing);
                }
                // The server is asked to close: no request follows this one.
                if close {
                    self.persistence.wish = Wish::Drain;
                }
                let start = self.progress.position();
                self.progress.queued(cx.output.len() - before);
                self.clock.busy();
                Ok(self.exchanges.open(kind, start))
            }
            Err(misuse) => {
                tail.truncate(start);
                Err(misuse)
            }
        }
    }

    /// Returns whether all of request `id` has been written (client): one that is open, or whose response was completed
    /// last. Over TLS, what waits as records counts as written.
    #[inline]
    #[must_use]
    pub fn is_written(&self, cx: &Context<'_>, id: ExchangeId) -> bool {
        let written = self.progress.written(cx.output.len());
        if id.0 == self.exchanges.total() {
            self.sending.is_ready() && written == self.progress.position()
        } else {
            written >= self.exchanges.start(ExchangeId(id.0 + 1))
        }
    }

    /// How many bytes of request `id` wait to be written (client), of those that were given: of one that is open, or
    /// whose response was completed last.
    #[must_use]
    pub fn unwritten_bytes(&self, cx: &Context<'_>, id: ExchangeId) -> u64 {
        let end = if id.0 == self.exchanges.total() {
            self.progress.position()
        } else {
            self.exchanges.start(ExchangeId(id.0 + 1))
        };
        end.saturating_sub(self.progress.written(cx.output.len()))
    }

    /// How many requests may be sent now, one after the other (client).
    #[must_use]
    pub fn exchanges_available(&self) -> u32 {
        if !self.takes_request() {
            return 0;
        }
        let depth = self.limits.pipelined_count.clamp(1, PLACES as u8);
        let room = u32::from(depth.saturating_sub(self.exchanges.count()));
        room.min(self.limits.requests_count.max(1).saturating_sub(self.exchanges.total()))
    }

    /// Returns whether another request may be sent now.
    #[inline]
    fn takes_request(&self) -> bool {
        self.role == Role::Client
            && self.ending.is_none()
            && self.sending.is_ready()
            && self.persistence.persists
            && self.persistence.wish == Wish::Stay
            && !self.persistence.has_ended()
            && !self.exchanges.may_switch()
            && self.exchanges.count() < self.limits.pipelined_count.clamp(1, PLACES as u8)
            && self.exchanges.total() < self.limits.requests_count.max(1)
    }
}

/// Returns whether a request may have this target in origin or asterisk form.
#[inline]
fn fits(method: &Method, target: &str) -> bool {
    let form = target.starts_with('/') || (target == "*" && *method == Method::OPTIONS);
    form && is_valid_target(target.as_bytes())
}

#[inline]
fn request_line(tail: &mut Vec<u8>, method: &Method, target: &str, authority: &str) {
    let method = method.as_str();
    tail.reserve(method.len() + target.len() + authority.len() + 19);
    tail.extend_from_slice(method.as_bytes());
    tail.extend_from_slice(b" ");
    tail.extend_from_slice(target.as_bytes());
    tail.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    tail.extend_from_slice(authority.as_bytes());
    tail.extend_from_slice(b"\r\n");
}

/// Writes a request's fields and framing. Returns the kind, the framing of the body that follows, and
/// whether the server was asked to close.
#[inline]
fn request_fields(
    tail: &mut Vec<u8>,
    method: &Method,
    fields: &[FieldRef<'_>],
    end: End,
) -> Result<(Kind, Option<Framing>, bool), Misuse> {
    let connects = *method == Method::CONNECT;
    let may_upgrade = !connects && *method != Method::HEAD;
    let pass = Pass { length: !connects, upgrade: may_upgrade, te: !connects };
    let Written { length, close, upgrade, te } = encode::fields(tail, fields, pass)?;
    let framing = match (length, end) {
        (Some(1..), End::Yes) if !connects => return Err(Misuse::WrongLength),
        (_, End::Yes) if connects => None,
        (Some(length), End::No) if !connects => Some(Framing::Length(length)),
        (None, End::No) if !connects && !upgrade => {
            tail.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Some(Framing::Chunked)
        }
        (None, End::Yes) if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
            tail.extend_from_slice(b"content-length: 0\r\n");
            None
        }
        _ => None,
    };
    let option = |given: bool, name| given.then_some(name);
    let options = [option(upgrade, "upgrade"), option(te, "te"), option(close, "close")];
    encode::connection(tail, options);
    tail.extend_from_slice(b"\r\n");
    Ok((Kind::of(method, upgrade), framing, close))
}
