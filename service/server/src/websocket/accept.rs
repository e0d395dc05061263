//! RFC 6455 §4.2, RFC 8441 §5: the response to a handshake.

use bolide_websocket::handshake::{self, Refusal};
use bolide_websocket::{Codec, Settings};
use http::header::{
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderValue, StatusCode, Version};

use super::exchange::{Core, WebSocket};
use super::{Options, Owner};
use crate::{HeaderMap, Reply, Request, Response};

impl WebSocket {
    /// Accepts the connection that the request asks for, or refuses it: 400 for a handshake that is wrong,
    /// 426 for a request that is none, 501 for an extended CONNECT to another protocol.
    ///
    /// The path must be routed for GET (HTTP/1.1) and CONNECT (HTTP/2):
    /// [`Router::websocket`](crate::Router::websocket) does both.
    pub fn accept(request: &Request<'_>, options: &Options, owner: impl Owner) -> Reply {
        Self::accept_with(request, options, HeaderMap::new(), owner)
    }

    /// The same, with more fields in the response.
    pub fn accept_with(
        request: &Request<'_>,
        options: &Options,
        fields: HeaderMap,
        owner: impl Owner,
    ) -> Reply {
        let asked = match handshake::Request::check(request.head()) {
            Ok(asked) => asked,
            Err(refusal) => return refuse(&refusal).fields(fields).into(),
        };
        // Over HTTP/2 and HTTP/3 what follows the head is the tunnel; over HTTP/1.1 a tunnel begins after the request.
        if request.has_body() != (request.version() >= Version::HTTP_2) {
            const BODY: Refusal = Refusal {
                status: StatusCode::BAD_REQUEST,
                what: "a WebSocket handshake has no body, and its stream stays open",
            };
            return refuse(&BODY).fields(fields).into();
        }
        let protocol = asked.protocols().find(|name| options.protocols.iter().any(|p| p == name));
        if protocol.is_none() && options.protocol_required {
            let names = options.protocols.join(", ");
            let what = format!("Sec-WebSocket-Protocol must offer one of: {names}\n");
            return Response::text(what).with_status(StatusCode::BAD_REQUEST).fields(fields).into();
        }
        let mut response = match asked.accept() {
            Some(accept) => Response::new(StatusCode::SWITCHING_PROTOCOLS)
                .header(UPGRADE, HeaderValue::from_static(handshake::PROTOCOL))
                .header(SEC_WEBSOCKET_ACCEPT, accept),
            None => Response::new(StatusCode::OK),
        };
        let deflate = options.deflate.and_then(|policy| asked.deflate(&policy));
        if let Some(protocol) = protocol {
            response = response.header(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        if let Some(agreed) = &deflate {
            response = response.header(SEC_WEBSOCKET_EXTENSIONS, agreed.answer());
        }
        let settings = Settings { limits: options.limits, deflate, mask_seed: 0 };
        let codec = Codec::new(bolide_semantics::Role::Server, settings);
        let protocol = protocol.map(str::to_owned);
        let core = Core::new(codec, options, protocol, request.now());
        Reply::Exchange(Box::new(Self::new(core, response.fields(fields), Box::new(owner))))
    }
}

/// The response to a request that can't be granted.
fn refuse(refusal: &Refusal) -> Response {
    let response = Response::text(format!("{}\n", refusal.what)).with_status(refusal.status);
    if refusal.status != StatusCode::UPGRADE_REQUIRED {
        return response;
    }
    response
        .header(UPGRADE, HeaderValue::from_static(handshake::PROTOCOL))
        .header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(handshake::VERSION))
}
