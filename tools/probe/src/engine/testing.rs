//! Plans for the tests.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;

use crate::plan::Timeouts;
use crate::plan::{
    Expectations, Http2Plan, Origin, Plan, RequestKind, RequestPlan, ServerAddress,
    ServerProcesses, TlsPlan, Version,
};

/// A GET of `target`.
pub(super) fn request(target: &str) -> RequestPlan {
    RequestPlan::new(Method::GET, target.to_owned())
}

/// A GET of `/`, over one connection to `address`.
pub(super) fn plan_for(address: SocketAddr) -> Plan {
    Plan {
        origin: Origin {
            is_https: false,
            authority: address.to_string(),
            addresses: vec![ServerAddress::Inet(address)],
        },
        version: Version::Http1,
        tls: TlsPlan::default(),
        http2: Http2Plan::default(),
        requests: vec![request("/")],
        connections: 1,
        depth: 1,
        threads: 1,
        cores: Vec::new(),
        expect: Expectations::default(),
        kind: RequestKind::default(),
        scenario: None,
        recorded_share: None,
        seed: 1,
        server: ServerProcesses::Unwatched,
        timeouts: Timeouts {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
        },
    }
}
