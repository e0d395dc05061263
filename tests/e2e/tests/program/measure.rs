//! `bolide measure` against `bolide serve`: every protocol both ways, its JSON, its mistakes, and Ctrl-C.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use bolide_launcher::{Finished, Server, program, run, scratch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const BYTES: u64 = 3_000_000;

fn measure(arguments: &[&str]) -> Finished {
    run(program(), std::iter::once(&"measure").chain(arguments))
}

/// The report of a measurement that must succeed.
#[track_caller]
fn report(arguments: &[&str]) -> Value {
    let finished = measure(&[arguments, &["--quiet", "--json", "-"]].concat()).well();
    assert!(finished.stderr.is_empty(), "{arguments:?}: {}", finished.both());
    serde_json::from_slice(&finished.stdout).expect("a report in JSON")
}

#[test]
fn every_protocol_carries_bytes_and_time_both_ways() {
    let server = Server::start_both();
    let (http, https) = (server.http(), server.https());
    let (size, bytes) = (format!("/{BYTES}"), BYTES.to_string());
    for (url, options, protocol) in [
        (http, &["--h1"][..], "h1"),
        (http, &["--h2c"], "h2c"),
        (https, &["--h1", "--insecure"], "h1s"),
        (https, &["--h2", "--insecure"], "h2"),
        (https, &["--insecure"], "h2"),
        (https, &["--h3", "--insecure"], "h3"),
    ] {
        for (way, direction) in [("GET", "download"), ("PUT", "upload"), ("POST", "upload")] {
            let root = format!("{url}/");
            let timed = [&[root.as_str(), "-X", way, "-t", "200ms"], options].concat();
            let sized = [&[root.as_str(), "-X", way, "-n", &bytes], options].concat();
            let named = format!("{url}{size}");
            let named = [&[named.as_str(), "-X", way], options].concat();
            for arguments in [sized, named] {
                let found = report(&arguments);
                assert_eq!(
                    (&found["protocol"], &found["direction"]),
                    (&protocol.into(), &direction.into())
                );
                assert_eq!(found["bytes"], BYTES, "{arguments:?}");
            }
            let found = report(&timed);
            assert!(found["seconds"].as_f64() >= Some(0.2), "{timed:?}: {found}");
            for key in ["bytes", "wire_bytes", "goodput_bits_per_second"] {
                assert!(found[key].as_f64() > Some(100_000.0), "{timed:?} {key}: {found}");
            }
            // The side that sends knows what it sent again, and by which congestion control.
            let is_upload = direction == "upload" && cfg!(target_os = "linux");
            assert_eq!(found["retransmits"].is_u64(), is_upload, "{timed:?}");
            let is_tcp = protocol != "h3";
            assert_eq!(found["congestion_control"].is_string(), is_upload && is_tcp, "{timed:?}");
            // The side that receives knows what came out of order.
            let is_download = direction == "download" && cfg!(target_os = "linux");
            assert_eq!(found["out_of_order"].is_u64(), is_download && is_tcp, "{timed:?}");
            assert_eq!(found["server"].is_object(), cfg!(target_os = "linux"), "found by its port");
            assert_eq!((&found["interrupted"], &found["error"]), (&false.into(), &Value::Null));
        }
    }
}

#[test]
fn an_upload_that_the_server_refuses_ends_with_its_status() {
    let directory = scratch("an_upload_that_the_server_refuses");
    let root = directory.to_str().expect("a path in UTF-8");
    let server =
        Server::start(&["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--root", root]);
    let (http, https) = (format!("{}/", server.http()), format!("{}/", server.https()));
    for (url, options) in [
        (&http, &["--h1"][..]),
        (&http, &["--h2c"]),
        (&https, &["--h2", "--insecure"]),
        (&https, &["--h3", "--insecure"]),
    ] {
        for amount in [["-t", "1h"], ["-n", "64M"]] {
            let arguments = [&[url.as_str(), "-X", "PUT"], options, &amount].concat();
            let finished = measure(&arguments);
            assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.both());
            let words = "the response was 405 Method Not Allowed instead of 200 or 204";
            assert!(finished.both().contains(words), "{arguments:?}: {}", finished.both());
        }
    }
}

#[test]
fn ndt7_is_measured_with_what_the_server_says() {
    let server = Server::start_both();
    for (url, scheme) in [(server.http(), "ws"), (server.https(), "wss")] {
        for direction in ["download", "upload"] {
            let authority = Server::authority(url);
            let url = format!("{scheme}://{authority}/ndt/v7/{direction}");
            let mut arguments = vec![url.as_str(), "-t", "1s"];
            arguments.extend((scheme == "wss").then_some("--insecure"));
            let found = report(&arguments);
            assert_eq!(
                (&found["protocol"], &found["direction"]),
                (&scheme.into(), &direction.into())
            );
            let ours = found["goodput_bits_per_second"].as_f64().expect("a number");
            let told = found["told"]["goodput_bits_per_second"].as_f64().expect("a number");
            assert!(ours > 1e6 && told > 1e6, "{url}: {ours}, {told}");
        }
    }
}

#[test]
fn streams_and_connections_add_up() {
    let server = Server::start_both();
    let url = format!("{}/100000", server.http());
    let found = report(&[&url, "--h2c", "--streams", "3", "--connections", "2"]);
    assert_eq!(found["bytes"], 600_000);
    let (address, serving) = raw_server(2);
    let found =
        report(&[&format!("raw://{address}"), "-X", "PUT", "-n", "1M", "--connections", "2"]);
    assert_eq!((&found["bytes"], &found["connections"]), (&(2 << 20).into(), &2.into()));
    serving.join().unwrap();
}

/// Takes so many uploads of raw TCP and says how much came.
fn raw_server(connections: usize) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let take = |socket: TcpStream| {
        let mut socket = BufReader::new(socket);
        socket.read_line(&mut String::new()).unwrap();
        let count = std::io::copy(&mut socket, &mut std::io::sink()).unwrap();
        writeln!(socket.get_mut(), "{count}").unwrap();
    };
    let serving = std::thread::spawn(move || {
        let sockets = listener.incoming().take(connections).map(Result::unwrap);
        let each: Vec<_> = sockets.map(|socket| std::thread::spawn(move || take(socket))).collect();
        each.into_iter().for_each(|one| one.join().unwrap());
    });
    (address, serving)
}

#[test]
fn mistakes_and_failures_have_a_sentence_and_a_code() {
    let server = Server::start_both();
    let (http, https) = (server.http(), server.https());
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (arguments, code, said) in [
        (vec![format!("{http}/a/b")], 1, "404"),
        (vec![format!("{https}/5")], 1, "--insecure"),
        (vec![format!("http://{refusing}/5")], 1, "connection refused"),
        (vec![format!("raw://{refusing}"), "--connections=2".into()], 1, "connection refused"),
        (vec![format!("{http}/5"), "-n".into(), "6".into()], 2, "give one of them"),
        (vec![format!("{http}/5"), "--h2".into()], 2, "use --h2c without TLS"),
        (vec!["ftp://a/".into()], 2, "ftp"),
        (vec!["http://no-such-host.invalid/5".into()], 2, "no-such-host.invalid"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let finished = measure(&arguments);
        let text = finished.both();
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn ctrl_c_ends_with_what_was_done_until_then() {
    let server = Server::start_both();
    for (url, options) in [
        (format!("{}/", server.http()), &["--h1"][..]),
        (format!("{}/", server.http()), &["--h2c", "-X", "PUT"]),
        (format!("{}/", server.https()), &["--insecure", "--latency"]),
    ] {
        let mut child = Command::new(program())
            .args(["measure", &url, "-t", "1h", "--json", "-"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("average") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "{options:?}: it ended by itself");
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        let mut json = String::new();
        child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{options:?}: {rest}");
        assert!(rest.contains("  stopped  early"), "{options:?}: {rest}");
        let found: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&found["interrupted"], &found["error"]), (&true.into(), &Value::Null));
        assert!(found["bytes"].as_u64() > Some(0) && found["seconds"].as_f64() < Some(600.0));
    }
}
