//! Responsiveness under load, against a server that has what the draft asks for.

use std::time::Duration;

use bolide_measure::responsiveness::statistics::{Confidence, Parameters};
use bolide_measure::responsiveness::{Plan, Report, run};
use bolide_probe::stop::Stop;

use crate::planted::{Planted, plan};

fn plan_for(scheme: &str, address: std::net::SocketAddr, path: &str) -> Plan {
    Plan {
        url: format!("{scheme}://{address}/"),
        connecting: plan(scheme, address, "/").connecting,
        config_path: path.to_owned(),
        allows_other_hosts: false,
        interval: Duration::from_millis(150),
        intervals_max: 6,
        parameters: Parameters { moving_count: 2, connections_max: 3, ..Parameters::default() },
        stop: Stop::default(),
    }
}

fn score(scheme: &str, address: std::net::SocketAddr, path: &str) -> Report {
    let mut intervals = 0;
    let mut announce = |what: &str| panic!("{what}");
    let report =
        run(&plan_for(scheme, address, path), &mut announce, &mut |_| intervals += 1).unwrap();
    assert!(report.error.is_some() || intervals >= 6, "{intervals}");
    report
}

#[test]
fn both_directions_are_scored_over_tls_and_without() {
    let server = Planted::start();
    for (scheme, address) in [("http", server.http), ("https", server.https)] {
        let report = score(scheme, address, "/.well-known/nq");
        assert_eq!(report.error, None, "{scheme}");
        for scored in [report.download.unwrap(), report.upload.unwrap()] {
            assert!(scored.score.rpm > 0.0 && scored.probes > 0, "{scored:?}");
            assert_eq!(scored.means.tls_foreign_ms.is_some(), scheme == "https");
            assert!((1..=3).contains(&scored.connections) && scored.intervals <= 6, "{scored:?}");
            assert!(scored.goodput_bits_per_second > 0.0);
            let settled_in_time = scored.intervals < 6;
            assert!(!settled_in_time || scored.confidence == Confidence::High, "{scored:?}");
        }
    }
}

#[test]
fn load_goes_to_another_host_only_where_that_is_allowed_and_announced() {
    let (asked, other) = (Planted::start(), Planted::start());
    let mut plan = plan_for("http", asked.http, &format!("/elsewhere/{}", other.http.port()));
    let report = run(&plan, &mut |what| panic!("{what}"), &mut |_| panic!("load")).unwrap();
    let said = report.error.unwrap();
    let expected = format!("it directs the load to http://127.0.0.1:{} ", other.http.port());
    assert!(said.contains(&expected) && said.contains("--allow-other-hosts"), "{said}");
    plan.allows_other_hosts = true;
    let mut announced = Vec::new();
    let report = run(&plan, &mut |what| announced.push(what.to_owned()), &mut |_| {}).unwrap();
    assert!(report.error.is_none() && report.download.is_some(), "{:?}", report.error);
    let [said] = &announced[..] else { panic!("{announced:?}") };
    let expected =
        format!("directs the load to http://127.0.0.1:{} (127.0.0.1)", other.http.port());
    assert!(said.ends_with(&expected), "{said}");
}

#[test]
fn a_server_without_a_description_is_told_of() {
    let server = Planted::start();
    let said = score("http", server.http, "/no/nq").error.unwrap();
    assert!(said.contains("404 Not Found"), "{said}");
    let said = score("http", server.http, "/ping").error.unwrap();
    assert!(said.contains("not a description of measurement resources"), "{said}");
}
