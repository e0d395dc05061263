//! A reverse proxy between clients and upstreams that all follow scripts.

#![no_main]

use std::time::{Instant, SystemTime};

use arbitrary::Arbitrary;
use bolide_eventloop::{Destination, Limits as LoopLimits};
use bolide_fuzz::{Party, Script, network, run};
use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Upstream};
use bolide_server::{Limits, Router, worker_service};
use bolide_simnet::Simulation;
use libfuzzer_sys::fuzz_target;

const UPSTREAM: &str = "203.0.113.1:9000";

#[derive(Debug, Arbitrary)]
struct Plan {
    upstream_is_h2: bool,
    has_few_connections: bool,
    upstream: Vec<Script>,
    clients: Vec<Script>,
}

fuzz_target!(|plan: Plan| {
    let Some(first) = plan.clients.first() else { return };
    let start = Instant::now();
    let scheme = if plan.upstream_is_h2 { "h2c" } else { "http" };
    let upstream = Upstream::parse(&format!("{scheme}://{UPSTREAM}")).expect("an upstream");
    let connections_count = if plan.has_few_connections { 1 } else { 4 };
    let limits = ProxyLimits { connections_count, ..ProxyLimits::default() };
    let settings = ProxySettings::new(vec![upstream]).expect("settings").limits(limits);
    let settings = settings.pseudonym("bolide").expect("a name");
    let faults = network(first.piece);
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), |_| {
        let router = Router::new().fallback(ReverseProxy::new(&settings));
        worker_service(router, Limits::default(), SystemTime::now, start)
    });
    let (mut nth, scripts, is_h2) = (0, plan.upstream, plan.upstream_is_h2);
    simulation.answer(Destination::Inet(UPSTREAM.parse().expect("an address")), move || {
        let at = nth % scripts.len().max(1);
        nth += 1;
        let script = scripts.get(at).cloned();
        let script = script.unwrap_or(Script { is_h2, piece: 0, acts: Vec::new() });
        Party::new(Script { is_h2, ..script }, false)
    });
    for script in plan.clients.into_iter().take(4) {
        simulation.connect(Party::new(script, true));
    }
    run(simulation);
});
