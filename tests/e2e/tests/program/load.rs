//! `bolide load` against `bolide serve` and a foreign server: protocols, checks, exit codes, and the
//! command lines of other tools.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use bolide_launcher::{Finished, Server, find, program, run, scratch};

/// Runs `bolide load` to its end.
fn load(arguments: &[&str]) -> Finished {
    let arguments: Vec<&str> = std::iter::once("load").chain(arguments.iter().copied()).collect();
    run(program(), &arguments)
}

/// The same, and its exit code.
#[track_caller]
fn ends_with(code: i32, arguments: &[&str]) -> String {
    let finished = load(arguments);
    assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.both());
    finished.both()
}

/// A number of the first phase of a JSON report, by its path.
fn figure(json: &str, path: &str) -> u64 {
    let report: serde_json::Value = serde_json::from_str(json).expect("a report in JSON");
    report["phases"][0].pointer(path).and_then(serde_json::Value::as_u64).expect("a number")
}

#[test]
fn every_protocol_is_loaded_and_every_response_counted() {
    let server = Server::start_both();
    let (http, https) = (server.http().to_owned(), server.https().to_owned());
    for (url, version, spoken) in [
        (&http, "--http1", "http/1.1"),
        (&http, "--http2", "h2c"),
        (&https, "--http1", "http/1.1"),
        (&https, "--http2", "h2"),
        (&https, "--http3", "h3"),
    ] {
        let url = format!("{url}/echo?size=1000");
        let mut arguments =
            vec![version, "-c", "3", "-m", "4", "-n", "500", "--json", "-", "--quiet"];
        if url.starts_with("https") {
            arguments.push("--insecure");
        }
        arguments.push(&url);
        let finished = load(&arguments).well();
        let json = finished.text();
        assert!(
            json.contains(&format!("\"protocol\": \"{spoken}\""))
                || json.contains(&format!("\"protocol\":\"{spoken}\"")),
            "{url} {version}: {json}"
        );
        assert_eq!(figure(&json, "/counts/succeeded"), 500, "{url} {version}");
        assert_eq!(figure(&json, "/traffic/payload_received_bytes"), 500_000, "{url} {version}");
    }
}

#[test]
fn streams_of_events_are_counted_over_every_version() {
    let server = Server::start_both();
    let (http, https) = (server.http().to_owned(), server.https().to_owned());
    let versions =
        [(&http, "--http1"), (&http, "--http2"), (&https, "--http2"), (&https, "--http3")];
    for (url, version) in versions {
        let url = format!("{url}/events?n=5&gap=10&done=1");
        let mut arguments =
            vec!["--openai", version, "-c", "4", "-m", "1", "-n", "40", "--json", "-", "--quiet"];
        if url.starts_with("https") {
            arguments.push("--insecure");
        }
        arguments.push(&url);
        let json = load(&arguments).well().text();
        assert_eq!(figure(&json, "/counts/succeeded"), 40, "{url} {version}");
        assert_eq!(figure(&json, "/events/events"), 200, "{url} {version}");
        assert_eq!(figure(&json, "/events/gap/count"), 160, "{url} {version}");
        assert!(figure(&json, "/latency/min_ns") >= 40_000_000, "{url} {version}");
    }
    let cut = format!("{http}/events?n=5&gap=0");
    let said = ends_with(1, &["--openai", "-n", "10", &cut]);
    assert!(said.contains("10 failed stream of events"), "{said}");
}

#[test]
fn websocket_messages_come_back_over_both_versions() {
    let server = Server::start_both();
    let (ws, wss) = (server.http(), server.https());
    let urls = [ws.replace("http://", "ws://"), wss.replace("https://", "wss://")];
    for (url, version, spoken) in [
        (&urls[0], "--http1", "http/1.1"),
        (&urls[0], "--http2", "h2c"),
        (&urls[1], "--http1", "http/1.1"),
        (&urls[1], "--http2", "h2"),
    ] {
        let url = format!("{url}/ws");
        let mut arguments = vec![version, "-c", "4", "-m", "8", "-n", "500", "--expect-echo"];
        arguments.extend(["--deflate", "--data-size", "3000", "--json", "-", "--quiet"]);
        if url.starts_with("wss") {
            arguments.push("--insecure");
        }
        arguments.push(&url);
        let json = load(&arguments).well().text();
        assert!(json.contains(&format!("\"protocol\": \"{spoken}\"")), "{url} {version}: {json}");
        assert_eq!(figure(&json, "/counts/succeeded"), 500, "{url} {version}");
        assert_eq!(figure(&json, "/websocket/compressed"), 4, "{url} {version}");
        assert_eq!(figure(&json, "/traffic/payload_received_bytes"), 1_500_000, "{url} {version}");
    }
    let said = ends_with(1, &["-n", "10", &format!("{}/ping", urls[0])]);
    assert!(said.contains("the server refused the WebSocket connection with status 200"), "{said}");
}

#[test]
fn a_run_is_compared_recorded_and_told_to_ci() {
    let server = Server::start_both();
    let ping = format!("{}/ping", server.http());
    let directory = scratch("load_outputs");
    let path = |name: &str| directory.join(name).display().to_string();
    let (json, junit, records) = (path("run.json"), path("run.xml"), path("run.jsonl"));
    let outputs = ["--json", &json, "--junit", &junit, "--records", &records];
    let line = ["--rate", "200", "-D", "3", "--warm-up", "0", "-q", "--fail-if", "p50<1ns", &ping];
    load(&[&outputs[..], &line].concat()).well();
    let count = figure(&std::fs::read_to_string(&json).unwrap(), "/counts/completed");
    let lines = std::fs::read_to_string(&records).unwrap();
    assert_eq!(lines.lines().count() as u64, count);
    let cases = std::fs::read_to_string(&junit).unwrap();
    assert!(cases.contains("tests=\"2\" failures=\"0\""), "{cases}");
    let said = ends_with(0, &["compare", &json, &json]);
    assert!(said.starts_with("No difference is shown.") && said.contains("p99 of 0.1 s"), "{said}");
    let said = ends_with(2, &["compare", &json, &junit]);
    assert!(said.contains("run.xml is not a report of --json"), "{said}");
    ends_with(2, &["compare", &json]);
}

#[test]
fn exit_codes_say_what_happened() {
    let server = Server::start_both();
    let ping = format!("{}/ping", server.http());
    let missing = format!("{}/missing", server.http());
    ends_with(0, &["-n", "10", "--expect-body", "pong", "--sample", "100%", &ping]);
    ends_with(1, &["-n", "10", &missing]);
    ends_with(0, &["-n", "10", "--expect-status", "404", &missing]);
    ends_with(1, &["-n", "10", "--expect-body", "ping", "--sample", "100%", &ping]);
    ends_with(3, &["-n", "10", "--fail-if", "p50>1ns", &ping]);
    let said = ends_with(1, &["-n", "10", &format!("{}/ping", server.https())]);
    assert!(said.contains("--insecure"), "{said}");
    let said = ends_with(2, &["--reqests", "10", &ping]);
    assert!(said.contains("load --help") || said.contains("similar"), "{said}");
    ends_with(2, &["-n", "10", "http://no-such-host.invalid/"]);
}

#[test]
fn http3_is_loaded_open_and_closed_and_reported_as_such() {
    let server = Server::start_both();
    let (ping, echo) = (format!("{}/ping", server.https()), format!("{}/echo", server.https()));
    let common = ["--http3", "--insecure", "-c", "5"];
    let said = ends_with(0, &[&common[..], &["-m", "10", "-n", "1000", &ping]].concat());
    for part in ["h3 (TLSv1.3)", "1,000, all as expected", "[QUIC and TLS]", "smoothed RTT"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("packets lost of ") && !said.contains("[TCP]"), "{said}");
    let open = [&common[..], &["--rate", "200", "-D", "1", "--json", "-", "--quiet", &ping]];
    let json = load(&open.concat()).well().text();
    assert!(figure(&json, "/counts/succeeded") >= 100, "{json}");
    assert_eq!((figure(&json, "/counts/failed"), figure(&json, "/quic/rtt/count")), (0, 5));
    let post = ["--data-size", "100K", "-n", "50", "--json", "-", "--quiet", &echo];
    let json = load(&[&common[..], &post].concat()).well().text();
    assert_eq!(figure(&json, "/traffic/payload_sent_bytes"), 50 * 102_400, "{json}");
    assert_eq!(figure(&json, "/traffic/payload_received_bytes"), 50 * 102_400, "{json}");
}

#[test]
fn a_server_without_http3_is_told_in_one_sentence() {
    let server = Server::start(&["--https", "127.0.0.1:0", "--http", "127.0.0.1:0", "--no-http3"]);
    let ping = format!("{}/ping", server.https());
    let arguments = ["--http3", "--insecure", "--connect-timeout", "500ms", "-n", "1", &ping];
    let said = ends_with(1, &arguments);
    assert!(said.contains("no HTTP/3 connection to 127.0.0.1:"), "{said}");
    assert!(said.contains("the server has no HTTP/3 there"), "{said}");
    let with_http3 = Server::start_both();
    let ping = format!("{}/ping", with_http3.https());
    let said = ends_with(1, &["--http3", "-n", "1", &ping]);
    assert!(said.contains("certificate") && said.contains("--insecure"), "{said}");
    let said = ends_with(2, &["--http3", "-n", "1", &format!("{}/ping", server.http())]);
    assert!(said.contains("--http3 needs TLS, but the URL begins with http://"), "{said}");
}

#[test]
fn a_server_that_reads_one_request_and_only_sends_fails_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".repeat(1000);
                let _ = socket.read(&mut [0; 4096]);
                while socket.write_all(&response).is_ok() {}
            });
        }
    });
    for depth in ["1", "16"] {
        let common = ["-c", "4", "-m", depth, "--quiet", "--json", "-"];
        let finished = load(&[&common[..], &["-n", "1000", &url]].concat());
        assert_eq!(finished.status.code(), Some(1), "{}", finished.both());
        let json = finished.text();
        let failed = figure(&json, "/failures/protocol");
        // Each connection has as many responses as requests were written before the first of them.
        assert!(failed >= 400 && figure(&json, "/counts/succeeded") <= 600, "{json}");
    }
}

#[test]
fn a_session_is_resumed_when_asked_for() {
    let server = Server::start_both();
    let url = format!("{}/ping", server.https());
    let common =
        ["--insecure", "--new-connections", "-c", "1", "-n", "20", "--quiet", "--json", "-"];
    let full = load(&[&common[..], &[&url]].concat()).well().text();
    assert_eq!(figure(&full, "/resumed_count"), 0);
    let resumed = load(&[&common[..], &["--resume", &url]].concat()).well().text();
    assert!(figure(&resumed, "/resumed_count") >= 18, "{resumed}");
}

#[test]
fn a_session_is_resumed_over_http3_and_sends_early_data_when_asked_for() {
    let file = scratch("load_early_data").join("bolide.toml");
    let text =
        "[[listen]]\nhttps = \"127.0.0.1:0\"\nearly-data = true\n[[route]]\nbuiltin = true\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&["--config", &file.display().to_string()]);
    let url = format!("{}/ping", server.https());
    let common = ["--http3", "--insecure", "--new-connections", "-c", "1", "-n", "20", "--quiet"];
    let counts = |more: &[&str]| {
        let text = load(&[&common[..], more, &["--json", "-", &url]].concat()).well().text();
        (figure(&text, "/resumed_count"), figure(&text, "/early_count"))
    };
    assert_eq!(counts(&[]), (0, 0));
    let (resumed, early) = counts(&["--resume"]);
    assert!(resumed >= 18 && early == 0, "{resumed} {early}");
    let (resumed, early) = counts(&["--early-data"]);
    assert!(resumed == 0 && early >= 18, "{resumed} {early}");
}

#[test]
fn http3_has_the_congestion_control_of_the_configuration() {
    let file = scratch("load_congestion").join("bolide.toml");
    let text = "http3-congestion = \"bbr\"\nhttp3-initial-packets = 32\n\
                [[listen]]\nhttps = \"127.0.0.1:0\"\n[[route]]\nbuiltin = true\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&["--config", &file.display().to_string()]);
    let url = format!("{}/1000000", server.https());
    let common = ["--http3", "--insecure", "-c", "2", "-n", "20", "--quiet", "--json", "-"];
    let text = load(&[&common[..], &[&url]].concat()).well().text();
    assert_eq!(figure(&text, "/counts/succeeded"), 20);
    assert_eq!(figure(&text, "/traffic/payload_received_bytes"), 20_000_000);
}

#[test]
fn other_tools_command_lines_are_taken() {
    let server = Server::start_both();
    let (http, https) = (format!("{}/ping", server.http()), format!("{}/ping", server.https()));
    let said = ends_with(0, &["--h2load", "-c10", "-m10", "-n1000", "-w16", "-W16", &https]);
    assert!(
        said.contains("requests: 1000 total, 1000 started, 1000 done, 1000 succeeded"),
        "{said}"
    );
    let said = ends_with(0, &["--h2load", "--alpn-list", "h3", "-c10", "-m10", "-n1000", &https]);
    for line in ["Application protocol: h3", "1000 succeeded, 0 failed", "UDP datagram: "] {
        assert!(said.contains(line), "{said}");
    }
    let said = ends_with(0, &["--h2load", "--h1", "-c2", "-n100", &http]);
    assert!(said.contains("status codes: 100 2xx"), "{said}");
    let said = ends_with(0, &["--wrk", "-t1", "-c4", "-d1s", "--latency", &http]);
    assert!(said.contains("requests in 1.0") && said.contains("Requests/sec:"), "{said}");
}

#[test]
fn a_client_shows_its_certificate_where_one_is_asked_for() {
    let Some(openssl) = find("openssl", "a_client_shows_its_certificate_where_one_is_asked_for")
    else {
        return;
    };
    let directory = scratch("a_client_shows_its_certificate");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key] =
        ["load.crt", "load.key"].map(|name| directory.join(name).display().to_string());
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut server = Command::new(openssl)
        .args(["s_server", "-accept", "127.0.0.1:0", "-www", "-Verify", "1"])
        .args(["-verify_return_error", "-CAfile", &certificate])
        .args(["-cert", &certificate, "-key", &key])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("ACCEPT ").map(|address| address.trim().to_owned()));
    let url = format!("https://{}/", address.expect("the address that it listens on"));
    let common = ["--http1", "--insecure", "-c", "1", "-n", "3", "--new-connections"];
    let shown = load(&[&common[..], &["--cert", &certificate, "--key", &key, &url]].concat());
    let hidden = load(&[&common[..], &[&url]].concat());
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(shown.status.code(), Some(0), "{}", shown.both());
    assert_ne!(hidden.status.code(), Some(0), "{}", hidden.both());
}

#[test]
fn the_wrong_scheme_of_a_port_is_said() {
    let server = Server::start_both();
    let wrong = [
        (
            server.https().replace("https:", "http:"),
            "the server sent TLS: its port may be one of https://",
        ),
        (
            server.http().replace("http:", "https:"),
            "the peer sent no TLS: it may speak cleartext HTTP on this port",
        ),
    ];
    for (url, said) in wrong {
        let url = format!("{url}/ping");
        let finished = load(&["-n", "3", &url]);
        assert_eq!(finished.status.code(), Some(1), "{}", finished.both());
        assert!(finished.both().contains(said), "{}", finished.both());
    }
}
