//! RFC 9110 §7.8, RFC 8441: requests to go on with another protocol, from either version to either.
//!
//! HTTP/1.1 asks by `Upgrade` and is answered 101; HTTP/2 asks by an extended CONNECT and is answered 2xx. In
//! between, a request has the form of HTTP/1.1.
//!
//! A server may ignore `Upgrade`, and so does the proxy wherever the request could not go on as it is: with
//! content, which a tunnel would lose, and over HTTP/2 when it asks for nothing that has a meaning there.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bolide_semantics::{FieldName, Head, names_in};
use bolide_server::{Method, StatusCode};

use crate::outgoing;

/// The name of RFC 6455 in `Upgrade` and of RFC 8441 in `:protocol`.
const WEBSOCKET: &str = "websocket";

/// Text that a WebSocket server adds to a key before it digests it (RFC 6455 §1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request to go on with another protocol.
#[derive(Debug)]
pub(crate) struct Wish {
    /// The protocols asked for, in the form of `Upgrade`: one, if it is an extended CONNECT.
    protocols: String,
    /// It means the same as an extended CONNECT for `websocket`.
    is_websocket: bool,
    /// Key that a WebSocket server of HTTP/1.1 must have understood.
    key: Option<Vec<u8>>,
    /// The client asks by an extended CONNECT.
    extended: bool,
}

impl Wish {
    /// Returns what the head of a request wishes for, if anything that can be passed on.
    pub(crate) fn of(head: &Head, has_body: bool) -> Option<Self> {
        if *head.method() == Method::CONNECT {
            let protocols = head.protocol()?.to_owned();
            let is_websocket = protocols.eq_ignore_ascii_case(WEBSOCKET);
            return Some(Self { protocols, is_websocket, key: None, extended: true });
        }
        if has_body || *head.method() == Method::HEAD {
            return None;
        }
        let protocols = outgoing::upgrade(head)?;
        let is_websocket = *head.method() == Method::GET
            && names_in(protocols.as_bytes())
                .any(|name| name.eq_ignore_ascii_case(WEBSOCKET.as_bytes()));
        let key = head.get(FieldName::SecWebsocketKey).map(<[u8]>::to_vec);
        Some(Self { protocols, is_websocket, key, extended: false })
    }

    /// The protocol of the extended CONNECT that asks for the same over HTTP/2, if one does.
    pub(crate) fn over_http2(&self) -> Option<&str> {
        if self.extended {
            return Some(&self.protocols);
        }
        self.is_websocket.then_some(WEBSOCKET)
    }

    /// Gives a request that came by an extended CONNECT the form of HTTP/1.1. `nonce` makes its key another
    /// one than those before.
    pub(crate) fn put_into(&mut self, head: &mut Head, nonce: [u8; 16]) {
        if self.extended {
            head.set_method(Method::GET);
            if self.is_websocket {
                let key = BASE64_STANDARD.encode(nonce);
                head.push_field(FieldName::SecWebsocketKey, key.as_bytes());
                self.key = Some(key.into_bytes());
            }
        }
        head.push_field(FieldName::Upgrade, self.protocols.as_bytes());
    }

    /// Returns whether a response grants it. `multiplexed`: it came over HTTP/2.
    pub(crate) fn is_granted(&self, response: &Head, multiplexed: bool) -> bool {
        if multiplexed {
            return response.status().is_success();
        }
        let is_asked = |name: &[u8]| {
            names_in(self.protocols.as_bytes()).any(|asked| asked.eq_ignore_ascii_case(name))
        };
        let mut switched = response.get_all(FieldName::Upgrade).flat_map(names_in).peekable();
        response.status() == StatusCode::SWITCHING_PROTOCOLS
            && switched.peek().is_some()
            && switched.all(is_asked)
    }

    /// Returns whether the client would take a response that grants nothing for one that does: a 2xx, or a switch to
    /// what was not asked for.
    pub(crate) fn is_misread(&self, response: &Head, multiplexed: bool) -> bool {
        let status = response.status();
        let switches = self.extended && status.is_success();
        (switches || status == StatusCode::SWITCHING_PROTOCOLS)
            && !self.is_granted(response, multiplexed)
    }

    /// Gives the head of the response that grants it the form of the client's version.
    pub(crate) fn answer(&self, from: &Head, to: &mut Head) {
        to.forward(from, |field| {
            !matches!(field.known, Some(FieldName::SecWebsocketAccept | FieldName::ContentLength))
        });
        if self.extended {
            to.set_status(StatusCode::OK);
            return;
        }
        to.set_status(StatusCode::SWITCHING_PROTOCOLS);
        if from.get(FieldName::Upgrade).is_none() {
            to.push_field(FieldName::Upgrade, WEBSOCKET.as_bytes());
        }
        for protocols in from.get_all(FieldName::Upgrade) {
            to.push_field(FieldName::Upgrade, protocols);
        }
        if let Some(accept) = from.get(FieldName::SecWebsocketAccept) {
            to.push_field(FieldName::SecWebsocketAccept, accept);
        } else if let Some(key) = &self.key {
            to.push_field(FieldName::SecWebsocketAccept, accept(key).as_bytes());
        }
    }
}

/// Returns what proves that a WebSocket handshake with this key was understood (RFC 6455 §4.2.2).
pub(crate) fn accept(key: &[u8]) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WEBSOCKET_GUID].concat());
    BASE64_STANDARD.encode(digest.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_accepted_as_rfc_6455_has_it() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn keys_are_sixteen_bytes_and_differ() {
        let key = |nonce| {
            let (protocols, mut head) = (WEBSOCKET.to_owned(), Head::default());
            Wish { protocols, is_websocket: true, key: None, extended: true }
                .put_into(&mut head, nonce);
            head.get(FieldName::SecWebsocketKey).unwrap().to_vec()
        };
        assert_eq!(BASE64_STANDARD.decode(key([1; 16])).unwrap().len(), 16);
        assert_ne!(key([1; 16]), key([2; 16]));
    }
}
