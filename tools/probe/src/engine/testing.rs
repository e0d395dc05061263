//! Plans, and a thread's service, for the tests.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use http::Method;

use super::messages::Command;
use super::recipe::Recipe;
use super::service::LoadService;
use super::share::Share;
use super::task::{limits, task};
use crate::plan::{
    Expectations, Http2Plan, Origin, Plan, RequestKind, RequestPlan, ServerAddress,
    ServerProcesses, Timeouts, TlsPlan, Version,
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

/// A thread's service with room for three connections, and what it is told by.
pub(super) fn service() -> (LoadService, Sender<Command>) {
    let plan = plan_for("127.0.0.1:1".parse().unwrap());
    let limits = limits(&plan);
    let task = Arc::new(task(&plan, &limits, Instant::now()).unwrap());
    let (news, _) = channel();
    let (told, commands) = channel();
    let recipe = Recipe {
        number: 0,
        threads: 1,
        share: Share::WHOLE,
        task,
        seats: 3,
        limits,
        seed: 1,
        core: None,
        news,
        commands,
    };
    (LoadService::new(recipe, Rc::default()), told)
}
