//! Command lines and what becomes of them.

use std::time::Duration;

use bolide_probe::plan::{
    Arrivals, EventsPlan, ExpectedBody, Load, RequestKind, ServerAddress, StreamFormat,
    WebSocketPlan,
};
use clap::Parser;
use http::Method;

use super::*;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    load: Arguments,
}

fn parse(line: &str) -> Result<Arguments, String> {
    let words = std::iter::once("load").chain(line.split_whitespace());
    Program::try_parse_from(words).map(|program| program.load).map_err(|error| error.to_string())
}

fn job(line: &str) -> Job {
    parse(line).and_then(|arguments| arguments.job()).unwrap_or_else(|why| panic!("{line}: {why}"))
}

fn mistake(line: &str) -> String {
    match parse(line).and_then(|arguments| arguments.job()) {
        Ok(job) => panic!("{line} is taken for {job:?}"),
        Err(mistake) => mistake,
    }
}

const URL: &str = "http://127.0.0.1:8080/ping";

fn fixed(line: &str) -> Vec<bolide_probe::plan::Phase> {
    match job(line).schedule {
        Schedule::Fixed(phases) => phases,
        other => panic!("{other:?}"),
    }
}

#[test]
fn credentials_are_a_field_of_every_request() {
    for (options, value) in
        [("--basic user:secret", "Basic dXNlcjpzZWNyZXQ="), ("--bearer abc", "Bearer abc")]
    {
        let plan = job(&format!("{options} {URL}")).plan;
        let fields = &plan.requests[0].fields;
        let found = fields.iter().find(|(name, _)| name == "authorization");
        assert_eq!(found.map(|(_, value)| value.as_bytes()), Some(value.as_bytes()), "{options}");
    }
}

#[test]
fn few_requests_need_few_connections() {
    for (count, connections) in [("", 10), ("-n 5", 5), ("-n 100", 10), ("-n 5 -c 2", 2)] {
        let plan = job(&format!("{count} {URL}")).plan;
        assert_eq!(plan.connections, connections, "{count}");
        assert!(plan.threads <= connections, "{count}");
    }
}

#[test]
fn a_url_alone_measures_capacity_and_then_latency() {
    let job = job(URL);
    let Schedule::CapacityThenLatency { capacity, shares, arrivals } = job.schedule else {
        panic!("{:?}", job.schedule)
    };
    assert_eq!(capacity.until.time, Some(Duration::from_secs(5)));
    assert_eq!(capacity.warm_up, Duration::from_secs(1));
    assert_eq!((shares, arrivals), (vec![0.5, 0.8], Arrivals::Constant));
    let plan = job.plan;
    assert_eq!((plan.connections, plan.depth), (10, 1));
    assert!(plan.threads >= 1 && plan.threads <= 10);
    assert_eq!(plan.origin.authority, "127.0.0.1:8080");
    assert_eq!(plan.origin.addresses, [ServerAddress::Inet(([127, 0, 0, 1], 8080).into())]);
    assert_eq!(plan.requests[0].method, Method::GET);
    assert!(plan.requests[0].response.is_none(), "no response is guessed");
    assert_eq!(plan.server, ServerProcesses::ByPort);
}

#[test]
fn each_way_to_load_makes_its_phases() {
    let closed = fixed(&format!("-c 100 -m 10 -D 10 {URL}"));
    assert_eq!((closed.len(), closed[0].load), (1, Load::Closed));
    assert_eq!(closed[0].name, "1000 in flight");
    assert_eq!(closed[0].until.time, Some(Duration::from_secs(10)));
    let counted = fixed(&format!("-n 100k {URL}"));
    assert_eq!((counted[0].until.requests, counted[0].until.time), (Some(100_000), None));
    assert_eq!(counted[0].warm_up, Duration::ZERO);
    let open = fixed(&format!("--rate 50k --poisson -D 30s {URL}"));
    assert_eq!(open[0].load, Load::Open { rate: 50_000.0, arrivals: Arrivals::Poisson });
    assert_eq!(fixed(&format!("--ramp 10..100 -D 30 {URL}")).len(), 30);
    assert_eq!(fixed(&format!("--steps 10,20,1k -D 2 {URL}")).len(), 3);
    assert_eq!(fixed(&format!("--new-connections {URL}"))[0].load, Load::Connect);
    let search = job(&format!("--find-knee --slo 5ms --rate 500 --warm-up 0 {URL}")).schedule;
    let Schedule::FindKnee(knee) = search else { panic!("{search:?}") };
    assert_eq!((knee.limit, knee.start), (Duration::from_millis(5), Some(500.0)));
    assert_eq!(knee.warm_up, Duration::ZERO);
}

#[test]
fn contradictions_are_named() {
    for (options, said) in [
        ("--rate 5 --new-connections", "--rate and --new-connections contradict"),
        ("-n 100 --find-knee --slo 5ms", "-n and --find-knee contradict"),
        ("-n 100 --steps 5,6", "-n and --steps contradict"),
        ("--ramp 1..2 --steps 5", "--ramp and --steps contradict"),
        ("--rate 5 --ramp 1..2", "--rate and --ramp contradict"),
        ("--find-knee", "--find-knee needs --slo"),
        ("--slo 5ms", "--fail-if"),
        ("--poisson --new-connections", "--poisson"),
        ("--poisson -n 100", "--poisson"),
        ("--new-connections -m 2", "-m must be 1"),
        ("-n 5 -c 10", "some would have nothing to do"),
        ("-t 20 -c 10", "need at least as many connections"),
        ("--http1 --http2", "cannot be used with"),
        ("--http1 --stream-window 1M", "--stream-window needs HTTP/2"),
        ("--http3 --http2", "cannot be used with"),
        ("--http1 --http3", "cannot be used with"),
        ("--http3", "--http3 needs TLS, but the URL begins with http://"),
        ("--insecure", "begins with http://"),
        ("--cert a", "--key"),
        ("--server-pid 1 --no-server-watch", "cannot be used with"),
        ("--data a --data-size 5", "cannot be used with"),
        ("--data-pattern zero", "--data-size"),
        ("--expect-body a --expect-same", "cannot be used with"),
        ("--expect-body abc --expect-length 4", "has 3 bytes"),
        ("--h2load -n 1", "cannot be used with"),
    ] {
        let line = format!("{options} {URL}");
        // A foreign command line takes all that follows.
        let line = if options.starts_with("--h2load") { format!("{URL} {options}") } else { line };
        let mistake = mistake(&line);
        assert!(mistake.contains(said), "{options}: {mistake}");
    }
}

#[test]
fn http3_goes_to_an_https_url_without_options_of_others() {
    let url = "https://127.0.0.1:8443/ping";
    let job = job(&format!("--http3 -c 3 -m 100 --insecure {url}"));
    assert_eq!((job.plan.version, job.plan.depth), (Version::Http3, 100));
    for (options, said) in [
        ("--stream-window 1M", "--stream-window needs HTTP/2, but --http3 is set"),
        ("--connection-window 1M", "--connection-window needs HTTP/2"),
        ("--max-frame 32K", "--max-frame needs HTTP/2"),
        ("--header-table 8K", "--header-table needs HTTP/2"),
        ("--connect-to unix:/run/s", "--connect-to unix:/run/s: HTTP/3 needs UDP"),
        ("--new-connections -m 2", "-m must be 1"),
    ] {
        let mistake = mistake(&format!("--http3 {options} {url}"));
        assert!(mistake.contains(said), "{options}: {mistake}");
    }
}

#[test]
fn wrong_values_are_told_what_would_be_right() {
    for (options, said) in [
        ("-c 0", "a number from 1"),
        ("-c 1M", "at most 250000"),
        ("-D 0", "more than 0"),
        ("-D ten", "500ms or 1.5s"),
        ("--rate 0", "requests per second"),
        ("--ramp 5", "FROM..TO"),
        ("--ramp 5..x", "100..10k"),
        ("--cores 3-1", "0,2-3"),
        ("--max-frame 1K", "16384 to 16777215"),
        ("--connection-window 1K", "65535"),
        ("--sample 2", "1%"),
        ("--fail-if p99", "p99>5ms"),
        ("-X G@T", "not a method"),
        ("-H nonsense", "no colon"),
        ("--basic user", "use `user:password`"),
        ("--basic a:b --bearer t", "cannot be used with"),
        ("--bearer t -H Authorization:x", "use one of them"),
        ("--data-file absent.bin", "--data-file absent.bin"),
        ("--urls absent.txt", "--urls absent.txt"),
        ("--expect-sha256 abc", "64 hexadecimal digits"),
        ("--connect-to a:b", "--connect-to"),
        ("http://127.0.0.2:8080/", "different servers"),
        ("ftp://a", "begin with http://"),
        ("http://127.0.0.1:8080/{requests}", "%7B"),
        ("http://127.0.0.1:8080/?{}", "belongs to no placeholder"),
        ("http://127.0.0.1:8080/{random:9..1}", "belongs to no placeholder"),
    ] {
        let mistake = mistake(&format!("{options} {URL}"));
        assert!(mistake.contains(said), "{options}: {mistake}");
    }
    assert!(mistake("").contains("<URL>"));
    assert!(mistake("--ca absent.pem https://127.0.0.1/").contains("--ca absent.pem"));
    assert!(mistake("--ca a --insecure https://127.0.0.1/").contains("cannot be used with"));
}

#[test]
fn requests_answers_and_outputs_reach_their_places() {
    let line = "--http2 -c 7 -t 3 --cores 1,0 -X PUT -H Accept:a -H Host:b -d hello --timeout 2s \
                --connect-timeout 300ms --insecure --resume --sni c --expect-status 201 \
                --expect-body hi --sample 100% --stream-window 1M --no-server-watch --seed 9 -n 70 \
                --json - --html a.html --csv b --hdr c -q --fail-if errors>0 \
                --connect-to 127.0.0.1:9 --connect-to unix:/s https://example.invalid/a?b";
    let job = job(line);
    let plan = &job.plan;
    assert_eq!(job.url, "https://example.invalid/a?b");
    assert_eq!((plan.version, plan.threads, plan.seed), (Version::Http2, 3, 9));
    assert_eq!(plan.cores, [1, 0]);
    assert_eq!(plan.origin.authority, "b");
    assert!(plan.origin.is_https);
    let unix = ServerAddress::Unix("/s".into());
    assert_eq!(plan.origin.addresses, [ServerAddress::Inet(([127, 0, 0, 1], 9).into()), unix]);
    let request = &plan.requests[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("PUT", "/a?b"));
    assert_eq!((&request.body[..], request.fields.len()), (&b"hello"[..], 1));
    assert!(matches!(&request.response, Some(ExpectedBody::Exact(body)) if body == "hi"));
    assert_eq!((plan.expect.length, plan.expect.sampled_share), (Some(2), 1.0));
    assert_eq!(plan.expect.statuses.len(), 1);
    assert!(matches!(plan.tls.trust, TlsTrust::Any) && plan.tls.resume);
    assert_eq!(plan.tls.server_name.as_deref(), Some("c"));
    assert_eq!(plan.http2.stream_window_bytes, Some(1 << 20));
    assert_eq!(plan.server, ServerProcesses::Unwatched);
    assert_eq!(plan.timeouts.request_timeout, Duration::from_secs(2));
    assert_eq!(job.thresholds.len(), 1);
    assert!(job.outputs.quiet && job.outputs.json.is_some() && job.outputs.hdr.is_some());
}

#[test]
fn a_body_without_a_method_is_posted() {
    let plan = job(&format!("--data-size 1K --data-pattern ab {URL}")).plan;
    assert_eq!(plan.requests[0].method, Method::POST);
    assert_eq!(plan.requests[0].body.len(), 1024);
}

#[test]
fn a_list_of_paths_takes_its_server_from_the_url_beside_it() {
    let file = std::env::temp_dir().join(format!("bolide-urls-{}", std::process::id()));
    fs::write(&file, "2 /a\nDELETE /b\n").unwrap();
    let plan = job(&format!("--urls {} {URL}", file.display())).plan;
    let alone = mistake(&format!("--urls {}", file.display()));
    fs::remove_file(&file).unwrap();
    let asked: Vec<_> = plan
        .requests
        .iter()
        .map(|one| (one.weight, one.method.as_str(), one.target.as_str()))
        .collect();
    assert_eq!(asked, [(2, "GET", "/a"), (1, "DELETE", "/b")]);
    assert!(alone.contains("needs a URL that names the server"), "{alone}");
}

#[test]
fn the_command_line_of_another_tool_is_taken_whole() {
    let arguments = parse("--h2load -n 10 -c2 --h1 -h --json x http://a").unwrap();
    let words = arguments.h2load.unwrap();
    assert_eq!(words, ["-n", "10", "-c2", "--h1", "-h", "--json", "x", "http://a"]);
    assert_eq!(parse("--wrk").unwrap().wrk.unwrap().len(), 0);
}

#[test]
fn streams_of_events_have_their_fields_and_a_longest_gap() {
    let events = |line: &str| job(&format!("{line} {URL}")).plan;
    let has = |plan: &Plan, name: &str, value: &str| {
        plan.requests[0].fields.iter().any(|(known, own)| *known == name && own == value)
    };
    assert_eq!(events("-n 10").kind, RequestKind::Requests);
    let plan = events("--events --stall 250ms");
    assert_eq!(
        plan.kind,
        RequestKind::Events(EventsPlan { stall_ns: 250_000_000, format: StreamFormat::Events })
    );
    assert!(has(&plan, "accept", "text/event-stream"));
    let plan = events("--openai -d {} -H accept:a/b");
    assert_eq!(
        plan.kind,
        RequestKind::Events(EventsPlan { stall_ns: 1_000_000_000, format: StreamFormat::OpenAi })
    );
    assert!(has(&plan, "accept", "a/b") && has(&plan, "content-type", "application/json"));
    assert_eq!((&plan.requests[0].method, plan.requests[0].fields.len()), (&Method::POST, 2));
    assert!(mistake(&format!("--stall 1s {URL}")).contains("--events"));
    assert!(mistake(&format!("--fail-if gap_p99>1s {URL}")).contains("needs --events"));
    assert!(mistake(&format!("--events --openai {URL}")).contains("cannot be used with"));
}

#[test]
fn each_line_of_a_file_is_a_body() {
    let file = std::env::temp_dir().join(format!("bolide-lines-{}", std::process::id()));
    fs::write(&file, "{\"a\":1}\r\n\n{\"b\":2}\n").unwrap();
    let line = format!("--data-lines {} {URL}", file.display());
    let bodies: Vec<_> = job(&line).plan.requests.into_iter().map(|plan| plan.body).collect();
    assert_eq!(bodies, ["{\"a\":1}", "{\"b\":2}"]);
    fs::write(&file, "\n").unwrap();
    assert!(mistake(&line).contains("has no line"));
    fs::remove_file(&file).unwrap();
    assert!(
        mistake(&line).contains("--data-lines")
            && mistake(&format!("-d x {line}")).contains("cannot be used")
    );
}

#[test]
fn a_websocket_takes_messages_and_their_options() {
    const WS: &str = "ws://127.0.0.1:8080/ws";
    let job = job(&format!("-n 10 -m 4 --data-size 100 --expect-echo --deflate --binary {WS}"));
    assert_eq!(job.url, WS);
    let (echo, binary, deflate) = (true, true, true);
    let of = WebSocketPlan { one_way: false, echo, binary, deflate };
    assert_eq!((job.plan.kind, job.plan.version), (RequestKind::WebSocket(of), Version::Http1));
    let request = &job.plan.requests[0];
    assert_eq!((&request.method, request.body.len()), (&Method::GET, 100));
    assert!(matches!(&request.response, Some(ExpectedBody::Exact(echo)) if *echo == request.body));
    let plain = self::job(&format!("-n 10 {WS}")).plan;
    assert_eq!((plain.requests[0].body.len(), plain.requests[0].response.is_none()), (64, true));
    let secure = self::job("-n 10 --http2 --insecure --one-way wss://127.0.0.1:8443/ws").plan;
    assert_eq!((secure.origin.is_https, secure.version), (true, Version::Http2));
    for (line, expected) in [
        (format!("--one-way {URL}"), "--one-way needs a ws:// or wss:// URL"),
        (format!("--expect-echo {URL}"), "--expect-echo needs a ws://"),
        (format!("--expect-field a:b {WS}"), "--expect-field can't be combined with a ws://"),
        (format!("--events {WS}"), "--events can't be combined with a ws://"),
        (format!("-X PUT {WS}"), "-X can't be combined with a ws://"),
        (format!("{WS} {WS}"), "a second URL can't be combined with a ws://"),
        (format!("--one-way --expect-echo {WS}"), "--one-way has no replies"),
        (
            "--http3 ws://127.0.0.1:1/".to_owned(),
            "--http3 needs TLS, but the URL begins with ws://",
        ),
        ("ftp://h/".to_owned(), "must begin with http://, https://, ws:// or wss://"),
    ] {
        let mistake = mistake(&line);
        assert!(mistake.contains(expected), "{line}: {mistake}");
    }
}

#[test]
fn users_of_a_scenario_share_connections_or_begin_by_the_clock() {
    let path = std::env::temp_dir().join(format!("bolide-users-{}.toml", std::process::id()));
    fs::write(&path, "[[user]]\n[[user.step]]\nrequest = '/a'\n").unwrap();
    let file = path.to_str().unwrap().to_owned();
    let line = |line: &str| format!("--scenario {file} {line} http://127.0.0.1:1");
    for (options, users, connections, name) in [
        ("", 10, 10, "10 users"),
        ("--users 5k -D 1", 5000, 1000, "5000 users"),
        ("-n 4", 4, 4, "4 users"),
        ("--users 50 -c 7 -n 60", 50, 7, "50 users"),
        ("--rate 30 -D 1", 100, 100, "30/s"),
    ] {
        let job = job(&line(options));
        let Schedule::Fixed(phases) = job.schedule else { panic!("{:?}", job.schedule) };
        let plan = job.plan;
        assert_eq!((plan.scenario.unwrap().users, plan.connections), (users, connections));
        assert_eq!(phases[0].name, name);
    }
    for (line, expected) in [
        (line("--users 5 --rate 7"), "--users and --rate contradict each other"),
        (line("--users 5 -c 6"), "some would have no user"),
        (line("-n 5 -c 6"), "some would have no user"),
        (line("-d x"), "cannot be used with"),
        (line("--events"), "cannot be used with"),
        (line("--new-connections"), "cannot be used with"),
        (line("--expect-body x"), "cannot be used with"),
        (line("").replace("1:1", "1:1/path"), "--scenario has its own paths"),
        (line("").replace(&file, "absent.toml"), "--scenario absent.toml: "),
        (format!("--users 5 {URL}"), "--scenario"),
        (format!("--har {file}"), "--har "),
    ] {
        let mistake = mistake(&line);
        assert!(mistake.contains(expected), "{line}: {mistake}");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn calls_of_grpc_take_definitions_and_messages() {
    let path = std::env::temp_dir().join(format!("bolide-grpc-{}.proto", std::process::id()));
    let definition = "syntax = \"proto3\"; package a; message M { int32 n = 1; } service S { rpc One(M) returns (M); rpc All(stream M) returns (M); }";
    fs::write(&path, definition).unwrap();
    let proto = path.to_str().unwrap().to_owned();
    let call = |line: &str| format!("-n 10 --proto {proto} {line} http://127.0.0.1:1");
    let plan = job(&call("--grpc a.S/One -d {\"n\":1} --deadline 1s -H te:trailers")).plan;
    let of = EventsPlan { stall_ns: 1_000_000_000, format: StreamFormat::Grpc };
    assert_eq!((plan.kind, plan.version), (RequestKind::Events(of), Version::Http2));
    let request = &plan.requests[0];
    assert_eq!((&request.method, request.target.as_str()), (&Method::POST, "/a.S/One"));
    assert_eq!(&request.body[..], b"\0\0\0\0\x02\x08\x01");
    let fields: Vec<_> = request.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(fields, ["te", "content-type", "grpc-timeout"]);
    let repeated = job(&call("--grpc /a.S/All --repeat-messages 3")).plan;
    assert_eq!(repeated.requests[0].body.len(), 15);
    for (line, expected) in [
        (call("--grpc a.S"), "must be SERVICE/METHOD"),
        (call("--grpc a.S/Two"), "`a.S` has no method `Two`, only One, All"),
        (call("--grpc a.S/One --repeat-messages 2"), "needs a method whose client streams"),
        (call("--grpc a.S/One --data-size 10"), "messages are JSON"),
        (call("--grpc a.S/One").replace("1:1", "1:1/x"), "the URL names the server only"),
        (call("--grpc a.S/One --http1"), "cannot be used with"),
        (call("--grpc a.S/One").replace(&proto, "missing.proto"), "--proto: "),
        ("--deadline 1s http://127.0.0.1:1".to_owned(), "--grpc"),
    ] {
        let mistake = mistake(&line);
        assert!(mistake.contains(expected), "{line}: {mistake}");
    }
    fs::remove_file(path).unwrap();
}
