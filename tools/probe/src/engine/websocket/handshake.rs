//! RFC 6455 §4.1, RFC 8441 §4, RFC 9220 §3: how a WebSocket connection is asked for, and whether it was granted.

use bolide_client::Orders;
use bolide_semantics::{End, ExchangeId, FieldName, FieldRef, Misuse, RequestHead, names_in};
use bolide_websocket::{Deflate, DeflatePolicy, handshake};
use bytes::Bytes;
use http::header::{SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION};
use http::{HeaderValue, Method, StatusCode, Version};

use super::WebSocketTask;
use crate::engine::script::Extra;
use crate::engine::template::{Numbers, Values};
use crate::engine::thread_state::ThreadState;
use crate::plan::RequestPlan;

/// The request for the connections on which the messages of `first` are sent.
pub(super) fn plan(first: &RequestPlan, deflate: bool) -> RequestPlan {
    let mut fields = first.fields.clone();
    let version = HeaderValue::from_static(handshake::VERSION);
    fields.push((SEC_WEBSOCKET_VERSION, version));
    if deflate && let Ok(offer) = HeaderValue::try_from(Deflate::offer(&DeflatePolicy::default())) {
        fields.push((SEC_WEBSOCKET_EXTENSIONS, offer));
    }
    RequestPlan { method: Method::GET, fields, body: Bytes::new(), answer: None, ..first.clone() }
}

/// The subprotocols that the fields of a request offer.
pub(super) fn offered(first: &RequestPlan) -> Vec<String> {
    let offers = first.fields.iter().filter(|(name, _)| *name == SEC_WEBSOCKET_PROTOCOL);
    let names = offers.flat_map(|(_, value)| names_in(value.as_bytes()));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Asks for a connection with this key: by extended CONNECT where exchanges are `multiplexed`.
pub(super) fn send(
    task: &WebSocketTask,
    key: &str,
    (numbers, multiplexed): (Numbers, bool),
    state: &mut ThreadState,
    orders: &mut Orders<'_>,
) -> Result<ExchangeId, Misuse> {
    let mut values = Values::of(numbers, &mut state.random);
    task.handshake.render(&mut values, &mut state.rendered);
    let rendered = (&state.rendered, Extra::of(0));
    task.handshake.with_head(&state.task.servers[0], rendered, |head| {
        let mut fields = head.fields.to_vec();
        let (method, protocol) = if multiplexed {
            (&Method::CONNECT, Some(handshake::PROTOCOL))
        } else {
            let protocol = handshake::PROTOCOL.as_bytes();
            fields.push(FieldRef::known(FieldName::Upgrade, protocol));
            fields.push(FieldRef::known(FieldName::SecWebsocketKey, key.as_bytes()));
            (head.method, None)
        };
        let head = RequestHead { method, protocol, fields: &fields, ..*head };
        orders.send_request(&head, End::No)
    })
}

/// Whether the response that was reported last accepts the connection, and with which compression.
///
/// # Errors
///
/// Why the connection can't be used, in a sentence.
pub(super) fn check(
    task: &WebSocketTask,
    key: &str,
    orders: &Orders<'_>,
) -> Result<Option<Deflate>, String> {
    let head = orders.head();
    let offered: Vec<&str> = task.offered.iter().map(String::as_str).collect();
    let status = head.status();
    let is_accepted = if head.version() >= Version::HTTP_2 {
        status.is_success()
    } else {
        status == StatusCode::SWITCHING_PROTOCOLS
    };
    if !is_accepted {
        return Err(format!("the server refused the WebSocket connection with status {status}"));
    }
    handshake::check_answer(head, key, &offered)?;
    let mut chosen = head.get_all(FieldName::SecWebsocketExtensions).peekable();
    if !task.plan.deflate && chosen.peek().is_some() {
        return Err("the server chose an extension that was not offered".into());
    }
    Ok(Deflate::accepted(chosen, &DeflatePolicy::default())?)
}
