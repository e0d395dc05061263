//! SIGHUP: new routes, upstreams and certificates, while connections and requests go on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bolide_launcher::{Server, find, finish, scratch, spawn};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(30);

/// A file that answers with a number, and the server that was started with it.
struct Subject {
    path: PathBuf,
    server: Server,
}

impl Subject {
    fn new(test: &str) -> Self {
        let path = scratch(test).join("bolide.toml");
        write(&path, &text(0));
        let server = Server::start(&["--config", &path.display().to_string()]);
        Self { path, server }
    }

    /// Gives the server another file.
    fn reload(&self, text: &str) {
        write(&self.path, text);
        self.server.signal(Signal::HUP);
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(Server::authority(self.server.http())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, unread: Vec::new() }
    }
}

fn write(path: &PathBuf, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn text(number: u32) -> String {
    let listen = "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[listen]]\nhttps = \"127.0.0.1:0\"\n";
    format!(
        "{listen}[[route]]\npath = \"/number\"\nrespond = \"{number:4}\"\n[[route]]\nbuiltin = true\n"
    )
}

struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    /// The body of one response on a connection that stays open.
    fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.stream.write_all(request.as_bytes()).expect("the connection is open");
        loop {
            let text = String::from_utf8_lossy(&self.unread).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.expect("a length").parse().unwrap();
                if body.len() >= length {
                    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                    self.unread.drain(..head.len() + 4 + length);
                    return body[..length].to_owned();
                }
            }
            let mut bytes = [0; 16_384];
            let count = self.stream.read(&mut bytes).expect("a response in time");
            assert!(count > 0, "the connection was closed");
            self.unread.extend_from_slice(&bytes[..count]);
        }
    }
}

#[test]
fn no_request_and_no_connection_is_lost_over_twenty_reloads() {
    const RELOADS: u32 = 20;
    const BETWEEN: u32 = 5000;
    let subject = Subject::new("no_request_and_no_connection_is_lost");
    let (ends, responses) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = subject.connect();
                let mut last = 0;
                while !ends.load(Ordering::Relaxed) {
                    let number: u32 = client.get("/number").trim().parse().unwrap();
                    assert!(number >= last, "old routes came back");
                    last = number;
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 1..=RELOADS {
            let before = responses.load(Ordering::Relaxed);
            subject.reload(&text(number));
            subject.server.said("bolide: reloaded");
            while responses.load(Ordering::Relaxed) < before + BETWEEN {
                std::thread::yield_now();
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(responses.load(Ordering::Relaxed) >= RELOADS * BETWEEN);
    assert_eq!(subject.connect().get("/number").trim(), RELOADS.to_string());
}

#[test]
fn h2_connections_stay_too() {
    let Some(h2load) = find("h2load", "h2_connections_stay_too") else { return };
    let subject = Subject::new("h2_connections_stay_too");
    let mut number = 0;
    for url in subject.server.both() {
        let url = format!("{url}/number");
        let load = spawn(&h2load, ["-n", "200000", "-c", "4", "-m", "20", "-t", "1", &url]);
        for _ in 0..10 {
            number += 1;
            subject.reload(&text(number));
            subject.server.said("bolide: reloaded");
        }
        let said = finish(load).well().text();
        assert!(said.contains("200000 succeeded, 0 failed, 0 errored"), "{said}");
        assert!(said.contains("200000 2xx, 0 3xx, 0 4xx, 0 5xx"), "{said}");
    }
}

#[test]
fn a_download_goes_on_with_the_routes_that_began_it() {
    const SIZE: usize = 64 * 1024 * 1024;
    let subject = Subject::new("a_download_goes_on");
    let mut slow = subject.connect();
    let request = format!("GET /echo?size={SIZE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    slow.stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 1000];
    slow.stream.read_exact(&mut first).unwrap();
    subject.reload(&text(1).replace("builtin = true", "respond = \"other\""));
    subject.server.said("bolide: reloaded");
    assert_eq!(subject.connect().get("/echo?size=3"), "other");
    let mut rest = Vec::new();
    slow.stream.read_to_end(&mut rest).unwrap();
    let head = first.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    assert_eq!(first.len() - head + rest.len(), SIZE);
}

#[test]
fn a_bad_file_leaves_the_old_one_in_force() {
    let subject = Subject::new("a_bad_file_leaves_the_old_one_in_force");
    let mut client = subject.connect();
    subject.reload(&text(1).replace("respond", "respnod"));
    let said = subject.server.said("not reloaded");
    assert!(said.contains("the old configuration stays in force: "), "{said}");
    assert!(said.contains("bolide.toml:7:1: `respnod` is not known in [[route]]"), "{said}");
    assert_eq!(client.get("/number").trim(), "0");
    std::fs::remove_file(&subject.path).unwrap();
    subject.server.signal(Signal::HUP);
    assert!(subject.server.said("not reloaded").contains("can't be read"));
    assert_eq!(client.get("/number").trim(), "0");
    subject.reload(&text(2));
    subject.server.said("bolide: reloaded");
    assert_eq!(client.get("/number").trim(), "2");
}

#[test]
fn what_needs_a_restart_is_said() {
    let subject = Subject::new("what_needs_a_restart_is_said");
    let more = "workers = 3\ndrain = \"7s\"\n[log]\nformat = \"json\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
                [access-log]\nfile = \"log\"\n";
    let other = text(1).replacen("127.0.0.1:0", "127.0.0.1:1", 1);
    subject.reload(&format!(
        "{more}{other}\n[limits]\nbody-bytes-max = 5\nlinger = \"1s\"\n[profile]\none-in = 9\n"
    ));
    let said = subject.server.said("bolide: reloaded");
    assert!(
        said.ends_with(
            "changes to [[listen]], workers, [limits] linger, [access-log], [log] format, [admin] need a \
             restart"
        ),
        "{said}"
    );
    assert_eq!(subject.connect().get("/number").trim(), "1", "the routes are new all the same");
}

#[test]
fn an_upstream_is_exchanged() {
    let (first, second) = (Subject::new("an_upstream_first"), Subject::new("an_upstream_second"));
    second.reload(&text(2));
    second.server.said("bolide: reloaded");
    let subject = Subject::new("an_upstream_is_exchanged");
    let proxied = |upstream: &Subject| {
        let url = upstream.server.http();
        format!(
            "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nproxy = \"a\"\n\
             [[upstream]]\nname = \"a\"\nservers = [\"{url}\"]\n"
        )
    };
    let mut client = subject.connect();
    for (upstream, number) in [(&first, "0"), (&second, "2"), (&first, "0")] {
        subject.reload(&proxied(upstream));
        subject.server.said("bolide: reloaded");
        assert_eq!(client.get("/number").trim(), number);
    }
}

/// Lines may wait for an hour here: only the reload and the end can have written them.
#[test]
fn limits_levels_and_the_log_file_are_taken_over() {
    let subject = Subject::new("limits_levels_and_the_log_file");
    let directory = subject.path.parent().unwrap();
    let with = |log: &str, level: &str, limits: &str| {
        format!(
            "{}[log]\nlevel = \"{level}\"\n[access-log]\nfile = \"{log}\"\nformat = \"common\"\ndelay = \"1h\"\n\
             [limits]\n{limits}",
            text(0)
        )
    };
    // The log is there from the start.
    let subject = {
        write(&subject.path, &with("one", "warn", ""));
        let server = Server::start(&["--config", &subject.path.display().to_string()]);
        Subject { path: subject.path.clone(), server }
    };
    let post = |path: &str| {
        let mut client = subject.connect();
        let body = "x".repeat(100);
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{body}"
        );
        client.stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        client.stream.read_to_string(&mut response).unwrap();
        response[9..12].to_owned()
    };
    assert_eq!(post("/number?one"), "200");
    subject.reload(&with("other", "info", "body-bytes-max = 10\n"));
    assert!(subject.server.said("bolide: reloaded").ends_with("reloaded"));
    assert_eq!(post("/number?other"), "413");
    assert!(subject.server.said("body-bytes-max").contains("WARN bolide::limits"));
    subject.reload(&with("none/log", "info", ""));
    let said = subject.server.said("not reloaded");
    assert!(said.contains("none/log: can't be opened for appending"), "{said}");
    assert_eq!(post("/number?still"), "413", "the old configuration stays in force");
    let (one, other) = (directory.join("one"), directory.join("other"));
    subject.server.terminate();
    assert!(subject.server.wait().success());
    let (one, other) =
        (std::fs::read_to_string(one).unwrap(), std::fs::read_to_string(other).unwrap());
    assert!(one.contains("?one") && !one.contains("?other"), "{one}");
    assert!(
        other.contains("?other") && other.contains("?still") && !other.contains("?one"),
        "{other}"
    );
}

#[test]
fn a_server_that_is_known_to_be_down_gets_nothing_after_a_reload() {
    let test = "a_server_that_is_known_to_be_down";
    let (well, ill) = (Subject::new(&format!("{test}-well")), Subject::new(&format!("{test}-ill")));
    let listen = "[[listen]]\nhttp = \"127.0.0.1:0\"\n";
    ill.reload(&format!("{listen}[[route]]\nrespond = \"ill\"\nstatus = 503\n"));
    ill.server.said("bolide: reloaded");
    let subject = Subject::new(test);
    let proxied = format!(
        "{listen}[[route]]\nproxy = \"a\"\n[[upstream]]\nname = \"a\"\nservers = [\"{}\", \"{}\"]\n\
         health = \"/number\"\nhealth-interval = \"200ms\"\nhealth-fall-count = 3\n",
        ill.server.http(),
        well.server.http()
    );
    subject.reload(&proxied);
    subject.server.said("it is down, for its health checks fail");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // A response that is no 200 fails it.
                let mut client = subject.connect();
                while !ends.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/number").trim(), "0");
                }
            });
        }
        for _ in 0..10 {
            subject.reload(&proxied);
            subject.server.said("bolide: reloaded");
            for _ in 0..4 {
                assert_eq!(subject.connect().get("/number").trim(), "0");
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
}
