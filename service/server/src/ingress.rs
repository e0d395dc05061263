//! Information that a server takes from the proxies in front of it: who their clients are, and the names of requests.

use std::cell::Cell;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bolide_semantics::Head;

use crate::Networks;
use crate::ends::Ends;
use crate::limits::REQUEST_ID_BYTES;

/// Which connections to a listener begin with a PROXY header (HAProxy's `proxy-protocol.txt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyProtocol {
    /// None.
    #[default]
    Off,
    /// Those of [trusted](Ingress::trusted) peers may; for others, its bytes are a malformed request.
    Optional,
    /// Every one. Peers that are not [trusted](Ingress::trusted) are turned away.
    Required,
}

/// The fields in which trusted peers name their clients. Only one kind is read: a peer that writes the one may pass the
/// other on as its client sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Treatment of `X-Request-Id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestId {
    /// Nothing: a field like others.
    #[default]
    Off,
    /// Each request has one for handlers, upstreams and the access log: that of a trusted peer, or else a random one of
    /// 128 bits.
    Request,
    /// The same, and the response has it, too.
    Response,
}

/// Information that a server takes from its peers. Default: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ingress {
    /// The proxies whose PROXY headers, forwarding fields and request identifiers are trusted.
    pub trusted: Networks,
    /// Which forwarding fields they write.
    pub fields: ForwardedFields,
    /// Treatment of `X-Request-Id`.
    pub request_id: RequestId,
}

/// The field that names a request.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// One worker's side of it.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) settings: Arc<Ingress>,
    /// Of this worker alone; the hash of a count under two keys is a number that no client can foretell.
    keys: [RandomState; 2],
    count: Cell<u64>,
}

impl Gate {
    /// None: nothing is taken, which costs a request one branch.
    pub(crate) fn new(settings: &Ingress) -> Option<Self> {
        (*settings != Ingress::default()).then(|| Self {
            settings: Arc::new(settings.clone()),
            keys: [RandomState::new(), RandomState::new()],
            count: Cell::new(0),
        })
    }

    /// A request begins: it gets its identifier. Returns what the response is to say of it.
    pub(crate) fn admit(&self, head: &mut Head, ends: &Ends) -> Option<Box<str>> {
        if self.settings.request_id == RequestId::Off {
            return None;
        }
        let given = head.get_uncommon(REQUEST_ID).filter(|given| is_request_id(given));
        let is_kept = given.is_some()
            && self.settings.trusted.contains(ends.peer().map(|peer| peer.ip()))
            && head.fields().filter(|field| is_request_id_field(field.name)).count() == 1;
        if !is_kept {
            let id = self.make();
            head.retain_fields(|name| !is_request_id_field(name));
            head.append(REQUEST_ID, id.as_bytes());
        }
        if self.settings.request_id != RequestId::Response {
            return None;
        }
        let id = head.get_uncommon(REQUEST_ID)?;
        std::str::from_utf8(id).ok().map(Box::from)
    }

    /// 32 digits in hexadecimal.
    fn make(&self) -> String {
        let count = self.count.get();
        self.count.set(count.wrapping_add(1));
        let mut text = String::with_capacity(32);
        for key in &self.keys {
            // Writing to a string never fails.
            let _ = write!(text, "{:016x}", key.hash_one(count));
        }
        text
    }
}

/// CGI reads a name with underscores as the one with hyphens.
fn is_request_id_field(name: &str) -> bool {
    let same = |(one, other): (u8, u8)| one == other || (one == b'_' && other == b'-');
    name.len() == REQUEST_ID.len() && name.bytes().zip(REQUEST_ID.bytes()).all(same)
}

/// Returns whether it can go into logs and to upstreams: visible characters without quotes.
fn is_request_id(value: &[u8]) -> bool {
    let suits = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'\'' | b',');
    (1..=REQUEST_ID_BYTES).contains(&value.len()) && value.iter().all(suits)
}

#[cfg(test)]
mod tests {
    use bolide_semantics::HeadKind;
    use http::Version;

    use super::*;

    fn admitted(peer: &str, fields: &[(&str, &str)]) -> (Vec<String>, Option<Box<str>>) {
        let settings = Ingress {
            trusted: [("10.0.0.0/8").parse().unwrap()].into_iter().collect(),
            request_id: RequestId::Response,
            ..Ingress::default()
        };
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        for (name, value) in fields {
            head.append(name, value.as_bytes());
        }
        let ends = Ends::new(Some(peer.parse().unwrap()), None);
        let said = Gate::new(&settings).unwrap().admit(&mut head, &ends);
        let ids = head.fields().filter(|field| is_request_id_field(field.name));
        (ids.map(|field| String::from_utf8(field.value.to_vec()).unwrap()).collect(), said)
    }

    #[test]
    fn a_trusted_peer_names_its_requests() {
        let (ids, said) = admitted("10.0.0.1:1", &[("x-request-id", "a-1"), ("x-other", "2")]);
        assert_eq!((ids, said.as_deref()), (vec!["a-1".to_owned()], Some("a-1")));
    }

    #[test]
    fn a_forged_request_id_is_replaced_by_a_random_one() {
        let long = "x".repeat(REQUEST_ID_BYTES + 1);
        for (peer, fields) in [
            ("192.0.2.1:1", &[("x-request-id", "a")][..]),
            ("10.0.0.1:1", &[]),
            ("10.0.0.1:1", &[("x-request-id", "a\"b")]),
            ("10.0.0.1:1", &[("x-request-id", long.as_str())]),
            ("10.0.0.1:1", &[("x-request-id", "a"), ("x-request-id", "b")]),
            ("10.0.0.1:1", &[("x-request-id", "a"), ("x_request_id", "b")]),
        ] {
            let (ids, said) = admitted(peer, fields);
            let [id] = &ids[..] else { panic!("{fields:?}: {ids:?}") };
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            assert_eq!(said.as_deref(), Some(id.as_str()));
        }
        assert_ne!(admitted("192.0.2.1:1", &[]).0, admitted("192.0.2.1:1", &[]).0);
    }

    #[test]
    fn what_is_not_configured_is_no_gate() {
        assert!(Gate::new(&Ingress::default()).is_none());
    }
}
