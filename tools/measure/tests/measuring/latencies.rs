//! Latency during a transfer.

use std::time::Duration;

use bolide_measure::plan::{Amount, Plan, Probing};

use crate::planted::{Planted, measure, measured, over_h2, plan};

fn probed(server: &Planted, rate: f64) -> Plan {
    let mut plan = plan("http", server.http, "/1099511627776");
    plan.transfer.amount = Amount::Time(Duration::from_millis(600));
    plan.probing =
        Some(Probing { path: "/ping".into(), other: None, rate, idle: Duration::from_millis(200) });
    plan
}

#[test]
fn probes_are_told_apart_by_where_they_went() {
    let (server, other) = (Planted::start(), Planted::start());
    let mut plan = over_h2(probed(&server, 50.0));
    if let Some(probing) = &mut plan.probing {
        probing.other =
            Some((crate::planted::plan("http", other.http, "/").connecting, "/ping".into()));
    }
    let latency = measured(&plan).latency.unwrap();
    for (name, found) in [
        ("idle", latency.idle),
        ("same", latency.same_connection),
        ("separate", latency.separate_connection),
        ("other", latency.separate_origin),
    ] {
        let found = found.unwrap_or_else(|| panic!("no {name}: {latency:?}"));
        assert!(found.count >= 5 && found.p50_us > 0.0 && found.p99_us >= found.p50_us, "{name}");
    }
    assert!((latency.rate - 50.0).abs() < 1e-9);
}

#[test]
fn over_http1_nothing_overtakes_the_transfer() {
    let server = Planted::start();
    let latency = measured(&probed(&server, 50.0)).latency.unwrap();
    assert!(latency.same_connection.is_none() && latency.separate_origin.is_none());
    assert!(latency.idle.is_some() && latency.separate_connection.is_some());
}

#[test]
fn what_can_not_be_probed_for_is_told_before_the_transfer() {
    let server = Planted::start();
    let mut plan = probed(&server, 50.0);
    if let Some(probing) = &mut plan.probing {
        probing.path = "/nothing/here".into();
    }
    let report = measure(&plan);
    let said = report.end.error.unwrap();
    assert!(said.contains("GET /nothing/here got 404") && said.contains("--probe-path"));
    assert_eq!(report.volume.bytes, 0);
}
