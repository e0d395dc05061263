//! A request, as its handler sees it.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bolide_connection::{Connection, HandshakeFacts};
use bolide_semantics::{FieldName, Head};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use percent_encoding::percent_decode_str;

use crate::Ingress;
use crate::ends::Ends;
use crate::forwarded::Client;
use crate::policy::{Policy, PolicySlot};
use crate::responder::{Address, MovableWaker, Responder, Waker};

/// Result of [`Request::take_body`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestBody {
    /// The request has none, or it was taken before.
    Empty,
    /// All of it.
    Whole(Bytes),
    /// It comes to an [`Exchange`](crate::Exchange), piece by piece: it is longer than
    /// [`WHOLE_BODY_BYTES`](crate::WHOLE_BODY_BYTES), has not arrived with the head, or the handler does not
    /// [take such bodies](crate::Handler::takes_whole_bodies), as functions don't.
    Follows,
}

/// A request's head and the facts of its connection, lent to the handler.
///
/// Nothing of it is copied unless asked for.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) head: &'a Head,
    pub(crate) connection: &'a Connection,
    pub(crate) ends: &'a Ends,
    pub(crate) parameters: Option<&'a matchit::Params<'a, 'a>>,
    pub(crate) body_follows: bool,
    /// The body, when it has arrived with the head, until it is taken.
    pub(crate) whole: Option<Bytes>,
    pub(crate) now: Instant,
    pub(crate) address: Address<'a>,
    pub(crate) policy: &'a PolicySlot,
    /// Information that is taken from the peer, if any.
    pub(crate) ingress: Option<&'a Ingress>,
}

impl<'a> Request<'a> {
    /// The method.
    #[inline]
    #[must_use]
    pub fn method(&self) -> &Method {
        self.head.method()
    }

    /// The path as sent, undecoded, without the query.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &'a str {
        split_query(self.head.path_and_query()).0
    }

    /// The query as sent, without the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        split_query(self.head.path_and_query()).1
    }

    /// The first value of a query parameter, decoded.
    #[must_use]
    pub fn query_param(&self, name: &str) -> Option<Cow<'a, str>> {
        parameter(self.query()?, name)
    }

    /// The part of the path that stands for `{name}` in the route, decoded. Bytes that are not
    /// UTF-8 are replaced.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Cow<'a, str>> {
        let value = self.parameters?.get(name)?;
        Some(percent_decode_str(value).decode_utf8_lossy())
    }

    /// The host and port that the client asked for.
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        self.head.authority()
    }

    /// The value of the first field with this name (in lower case), if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let value = match FieldName::lookup(name.as_bytes()) {
            Some(known) => self.head.get(known),
            None => self.head.get_named(name),
        };
        value.and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All fields as a map: built when asked for.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.head.field_count());
        for field in self.head.fields() {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(field.name), HeaderValue::from_bytes(field.value))
            {
                map.append(name, value);
            }
        }
        map
    }

    /// The head as it was received.
    #[must_use]
    pub fn head(&self) -> &'a Head {
        self.head
    }

    /// Has rules hold for this exchange, in addition to those that hold already: they apply to its final response,
    /// whatever makes it, also when the handler panics.
    pub fn set_policy(&self, policy: Rc<dyn Policy>) {
        self.policy.add(policy);
    }

    /// Returns who the request is from, when its policies know.
    #[must_use]
    pub fn user(&self) -> UserOf<'a> {
        UserOf(self.policy)
    }

    /// HTTP/1.0, HTTP/1.1 or HTTP/2.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// The address of the client that the request is from: where the [peer](Self::peer) is
    /// [trusted](crate::Ingress::trusted), that which it names, else the peer's. None on a Unix socket. An
    /// IPv4 address that is mapped to IPv6 is given as IPv4.
    ///
    /// It is looked up in the fields each time.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.origin().address
    }

    /// Returns what the client has spoken, `http` or `https`: as a trusted peer says, else whether this connection has TLS or is over QUIC.
    #[must_use]
    pub fn scheme(&self) -> &'a str {
        let own = if self.connection.is_secure() { "https" } else { "http" };
        self.origin().scheme.unwrap_or(own)
    }

    /// The host and port that the client asked for: as a trusted peer says, else the [authority](Self::authority).
    #[must_use]
    pub fn client_authority(&self) -> Option<&'a str> {
        self.origin().host.or_else(|| self.authority())
    }

    /// Returns whether the peer's forwarding fields count; `None` where no peer is trusted, and they are not looked at.
    #[must_use]
    pub fn is_forwarded(&self) -> Option<bool> {
        let ingress = self.ingress.filter(|ingress| !ingress.trusted.is_empty())?;
        Some(ingress.trusted.contains(self.ends.peer().map(|peer| peer.ip())))
    }

    fn origin(&self) -> Client<'a> {
        Client::of(self.head, self.ends, self.ingress)
    }

    /// The address of the far end of the connection: the client's, or that of a proxy. After a PROXY header, that which
    /// the header names. None on a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.ends.peer()
    }

    /// The address that the client has connected to; after a PROXY header, that which the header names. None on a Unix
    /// socket.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.ends.local()
    }

    /// The address of this server's socket that took the connection, whatever a PROXY header says. None on a Unix socket.
    #[must_use]
    pub fn accepted(&self) -> Option<SocketAddr> {
        self.ends.accepted()
    }

    /// Returns what the TLS handshake agreed on; none over cleartext.
    #[must_use]
    pub fn tls(&self) -> Option<HandshakeFacts> {
        self.connection.tls_facts()
    }

    /// The same, made once for a connection.
    #[must_use]
    pub fn tls_shared(&self) -> Option<Arc<HandshakeFacts>> {
        self.connection.tls_facts_shared()
    }

    /// Returns whether a body follows the head.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.body_follows
    }

    /// Takes the body, where it is at hand; [`collect`](crate::collect) waits for it. An [`Exchange`](crate::Exchange) gets
    /// none of what was taken here. The bytes share no block.
    #[must_use]
    pub fn take_body(&mut self) -> RequestBody {
        match self.whole.take() {
            Some(bytes) => {
                self.body_follows = false;
                RequestBody::Whole(bytes)
            }
            None if self.body_follows => RequestBody::Follows,
            None => RequestBody::Empty,
        }
    }

    /// The length of the body in bytes, when the client has announced it.
    #[must_use]
    pub fn body_length(&self) -> Option<u64> {
        if !self.body_follows {
            return Some(0);
        }
        let value = self.head.get(FieldName::ContentLength)?;
        bolide_semantics::parse_content_length(value)
    }

    /// The time at which the worker began the turn in which the request arrived: it costs no look at
    /// the clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A handle with which any thread ca response later: return [`Reply::Later`](crate::Reply::Later).
    ///
    /// ```
    /// use std::thread;
    /// use bolide_server::{Reply, Request, Router};
    ///
    /// fn slow(request: &mut Request<'_>) -> Reply {
    ///     let responder = request.responder();
    ///     thread::spawn(move || responder.respond("computed elsewhere"));
    ///     Reply::Later
    /// }
    /// assert!(Router::new().get("/slow", slow).check().is_ok());
    /// ```
    #[must_use]
    pub fn responder(&self) -> Responder {
        Responder::new(self.waker())
    }

    /// A handle with which any thread can ask for another turn of this exchange.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.address.waker()
    }

    /// As [`Self::waker`], one that can be [moved](Self::aim) to other exchanges of this worker.
    #[must_use]
    pub fn movable_waker(&self) -> MovableWaker {
        MovableWaker::new(&self.address)
    }

    /// Makes `waker`, which must be of the same worker, one of this exchange: cheaper than a new one.
    #[inline]
    pub fn aim(&self, waker: &MovableWaker) {
        waker.aim(&self.address);
    }
}

/// The names and values of a query, decoded, in their order.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(query.as_bytes())
}

/// Path and query of a request target.
#[inline]
pub(crate) fn split_query(target: &str) -> (&str, Option<&str>) {
    cut(target, b'?')
}

/// The path of a request target.
#[inline]
pub(crate) fn path_of(target: &[u8]) -> &[u8] {
    &target[..place_of(target, b'?').unwrap_or(target.len())]
}

/// The place of the first `mark`, eight bytes at a time: for texts so short that a search made for long ones costs
/// more.
#[inline]
fn place_of(text: &[u8], mark: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    let mut at = 0;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let others = u64::from_le_bytes(*bytes) ^ (ONES * u64::from(mark));
        // The lowest bit is that of the first mark.
        let marks = others.wrapping_sub(ONES) & !others & (ONES * 0x80);
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|byte| *byte == mark).map(|place| at + place)
}

/// Returns what stands before the first `mark`, an ASCII character, and after it.
#[inline]
fn cut(text: &str, mark: u8) -> (&str, Option<&str>) {
    match place_of(text.as_bytes(), mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The first value of `name` in a query, decoded.
pub(crate) fn parameter<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let mut rest = Some(query);
    while let Some(text) = rest {
        let (pair, more) = cut(text, b'&');
        rest = more;
        if pair.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
            let decoded = form_urlencoded::parse(pair.as_bytes()).next();
            if let Some((_, value)) = decoded.filter(|(key, _)| key == name) {
                return Some(value);
            }
        } else if !pair.is_empty() {
            let (key, value) = cut(pair, b'=');
            if key == name {
                return Some(Cow::Borrowed(value.unwrap_or_default()));
            }
        }
    }
    None
}

/// User of a request, as its policies name it when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct UserOf<'a>(&'a PolicySlot);

impl UserOf<'_> {
    /// Gives the name of the user, if there is one, to a function.
    pub fn with(self, take: impl FnOnce(&str)) {
        if let Some(user) = self.0.get().as_ref().and_then(|policy| policy.user()) {
            take(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_parameter_is_what_the_decoded_pairs_say(query in "[ab=&%+2é]{0,20}", name in "[ab ]{0,2}") {
            let pairs = query_pairs(&query).find(|(key, _)| *key == name).map(|(_, value)| value);
            prop_assert_eq!(parameter(&query, &name), pairs);
        }
    }

    #[test]
    fn the_path_ends_where_the_query_begins() {
        for target in ["/", "/a?b?c", "?", "", "/é?%", "/of-seven?", "/longer/?>?", "/no-query"] {
            let (path, _) = split_query(target);
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
            assert_eq!(path, target.split('?').next().unwrap());
        }
    }
}
