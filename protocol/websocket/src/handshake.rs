//! RFC 6455 §4, RFC 8441 §5: who may go on as a WebSocket connection.
//!
//! ```
//! use bolide_websocket::handshake;
//!
//! let accept = handshake::accept_key(b"dGhlIHNhbXBsZSBub25jZQ==");
//! assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
//! ```

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bolide_semantics::{FieldName, Head, names_in};
use http::{Method, StatusCode, Version};
use sha1::{Digest as _, Sha1};

use crate::{Deflate, DeflatePolicy};

/// The name of the protocol, in `Upgrade` and in `:protocol`.
pub const PROTOCOL: &str = "websocket";

/// The one version (RFC 6455 §4.1).
pub const VERSION: &str = "13";

/// Text that a server adds to a key before it digests it (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2).
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    BASE64_STANDARD.encode(digest)
}

/// The value of `Sec-WebSocket-Key` from 16 bytes that can't be guessed (RFC 6455 §4.1).
#[must_use]
pub fn key(bytes: [u8; 16]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Why a request can't be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response: with 426 go `Upgrade: websocket` and `Sec-WebSocket-Version: 13`.
    pub status: StatusCode,
    /// Description of the error and of what would be right, as a sentence.
    pub what: &'static str,
}

const fn bad(what: &'static str) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, what }
}

static NO_UPGRADE: Refusal = Refusal {
    status: StatusCode::UPGRADE_REQUIRED,
    what: "this is a WebSocket endpoint: send Upgrade: websocket and Connection: Upgrade",
};
static VERSION_REFUSAL: Refusal = Refusal {
    status: StatusCode::UPGRADE_REQUIRED,
    what: "Sec-WebSocket-Version is missing or not 13, the only version there is",
};
static OTHER_PROTOCOL: Refusal = Refusal {
    status: StatusCode::NOT_IMPLEMENTED,
    what: "the :protocol of a CONNECT to this endpoint is websocket",
};
static NOT_GET: Refusal = bad("a WebSocket handshake over HTTP/1.1 is a GET");
static TOO_OLD: Refusal = bad("a WebSocket handshake needs HTTP/1.1 or later");
static NO_KEY: Refusal = bad("Sec-WebSocket-Key is missing, repeated or not 16 bytes in base64");
static NEEDS_CONNECT: Refusal = bad(
    "over HTTP/2 and HTTP/3 a WebSocket handshake is an extended CONNECT with :protocol websocket",
);

/// A request that asks to go on as a WebSocket connection and does it right.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    head: &'a Head,
    /// HTTP/1.1 only.
    key: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Checks the head of a request over HTTP/1.1 (RFC 6455 §4.2.1), HTTP/2 (RFC 8441 §5) or HTTP/3 (RFC 9220 §3).
    ///
    /// # Errors
    ///
    /// A [`Refusal`]: 400, 426, or 501 for another protocol.
    pub fn check(head: &'a Head) -> Result<Self, Refusal> {
        let multiplexed = head.version() >= Version::HTTP_2;
        if multiplexed && *head.method() != Method::CONNECT {
            return Err(NEEDS_CONNECT);
        }
        if multiplexed {
            let protocol = head.protocol().unwrap_or_default();
            if !protocol.eq_ignore_ascii_case(PROTOCOL) {
                return Err(OTHER_PROTOCOL);
            }
        } else {
            if head.version() != Version::HTTP_11 {
                return Err(TOO_OLD);
            }
            if *head.method() != Method::GET {
                return Err(NOT_GET);
            }
            if !lists(head, FieldName::Upgrade, PROTOCOL)
                || !lists(head, FieldName::Connection, "upgrade")
            {
                return Err(NO_UPGRADE);
            }
        }
        if head.get(FieldName::SecWebsocketVersion) != Some(VERSION.as_bytes()) {
            return Err(VERSION_REFUSAL);
        }
        if multiplexed {
            return Ok(Self { head, key: None });
        }
        let mut keys = head.get_all(FieldName::SecWebsocketKey);
        match (keys.next(), keys.next()) {
            (Some(key), None) if is_key(key) => Ok(Self { head, key: Some(key) }),
            _ => Err(NO_KEY),
        }
    }

    /// The value of `Sec-WebSocket-Accept`; none over HTTP/2 and HTTP/3. The status is 101 with it, and 200 without.
    #[must_use]
    pub fn accept(&self) -> Option<String> {
        self.key.map(accept_key)
    }

    /// The subprotocols that the client offers, the ones that it likes best first.
    pub fn protocols(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.head
            .get_all(FieldName::SecWebsocketProtocol)
            .flat_map(names_in)
            .filter_map(|name| std::str::from_utf8(name).ok())
    }

    /// The compression that is agreed on, if the client offers one that `policy` can meet.
    #[must_use]
    pub fn deflate(&self, policy: &DeflatePolicy) -> Option<Deflate> {
        Deflate::accept(self.head.get_all(FieldName::SecWebsocketExtensions), policy)
    }
}

/// Checks a server's response (RFC 6455 §4.1, RFC 8441 §5) to a request with `key` (of no meaning but over HTTP/1.1)
/// that offered these subprotocols; the one that the server chose.
///
/// # Errors
///
/// What is wrong with it: the connection can't be used.
pub fn check_response<'a>(
    head: &'a Head,
    key: &str,
    offered: &[&str],
) -> Result<Option<&'a str>, &'static str> {
    if head.version() >= Version::HTTP_2 {
        if !head.status().is_success() {
            return Err("the server refuses the WebSocket connection");
        }
    } else {
        if head.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err("the server refuses the WebSocket connection");
        }
        if !lists(head, FieldName::Upgrade, PROTOCOL)
            || !lists(head, FieldName::Connection, "upgrade")
        {
            return Err("the server's 101 names no upgrade to websocket");
        }
        let accept = accept_key(key.as_bytes());
        if head.get(FieldName::SecWebsocketAccept) != Some(accept.as_bytes()) {
            return Err("the server's Sec-WebSocket-Accept does not fit the key");
        }
    }
    let mut chosen = head.get_all(FieldName::SecWebsocketProtocol);
    match (chosen.next(), chosen.next()) {
        (None, _) => Ok(None),
        (Some(name), None) if offered.iter().any(|offered| offered.as_bytes() == name) => {
            Ok(std::str::from_utf8(name).ok())
        }
        _ => Err("the server chose a subprotocol that was not offered"),
    }
}

/// Returns whether the field lists this name, in any case.
fn lists(head: &Head, field: FieldName, name: &str) -> bool {
    head.get_all(field)
        .flat_map(names_in)
        .any(|listed| listed.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns whether it is 16 bytes in base64.
fn is_key(key: &[u8]) -> bool {
    let mut bytes = [0; 18];
    key.len() == 24 && BASE64_STANDARD.decode_slice(key, &mut bytes) == Ok(16)
}

#[cfg(test)]
mod tests;
