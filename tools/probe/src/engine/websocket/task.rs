//! RFC 6455 §4.1, RFC 8441 §4, RFC 9220 §3: how a WebSocket connection is asked for, and whether it was granted.

use bolide_client::Orders;
use bolide_semantics::{FieldName, names_in};
use bolide_websocket::{Deflate, DeflatePolicy, Kind, handshake};
use bytes::Bytes;
use http::header::{SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION};
use http::{HeaderValue, Method, StatusCode, Version};

use crate::engine::script::Request;
use crate::engine::websocket_tally::WebSocketTally;
use crate::plan::{Plan, RequestPlan, WebSocketPlan};
use crate::report::WebSocketReport;

/// Properties that all WebSocket connections of a run have in common.
#[derive(Debug)]
pub(in crate::engine) struct WebSocketTask {
    pub(super) plan: WebSocketPlan,
    /// The request that asks for a connection, without what depends on the version.
    pub(super) handshake: Request,
    /// The subprotocols that it offers.
    offered: Vec<String>,
    /// The kind of each message of the script.
    pub(super) kinds: Vec<Kind>,
    /// How long the server may take to accept a connection, and to reply to a close frame, in nanoseconds.
    pub(super) patience_ns: u64,
}

impl WebSocketTask {
    /// Prepares the connections of a plan with at least one request.
    pub(in crate::engine) fn new(plan: &Plan, of: WebSocketPlan) -> Self {
        let first = &plan.requests[0];
        let kind = |request: &RequestPlan| match std::str::from_utf8(&request.body) {
            Ok(_) if !of.binary => Kind::Text,
            _ => Kind::Binary,
        };
        Self {
            plan: of,
            handshake: Request::new(&asking(first, of.deflate), 0),
            offered: offered(first),
            kinds: plan.requests.iter().map(kind).collect(),
            patience_ns: u64::try_from(plan.timeouts.connect_timeout.as_nanos())
                .unwrap_or(u64::MAX / 2),
        }
    }

    /// Returns what is reported of a phase.
    pub(in crate::engine) fn report(&self, tally: Option<WebSocketTally>) -> WebSocketReport {
        tally.unwrap_or_default().report(self.plan.one_way)
    }

    /// Returns whether the response that was reported last accepts the connection, and with which compression.
    ///
    /// # Errors
    ///
    /// Why the connection can't be used, in a sentence.
    pub(super) fn check(&self, key: &str, orders: &Orders<'_>) -> Result<Option<Deflate>, String> {
        let head = orders.head();
        let offered: Vec<&str> = self.offered.iter().map(String::as_str).collect();
        let status = head.status();
        let is_accepted = if head.version() >= Version::HTTP_2 {
            status.is_success()
        } else {
            status == StatusCode::SWITCHING_PROTOCOLS
        };
        if !is_accepted {
            return Err(format!(
                "the server refused the WebSocket connection with status {status}"
            ));
        }
        handshake::check_response(head, key, &offered)?;
        let mut chosen = head.get_all(FieldName::SecWebsocketExtensions).peekable();
        if !self.plan.deflate && chosen.peek().is_some() {
            return Err("the server chose an extension that was not offered".into());
        }
        Ok(Deflate::accepted(chosen, &DeflatePolicy::default())?)
    }
}

/// The request for the connections on which the messages of `first` are sent.
fn asking(first: &RequestPlan, deflate: bool) -> RequestPlan {
    let mut fields = first.fields.clone();
    let version = HeaderValue::from_static(handshake::VERSION);
    fields.push((SEC_WEBSOCKET_VERSION, version));
    if deflate && let Ok(offer) = HeaderValue::try_from(Deflate::offer(&DeflatePolicy::default())) {
        fields.push((SEC_WEBSOCKET_EXTENSIONS, offer));
    }
    RequestPlan { method: Method::GET, fields, body: Bytes::new(), response: None, ..first.clone() }
}

/// The subprotocols that the fields of a request offer.
fn offered(first: &RequestPlan) -> Vec<String> {
    let offers = first.fields.iter().filter(|(name, _)| *name == SEC_WEBSOCKET_PROTOCOL);
    let names = offers.flat_map(|(_, value)| names_in(value.as_bytes()));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
