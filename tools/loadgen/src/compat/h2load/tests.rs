//! h2load's command lines.

use bolide_probe::plan::ServerAddress;

use super::*;
use proptest::prelude::*;

fn foreign(line: &str) -> Result<Foreign, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&words)
}

fn plan(line: &str) -> Plan {
    foreign(line).unwrap().plan
}

const URI: &str = "http://127.0.0.1:8080/ping";

#[test]
fn the_seeds_commands_are_taken_as_they_are() {
    let run = foreign(&format!("-t4 -c100 -m10 -D 10 {URI}")).unwrap();
    assert_eq!((run.plan.threads, run.plan.connections, run.plan.depth), (4, 100, 10));
    assert_eq!(run.phase.until.time, Some(Duration::from_secs(10)));
    assert_eq!(run.plan.version, Version::Http2);
    assert!(matches!(run.plan.tls.trust, TlsTrust::Any));
    let counted = foreign(&format!("-n2000000 -c500 -m100 -w30 -W30 {URI}")).unwrap();
    assert_eq!(counted.phase.until.requests, Some(2_000_000));
    assert_eq!(counted.plan.http2.stream_window_bytes, Some((1 << 30) - 1));
    let tls = plan("-t4 -c100 -m10 -D10 https://127.0.0.1:8443/ping");
    assert_eq!(tls.version, Version::Negotiated);
    assert_eq!(plan(URI).http2.connection_window_bytes, Some((1 << 30) - 1));
}

#[test]
fn a_body_is_posted_and_ends_pipelining_of_http1() {
    let file = std::env::temp_dir().join(format!("bolide-h2load-{}", std::process::id()));
    fs::write(&file, "x".repeat(4096)).unwrap();
    let body = file.display();
    let h2 = foreign(&format!("-d {body} -m5 {URI}"));
    let h1 = foreign(&format!("-d {body} -m5 --h1 {URI}"));
    fs::remove_file(&file).unwrap();
    let (h2, h1) = (h2.unwrap().plan, h1.unwrap().plan);
    assert_eq!((h2.requests[0].method.as_str(), h2.depth), ("POST", 5));
    assert_eq!(h2.requests[0].body.len(), 4096);
    assert_eq!((h1.version, h1.depth), (Version::Http1, 1));
}

#[test]
fn versions_fields_and_places_reach_the_plan() {
    assert_eq!(plan(&format!("-p http/1.1 -m4 {URI}")).version, Version::Http1);
    assert_eq!(plan("--alpn-list=http/1.1 https://127.0.0.1/").version, Version::Http1);
    assert_eq!(plan("--npn-list h2 https://127.0.0.1/").version, Version::Http2);
    for line in ["--alpn-list=h3", "--alpn-list h3,h2", "--h3"] {
        assert_eq!(plan(&format!("{line} https://127.0.0.1/")).version, Version::Http3);
    }
    let line = format!(
        "-H a:b -H :method:HEAD -H :authority:x -f 32K --header-table-size=8K --sni s -w16 -W 10 \
         --connect-to 127.0.0.1:9 -N 3 {URI} http://ignored.invalid/second?x"
    );
    let plan = plan(&line);
    assert_eq!(plan.requests[0].method, Method::HEAD);
    assert_eq!((plan.requests.len(), plan.requests[1].target.as_str()), (2, "/second?x"));
    assert_eq!(plan.origin.authority, "x");
    assert_eq!(plan.origin.addresses, [ServerAddress::Inet(([127, 0, 0, 1], 9).into())]);
    assert_eq!(plan.http2.max_frame_bytes, Some(32_768));
    assert_eq!(plan.http2.header_table_bytes, Some(8_192));
    assert_eq!(plan.http2.stream_window_bytes, Some(65_535));
    assert_eq!(plan.http2.connection_window_bytes, Some(65_535));
    assert_eq!(plan.timeouts.request_timeout, Duration::from_secs(3));
}

#[test]
fn a_base_uri_says_where() {
    let unix = plan(&format!("-B unix:/run/s {URI}"));
    assert_eq!(unix.origin.addresses, [ServerAddress::Unix("/run/s".into())]);
    let base = plan("-B https://127.0.0.1:7/x http://nowhere.invalid/path");
    assert_eq!((base.origin.authority.as_str(), base.origin.is_https), ("127.0.0.1:7", true));
    assert_eq!(base.requests[0].target, "/path");
}

#[test]
fn a_rate_per_client_is_an_open_loop_over_all() {
    let run = foreign(&format!("--rps 100 -c 3 -D 1 --warm-up-time=500ms {URI}")).unwrap();
    assert_eq!(run.phase.load, Load::Open { rate: 300.0, arrivals: Arrivals::Constant });
    assert_eq!(run.phase.warm_up, Duration::from_millis(500));
    let counted = foreign(&format!("--warm-up-time 1 {URI}")).unwrap();
    assert_eq!(counted.phase.warm_up, Duration::ZERO, "a warm-up needs -D");
}

#[test]
fn mistakes_are_named_as_h2load_names_them() {
    for (options, said) in [
        ("-n 1 -c 2", "-n, -c: the number of requests must be greater than or equal"),
        ("-t3 -c 2 -n 5", "-c, -t: the number of clients must be"),
        ("-c0", "-c: the number of clients must be strictly greater"),
        ("-n0", "if timing-based test is not being run"),
        ("-m0", "-m: the number of max concurrent streams"),
        ("-w 40", "-w: specify the integer in the range [0, 30]"),
        ("-d absent", "-d: Could not open file absent"),
        ("-D 10x", "value error 10x"),
        ("-p h3", "-p: unsupported protocol"),
        ("--h3", "HTTP/3 needs an https URI, not http://127.0.0.1:8080/ping"),
        ("--alpn-list x,h3", "has neither h2 nor http/1.1, and does not begin with h3"),
        ("--no-udp-gso", "--no-udp-gso of h2load is not supported"),
        ("-H nonsense", "-H: invalid header"),
        ("-H :path:/x", "-H: invalid header: :path:/x"),
        ("--bogus", "no option --bogus"),
        ("-c 1000000 -n 1000000", "-c: must be at most 250000"),
        ("-m 1000001", "-m: must be at most 1000000"),
        ("--rps 999999999999999", "value error"),
        ("-r 5", "--rate of h2load is not supported"),
        ("--log-file a", "--log-file of h2load is not supported"),
        ("nonsense", "invalid URI: nonsense"),
        ("-i absent", "cannot read input file absent"),
    ] {
        let mistake = foreign(&format!("{options} {URI}")).unwrap_err();
        assert!(mistake.contains(said), "{options}: {mistake}");
    }
    assert_eq!(foreign("").unwrap_err(), "no URI or input file given");
}

proptest! {
    #[test]
    fn no_value_breaks_it(option in "[nctmfwWHpDTNB]", value in ".{0,8}") {
        let _ = parse(&[format!("-{option}"), value, URI.to_owned()]);
    }
}
