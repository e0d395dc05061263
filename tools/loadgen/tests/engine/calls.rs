//! gRPC over HTTP/2: calls that end well, end badly, and don't end.

use std::collections::BTreeMap;

use bolide_probe::plan::{EventsPlan, Plan, RequestKind, StreamFormat};
use bolide_probe::report::Failure;
use http::Method;

use crate::plans::{h2_plan, requests, run};
use crate::planted::{Behaviour, Plant, Planted};

/// One message of two bytes, and one of none.
const MESSAGES: &[u8] = b"\0\0\0\0\x02ab\0\0\0\0\0";

fn calls(server: &Planted) -> Plan {
    let mut plan = h2_plan(server.address);
    let format = StreamFormat::Grpc;
    plan.kind = RequestKind::Events(EventsPlan { stall_ns: 1_000_000_000, format });
    plan.requests[0].method = Method::POST;
    plan.requests[0].response = None;
    plan.requests[0].body = MESSAGES.into();
    Plan { connections: 1, threads: 1, depth: 1, ..plan }
}

fn planted(acts: impl Fn(u64) -> Plant + Send + Sync + 'static) -> Planted {
    Planted::start(Behaviour { plant: Box::new(acts), ..Behaviour::default() })
}

#[test]
fn messages_and_statuses_of_calls_are_counted() {
    let server = planted(|_| Plant::Call(MESSAGES, Some("0")));
    let plan = Plan { connections: 4, threads: 2, depth: 10, ..calls(&server) };
    let report = run(&plan, &requests(200));
    assert_eq!((report.counts.succeeded, report.counts.failed), (200, 0), "{:?}", report.failures);
    let events = report.kinds.events.unwrap();
    assert_eq!((events.events, events.streams, events.first.count), (400, 200, 200));
    assert_eq!(events.grpc_statuses.unwrap(), BTreeMap::from([("OK".to_owned(), 200)]));
}

#[test]
fn each_way_to_end_is_counted_with_its_status() {
    let compressed = b"\x01\0\0\0\0";
    for (plant, failure, status) in [
        (Plant::Call(MESSAGES, Some("14")), Failure::Grpc, Some("UNAVAILABLE")),
        (Plant::Call(MESSAGES, Some("99")), Failure::Grpc, Some("UNKNOWN")),
        (Plant::Call(MESSAGES, None), Failure::Grpc, Some("missing")),
        (Plant::Refusal("12"), Failure::Grpc, Some("UNIMPLEMENTED")),
        (Plant::Call(&MESSAGES[..4], Some("0")), Failure::Protocol, None),
        (Plant::Call(&MESSAGES[..6], Some("0")), Failure::Protocol, None),
        (Plant::Call(compressed, Some("0")), Failure::Protocol, None),
        (Plant::WrongStatus, Failure::Status, Some("missing")),
        (Plant::Reset, Failure::Reset, None),
    ] {
        let right = Plant::Call(MESSAGES, Some("0"));
        let server = planted(move |number| if number == 2 { plant } else { right });
        let report = run(&calls(&server), &requests(4));
        assert_eq!(report.counts.succeeded, 3, "{plant:?}");
        assert_eq!(report.failures, BTreeMap::from([(failure, 1)]), "{plant:?}");
        let statuses = report.kinds.events.unwrap().grpc_statuses.unwrap();
        let other = statuses.iter().find(|(name, _)| *name != "OK");
        assert_eq!(other.map(|(name, _)| name.as_str()), status, "{plant:?}");
    }
}
