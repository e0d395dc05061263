//! Plans and phases for the tests, and how they are carried out.

use std::net::SocketAddr;
use std::time::Duration;

use bolide_probe::cost::{Accounting, CostSample};
use bolide_probe::engine::Engine;
use bolide_probe::plan::{
    Arrivals, Expectations, ExpectedBody, Http2Plan, Load, Origin, Phase, Plan, RequestKind,
    RequestPlan, ServerAddress, ServerProcesses, Timeouts, TlsPlan, TlsTrust, Until, Version,
};
use bolide_probe::progress::Control;
use bolide_probe::report::PhaseReport;
use bytes::Bytes;
use http::Method;

/// Costs nothing.
pub(crate) struct Free;

impl Accounting for Free {
    fn sample(&mut self) -> CostSample {
        CostSample::default()
    }
}

/// GETs over cleartext HTTP/1.1, on four connections of two threads; every response is compared.
pub(crate) fn plan(address: SocketAddr) -> Plan {
    Plan {
        origin: Origin {
            is_https: false,
            authority: address.to_string(),
            addresses: vec![ServerAddress::Inet(address)],
        },
        version: Version::Http1,
        tls: TlsPlan { trust: TlsTrust::Any, ..TlsPlan::default() },
        http2: Http2Plan::default(),
        requests: vec![RequestPlan {
            response: Some(ExpectedBody::Exact(Bytes::from_static(crate::planted::BODY))),
            ..RequestPlan::new(Method::GET, "/".to_owned())
        }],
        connections: 4,
        depth: 1,
        threads: 2,
        cores: Vec::new(),
        expect: Expectations { sampled_share: 1.0, ..Expectations::default() },
        kind: RequestKind::default(),
        scenario: None,
        recorded_share: None,
        seed: 1,
        server: ServerProcesses::Unwatched,
        timeouts: Timeouts {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
        },
    }
}

/// The same over HTTP/2, with ten requests in flight on each connection.
pub(crate) fn h2_plan(address: SocketAddr) -> Plan {
    Plan { version: Version::Http2, depth: 10, ..plan(address) }
}

/// So many requests in a closed loop.
pub(crate) fn requests(count: u64) -> Phase {
    Phase {
        name: "closed".to_owned(),
        load: Load::Closed,
        warm_up: Duration::ZERO,
        until: Until { requests: Some(count), time: None },
    }
}

/// So long, in milliseconds.
pub(crate) fn lasting(load: Load, time_ms: u64) -> Phase {
    let time = Some(Duration::from_millis(time_ms));
    Phase { load, until: Until { requests: None, time }, ..requests(0) }
}

/// So many requests per second, at equal distances.
pub(crate) fn rate(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Constant }
}

/// An engine that is ready.
#[track_caller]
pub(crate) fn prepare(plan: &Plan) -> Engine {
    Engine::prepare(plan, Box::new(Free)).unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// Carries out one phase.
#[track_caller]
pub(crate) fn run(plan: &Plan, phase: &Phase) -> PhaseReport {
    prepare(plan).run(phase, &mut |_| Control::Continue)
}
