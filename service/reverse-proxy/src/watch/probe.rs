//! One check of one upstream: a GET, a gRPC call, or the opening handshake of a WebSocket.

use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bolide_client::{Client, ClientError, ClientLimits, Request, Response, Versions};
use bolide_server::ProxyHeader;

use super::{Orders, Watched};
use crate::health::{HealthCheck, HealthKind};
use crate::tunnels::accept;
use crate::upstream::Scheme;

/// How much of the response to a check is read, in bytes, so that its connection can be used again.
const RESPONSE_BYTES: usize = 64 * 1024;

/// `SERVING` of `grpc.health.v1`.
const SERVING: u8 = 1;

/// The client that makes the checks.
pub(super) fn prober(check: &HealthCheck, orders: &Orders) -> Result<Client, ClientError> {
    let limits = ClientLimits {
        connect_timeout: check.limits.health_timeout,
        collected_bytes: RESPONSE_BYTES,
        retries_count: 0,
        ..ClientLimits::default()
    };
    let mut preamble = Vec::new();
    if let Some(version) = orders.proxy_protocol {
        ProxyHeader::Own.write(version, &mut preamble);
    }
    let builder = Client::builder().limits(limits).user_agent("bolide-health").preamble(&preamble);
    let builder = builder.identity(orders.identity.clone()).server_name(orders.server_name.clone());
    let versions = match check.kind {
        HealthKind::Get(_) => Versions::Any,
        HealthKind::Grpc(_) => Versions::Http2,
        HealthKind::WebSocket(_) => Versions::Http1,
    };
    builder.versions(versions).trust(orders.trust.clone()).build()
}

/// Asks once. What was wrong, if something was.
pub(super) fn probe(client: &Client, watched: &Watched, check: &HealthCheck) -> Result<(), String> {
    let upstream = &watched.upstream;
    let scheme = match (&check.kind, upstream.scheme) {
        (_, Scheme::Tls | Scheme::Http3) => "https",
        (HealthKind::Grpc(_), _) => "h2c",
        (HealthKind::WebSocket(_), _) | (_, Scheme::Http1) => "http",
        (HealthKind::Get(_), Scheme::Http2) => "h2c",
    };
    let url = format!("{scheme}://{}{}", upstream.authority, check.kind.path());
    let send = |request: Request| {
        let request = request.via(watched.destinations()).timeout(check.limits.health_timeout);
        request.send().map_err(|error| error.to_string())
    };
    let wrong = |what: String| format!("{url}: {what}");
    match &check.kind {
        HealthKind::Get(_) => {
            let mut response = send(client.get(&url))?;
            let status = response.status().as_u16();
            if !check.statuses.contains(&status) {
                return Err(wrong(format!("the response is {status}")));
            }
            // What can't be read does not say that it is ill; the connection ends then.
            let _ = response.collect();
            Ok(())
        }
        HealthKind::Grpc(service) => {
            let request = client.post(&url).header("content-type", "application/grpc");
            let mut response = send(request.header("te", "trailers").body(grpc_request(service)))?;
            is_serving(&mut response).map_err(wrong)
        }
        HealthKind::WebSocket(_) => {
            let key = random_key();
            let request = client.get(&url).header("connection", "upgrade");
            let request = request.header("upgrade", "websocket").header("sec-websocket-key", &key);
            let response = send(request.header("sec-websocket-version", "13"))?;
            is_upgraded(&response, &key).map_err(wrong)
        }
    }
}

/// A `HealthCheckRequest` for a service: its name is field 1.
fn grpc_request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    // A name of up to 127 bytes has a length of one.
    if let Some(length) =
        u8::try_from(service.len()).ok().filter(|length| (1..128).contains(length))
    {
        message.extend_from_slice(&[0x0a, length]);
        message.extend_from_slice(service.as_bytes());
    }
    let mut framed = vec![0];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    framed
}

/// Checks whether the response says `SERVING`; else what it says.
fn is_serving(response: &mut Response) -> Result<(), String> {
    let status = response.status().as_u16();
    let content = response.collect().map_err(|error| error.to_string())?;
    let code = response.trailers().and_then(|trailers| {
        trailers.get("grpc-status").and_then(|code| Some(code.to_str().ok()?.to_owned()))
    });
    let code = code.or_else(|| response.header("grpc-status").map(str::to_owned));
    match (status, code.as_deref()) {
        (200, Some("0")) => {}
        (200, Some(code)) => return Err(format!("grpc-status {code}")),
        (200, None) => return Err("the response has no grpc-status".to_owned()),
        (status, _) => return Err(format!("the response is {status}")),
    }
    // Field 1, an enum; the default, 0, is left out.
    match content.get(5..) {
        Some([0x08, SERVING]) => Ok(()),
        Some([0x08, other]) => Err(format!("the service is not serving (status {other})")),
        _ => Err("the service's status is unknown".to_owned()),
    }
}

/// Checks whether the response grants the WebSocket that a request with this key asked for.
fn is_upgraded(response: &Response, key: &str) -> Result<(), String> {
    let status = response.status().as_u16();
    if status != 101 {
        return Err(format!("the response is {status}, not 101"));
    }
    if response.header("sec-websocket-accept") != Some(accept(key.as_bytes()).as_str()) {
        return Err(
            "the response has another Sec-WebSocket-Accept than the key asks for".to_owned()
        );
    }
    Ok(())
}

/// A key that no other handshake has (RFC 6455 §4.1).
fn random_key() -> String {
    let random = RandomState::new();
    let [one, two] = [0_u8, 1].map(|half| random.hash_one(half).to_le_bytes());
    BASE64_STANDARD.encode([one, two].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_their_service() {
        assert_eq!(grpc_request(""), [0, 0, 0, 0, 0]);
        assert_eq!(grpc_request("a.B"), [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
        assert_ne!(random_key(), random_key());
        assert_eq!(random_key().len(), 24);
    }
}
