//! `bolide load --grpc` against tonic and grpc-go: the four kinds of calls, statuses, deadlines and reflection.

use bolide_launcher::{Finished, program, root, run};
use serde_json::Value;

use crate::go::{GoServer, program as go_program};
use crate::proxied::proxy_to;
use crate::start::start;

fn load(url: &str, method: &str, json: &str, more: &[&str]) -> Finished {
    let common = ["load", "--grpc", method, "-d", json, "-c", "3", "-m", "4", "-n", "60"];
    run(program(), [&common, more, &["--json", "-", "-q", url]].concat())
}

/// The first phase of a report.
fn phase(finished: &Finished) -> Value {
    let said = finished.both();
    let report: Value = serde_json::from_str(&finished.text()).expect(&said);
    report["phases"][0].clone()
}

/// Calls of every kind, by the definitions in a file, with these options besides.
fn every_kind(url: &str, options: &[&str]) {
    let proto = root().join("tests/tower/tests/grpc/load.proto");
    let proto = [&["--proto", proto.to_str().unwrap()], options].concat();
    let output = r#"{"responseParameters": [{"size": 9}, {"size": 9}, {"size": 9}]}"#;
    let input = r#"[{"payload": {"body": "YWJj"}}, {"payload": {}}]"#;
    for (method, json, more, messages) in [
        ("UnaryCall", r#"{"responseSize": 31415}"#, &[][..], 60),
        ("StreamingOutputCall", output, &[][..], 180),
        ("StreamingInputCall", input, &["--repeat-messages", "50"][..], 60),
        ("FullDuplexCall", output, &["--repeat-messages", "5"][..], 900),
    ] {
        let method = format!("grpc.testing.TestService/{method}");
        let phase = phase(&load(url, &method, json, &[&proto[..], more].concat()));
        let (counts, events) = (&phase["counts"], &phase["events"]);
        assert_eq!((&counts["succeeded"], &counts["failed"]), (&60.into(), &0.into()), "{phase}");
        assert_eq!(events["events"], messages, "{method}: {events}");
        assert_eq!(events["grpc_statuses"], serde_json::json!({ "OK": 60 }), "{method}");
    }
    let refused = r#"{"responseStatus": {"code": 14, "message": "later"}}"#;
    let finished = load(url, "grpc.testing.TestService/UnaryCall", refused, &proto);
    assert_eq!(finished.status.code(), Some(1));
    let phase = phase(&finished);
    assert_eq!(phase["failures"], serde_json::json!({ "grpc": 60 }));
    assert_eq!(phase["events"]["grpc_statuses"], serde_json::json!({ "UNAVAILABLE": 60 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_call_reaches_tonic() {
    every_kind(&format!("http://{}", start().await), &[]);
}

#[test]
fn every_kind_of_call_reaches_grpc_go() {
    let Some(program) = go_program("load_grpc_go") else { return };
    let server = GoServer::start(program);
    every_kind(&server.urls[0].replace("h2c://", "http://"), &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_call_reaches_tonic_through_the_proxy_over_each_version() {
    let proxy = proxy_to(&format!("h2c://{}", start().await));
    every_kind(proxy.http(), &[]);
    every_kind(proxy.https(), &["--insecure"]);
    every_kind(proxy.https(), &["--insecure", "--http3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_come_by_reflection() {
    let url = format!("http://{}", start().await);
    let json = r#"{"service": "grpc.testing.TestService"}"#;
    let finished = load(&url, "grpc.health.v1.Health/Check", json, &["--deadline", "5s"]);
    assert_eq!(phase(&finished)["counts"]["succeeded"], 60);
    let finished = load(&url, "no.such.Service/Method", "{}", &[]);
    assert_eq!(finished.status.code(), Some(2));
    let said = finished.both();
    assert!(said.contains("the server's reflection was no help: "), "{said}");
    assert!(said.contains("use --proto FILE"), "{said}");
}
