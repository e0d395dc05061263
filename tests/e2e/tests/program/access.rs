//! Identity of the client, and its permissions: as an operator configures it, and as a user sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use bolide_launcher::{Server, find, program, run, scratch};

/// Starts a server with this configuration, in a directory of its own.
fn start(test: &str, text: &str) -> (Server, PathBuf) {
    let directory = scratch(test);
    let path = directory.join("bolide.toml");
    std::fs::write(&path, text).expect("the directory is there");
    (Server::start(&["--config", &path.display().to_string()]), directory)
}

/// Sends these bytes over a connection of their own; all that comes back.
fn send(server: &Server, bytes: &str) -> String {
    let mut stream = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(bytes.as_bytes()).expect("it reads");
    let mut response = String::new();
    // A connection that is reset has said what it had to say.
    let _ = stream.read_to_string(&mut response);
    response
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n")
}

/// An upstream that responds with the head of each request. Returns its URL.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
            let mut head = String::new();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    break;
                }
                head.push_str(&line);
                head.push('\n');
            }
            let length = head.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{head}"
            );
            // The proxy may have gone.
            let _ = stream.write_all(response.as_bytes());
        }
    });
    url
}

/// Waits until the access log has so many lines.
pub(super) fn logged(path: &Path, count: usize) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count {
            return text;
        }
        assert!(Instant::now() < deadline, "the log has {text}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn the_client_of_a_trusted_balancer_is_told_to_upstreams_and_logged() {
    const TEST: &str = "the_client_of_a_trusted_balancer_is_told_to_upstreams_and_logged";
    let upstream = upstream();
    let text = format!(
        "workers = 1\ntrusted = [\"127.0.0.0/8\"]\nrequest-id = \"response\"\n\
         [access-log]\nfile = \"log\"\nformat = \"common\"\n\
         [[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nproxy = \"{upstream}\"\n"
    );
    let (server, directory) = start(TEST, &text);
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let forwarded = "X-Forwarded-For: 6.6.6.6, 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\
                     X-Forwarded-Host: shop.example\r\nX-Request-Id: abc-1\r\n";
    let response = send(&server, &get("/", &format!("{forwarded}{trace}")));
    for line in [
        "\nx-forwarded-for: 203.0.113.9\n",
        "\nx-forwarded-proto: https\n",
        "\nx-forwarded-host: shop.example\n",
        "\nforwarded: for=203.0.113.9;host=\"shop.example\";proto=https\n",
        "\nx-request-id: abc-1\n",
        "\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
        "\r\nx-request-id: abc-1\r\n",
    ] {
        assert!(response.to_lowercase().contains(line), "{line:?} in {response}");
    }
    assert!(!response.contains("6.6.6.6"), "{response}");
    let malformed = send(&server, &get("/", "traceparent: 00-zz\r\ntracestate: a=b\r\n"));
    assert!(!malformed.contains("tracestate") && !malformed.contains("traceparent"), "{malformed}");
    let log = logged(&directory.join("log"), 2);
    assert!(log.starts_with("203.0.113.9 - - ["), "{log}");
    assert!(log.lines().nth(1).expect("two lines").starts_with("127.0.0.1 - - ["), "{log}");
}

#[test]
fn a_forged_x_forwarded_for_from_an_untrusted_peer_is_not_passed_on() {
    const TEST: &str = "a_forged_x_forwarded_for_from_an_untrusted_peer_is_not_passed_on";
    let upstream = upstream();
    let text = format!(
        "trusted = [\"10.0.0.0/8\"]\n[[listen]]\nhttp = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"u\"\nservers = [\"{upstream}\"]\norigin = \"append\"\n\
         [[route]]\nproxy = \"u\"\n"
    );
    let (server, _) = start(TEST, &text);
    let forged =
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-Proto: https\r\n";
    let response = send(&server, &get("/", forged)).to_lowercase();
    assert!(response.contains("\nx-forwarded-for: 127.0.0.1\n"), "{response}");
    assert!(!response.contains("6.6.6.6") && !response.contains("https"), "{response}");
}

#[test]
fn a_proxy_header_works_before_http1_http2_and_tls() {
    const TEST: &str = "a_proxy_header_works_before_http1_http2_and_tls";
    let Some(curl) = find("curl", TEST) else { return };
    let text = "workers = 1\ntrusted = [\"127.0.0.0/8\"]\n\
                [access-log]\nfile = \"log\"\nformat = \"json\"\n\
                [[listen]]\nhttp = \"127.0.0.1:0\"\nproxy-protocol = \"required\"\n\
                [[listen]]\nhttps = \"127.0.0.1:0\"\nproxy-protocol = \"optional\"\n\
                [[route]]\nrespond = \"fine\"\n";
    let (server, directory) = start(TEST, text);
    let version_1 = format!("PROXY TCP4 203.0.113.9 198.51.100.1 1234 80\r\n{}", get("/", ""));
    assert!(send(&server, &version_1).ends_with("fine"));
    assert_eq!(send(&server, &get("/", "")), "", "the header is required");
    let ask = |flags: &[&str], url: &str| {
        let flags = [&["-sSk", "--max-time", "20"], flags, &[url]].concat();
        run(&curl, flags).well().text()
    };
    let h2c = ["--haproxy-protocol", "--http2-prior-knowledge"];
    assert_eq!(ask(&h2c, server.http()), "fine");
    assert_eq!(ask(&["--haproxy-protocol", "--http2"], server.https()), "fine");
    assert_eq!(ask(&["--haproxy-protocol", "--http1.1"], server.https()), "fine");
    assert_eq!(ask(&["--http2"], server.https()), "fine", "the header is optional");
    let log = logged(&directory.join("log"), 5);
    assert!(log.contains("\"peer\":\"203.0.113.9:1234\""), "{log}");
}

#[test]
fn a_route_of_a_listener_gets_what_came_to_it_whatever_a_proxy_header_names() {
    const TEST: &str = "a_route_of_a_listener_gets_what_came_to_it";
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let [behind, open] = listeners.map(|one| one.local_addr().expect("its address"));
    let text = format!(
        "trusted = [\"127.0.0.0/8\"]\n[[listen]]\nhttp = \"{behind}\"\nproxy-protocol = \"required\"\n\
         [[listen]]\nhttp = \"{open}\"\n[[route]]\nlisten = \"{behind}\"\nrespond = \"behind\"\n\
         [[route]]\nlisten = \"{open}\"\nrespond = \"open\"\n"
    );
    let (server, _) = start(TEST, &text);
    let (own, other) = (behind.port(), open.port());
    for header in [
        format!("PROXY TCP4 192.0.2.1 127.0.0.1 4000 {own}\r\n"),
        format!("PROXY TCP4 192.0.2.1 127.0.0.1 4000 {other}\r\n"),
        "PROXY TCP4 192.0.2.1 198.51.100.1 4000 443\r\n".to_owned(),
        "PROXY TCP6 2001:db8::1 2001:db8::2 4000 443\r\n".to_owned(),
        "PROXY UNKNOWN\r\n".to_owned(),
    ] {
        let response = send(&server, &format!("{header}{}", get("/", "")));
        assert!(response.ends_with("behind"), "{header}: {response}");
    }
    let mut stream = TcpStream::connect(open).expect("it listens");
    stream.write_all(get("/", "").as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.ends_with("open"), "{response}");
}

#[test]
fn what_cannot_be_trusted_is_one_sentence_with_its_place() {
    const TEST: &str = "what_cannot_be_trusted_is_one_sentence_with_its_place";
    for (text, said) in [
        ("trusted = [\"10.0.0.1/8\"]\n", ":1:12: `trusted` is `10.0.0.1/8`: the address has bits"),
        ("request-id = \"yes\"\n", ":1:14: `request-id` is `yes`: give one of off, request"),
        (
            "[[listen]]\nhttp = \"127.0.0.1:0\"\nproxy-protocol = \"required\"\n",
            ":1:1: `proxy-protocol` needs to know whose headers to trust",
        ),
        ("[[route]]\nrespond = \"\"\nallow = []\n", ":3:9: `allow` is empty"),
        ("[[route]]\nbuiltin = true\ndeny = [\"::/0\"]\n", ":3:8: `deny` is not for built-in"),
        (
            "[[route]]\nrespond = \"\"\nrate-limit = { requests = \"10\" }\n",
            ":3:27: `rate-limit` can't be: give a rate such as",
        ),
        (
            "[[route]]\nrespond = \"\"\nrate-limit = { requests = \"1/s\", by = \"x\" }\n",
            "`by` is `x`: give address, or header:",
        ),
        (
            "[[route]]\nrespond = \"\"\nconcurrent-requests = { count = 0 }\n",
            ":3:33: `count` must be at least 1",
        ),
        (
            "[[route]]\nrespond = \"\"\nconcurrent-requests = { by = \"address\" }\n",
            ":3:23: `concurrent-requests` needs a number",
        ),
        (
            "[[route]]\nrespond = \"\"\nclient-certificate = \"alice\"\n",
            ":3:22: `client-certificate` is `alice`: give \"required\"",
        ),
    ] {
        let path = scratch(TEST).join("bolide.toml");
        std::fs::write(&path, text).expect("the directory is there");
        let mut command = Command::new(program());
        let output = command.args(["serve", "--check", "--config"]).arg(&path).output();
        let output = output.expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(said), "{told}");
    }
}

/// Listeners of both kinds, and routes with lists and limits.
const GUARDED: &str = r#"
trusted = ["127.0.0.0/8"]

[[listen]]
http = "127.0.0.1:0"

[[listen]]
https = "127.0.0.1:0"

[[route]]
path = "/admin/"
respond = "secret"
allow = ["203.0.113.0/24", "2001:db8::/32"]
deny = ["203.0.113.66"]

[[route]]
path = "/limited"
respond = "counted"
rate-limit = { requests = "1/h", burst = 2 }

[[route]]
path = "/keyed"
respond = "counted"
rate-limit = { requests = "1/h", by = "header:x-api-key" }

[[route]]
path = "/by-48-bits"
respond = "counted"
rate-limit = { requests = "1/h", ipv6-prefix = 48 }
"#;

#[test]
fn an_address_that_is_not_allowed_gets_403() {
    let (server, _) = start("an_address_that_is_not_allowed_gets_403", GUARDED);
    for (client, status) in [
        ("203.0.113.7", 200),
        ("::ffff:203.0.113.7", 200),
        ("2001:db8::7", 200),
        ("203.0.113.66", 403),
        ("::ffff:203.0.113.66", 403),
        ("198.51.100.1", 403),
        ("198.51.100.1, 127.0.0.1", 403),
        ("203.0.113.7, 198.51.100.1", 403),
        ("not-an-address", 403),
    ] {
        let response = send(&server, &get("/admin/x", &format!("X-Forwarded-For: {client}\r\n")));
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{client}: {response}");
        assert_eq!(response.contains("secret"), status == 200, "{client}: {response}");
    }
    assert!(send(&server, &get("/admin/x", "")).starts_with("HTTP/1.1 403"));
}

#[test]
fn a_client_that_sends_too_many_requests_gets_429_and_others_do_not() {
    const TEST: &str = "a_client_that_sends_too_many_requests_gets_429_and_others_do_not";
    let (server, _) = start(TEST, GUARDED);
    let ask = |path: &str, fields: &str| send(&server, &get(path, fields));
    let one = "X-Forwarded-For: 203.0.113.7\r\n";
    for left in [1, 0] {
        let passed = ask("/limited", one).to_lowercase();
        assert!(passed.starts_with("http/1.1 200") && passed.ends_with("counted"), "{passed}");
        let policy = "\r\nratelimit-policy: \"client\";q=1;w=3600\r\n";
        let state = format!("\r\nratelimit: \"client\";r={left};t=3600\r\n");
        assert!(passed.contains(policy) && passed.contains(&state), "{passed}");
    }
    let refused = ask("/limited", one).to_lowercase();
    assert!(refused.starts_with("http/1.1 429"), "{refused}");
    assert!(refused.contains("\r\nratelimit-policy: \"client\";q=1;w=3600\r\n"), "{refused}");
    let field = |name: &str| {
        let line = refused.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {refused}")).to_owned()
    };
    let wait: u64 = field("retry-after: ").parse().expect("seconds");
    assert!((3500..=3600).contains(&wait), "{wait}");
    assert_eq!(field("ratelimit: "), format!("\"client\";r=0;t={wait}"));
    assert!(ask("/limited", "X-Forwarded-For: 203.0.113.8\r\n").ends_with("counted"));
    let keyed = |key: &str| ask("/keyed", &format!("X-Api-Key: {key}\r\n"));
    assert!(keyed("a").ends_with("counted") && keyed("b").ends_with("counted"));
    assert!(keyed("a").starts_with("HTTP/1.1 429"));
    let prefix = |client: &str| ask("/by-48-bits", &format!("X-Forwarded-For: {client}\r\n"));
    assert!(prefix("2001:db8:1:1::1").ends_with("counted"));
    assert!(prefix("2001:db8:1:2::1").starts_with("HTTP/1.1 429"));
    assert!(prefix("2001:db8:2:1::1").ends_with("counted"));
}

#[test]
fn a_client_with_too_many_open_requests_gets_429_until_one_ends() {
    const TEST: &str = "a_client_with_too_many_open_requests_gets_429_until_one_ends";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let text = format!(
        "trusted = [\"127.0.0.0/8\"]\n[[listen]]\nhttp = \"127.0.0.1:0\"\n\
         [[route]]\nproxy = \"{url}\"\nconcurrent-requests = {{ count = 1 }}\n"
    );
    let (server, _) = start(TEST, &text);
    let request = |client: &str| get("/", &format!("X-Forwarded-For: {client}\r\n"));
    let mut open = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    open.write_all(request("203.0.113.7").as_bytes()).expect("it reads");
    // The first request is at the upstream: it is open.
    let (mut behind, _) = listener.accept().expect("a connection");
    let refused = send(&server, &request("203.0.113.7")).to_lowercase();
    assert!(
        refused.starts_with("http/1.1 429") && refused.contains("\r\nretry-after: 1\r\n"),
        "{refused}"
    );
    // A response before its request would be a mistake.
    let respond = |behind: &mut TcpStream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            behind.read_exact(&mut byte).expect("a request");
            head.push(byte[0]);
        }
        let response = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
        behind.write_all(response).expect("it reads");
    };
    let other = thread::spawn({
        let (authority, request) =
            (Server::authority(server.http()).to_owned(), request("203.0.113.8"));
        move || {
            let mut stream = TcpStream::connect(authority).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut response = String::new();
            stream.read_to_string(&mut response).map(|_| response)
        }
    });
    let (mut second, _) = listener.accept().expect("a connection");
    respond(&mut second);
    let other = other.join().expect("no panic").expect("a response");
    assert!(other.starts_with("HTTP/1.1 204"), "another client: {other}");
    respond(&mut behind);
    let mut response = String::new();
    open.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    let again = thread::spawn(move || {
        let (mut third, _) = listener.accept().expect("a connection");
        respond(&mut third);
    });
    assert!(send(&server, &request("203.0.113.7")).starts_with("HTTP/1.1 204"));
    again.join().expect("no panic");
}

#[test]
fn a_route_may_have_less_time_than_others() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let upstream = format!("http://{}", listener.local_addr().expect("its address"));
    // It begins a response to what asks for one, and never ends it.
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut line = String::new();
            let mut lines = BufReader::new(stream.try_clone().expect("a descriptor"));
            if lines.read_line(&mut line).is_ok() && line.contains("/begun") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun");
            }
            open.push(stream);
        }
    });
    let text = format!(
        "[[listen]]\nhttp = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/silent\"\nproxy = \"{upstream}\"\nresponse-timeout = \"200ms\"\n\
         [[route]]\npath = \"/begun\"\nproxy = \"{upstream}\"\nexchange-timeout = \"300ms\"\n"
    );
    let (server, _) = start("a_route_may_have_less_time_than_others", &text);
    let since = Instant::now();
    let silent = send(&server, &get("/silent", ""));
    assert!(silent.starts_with("HTTP/1.1 503"), "{silent}");
    let begun = send(&server, &get("/begun", ""));
    assert!(begun.starts_with("HTTP/1.1 200") && begun.ends_with("begun"), "{begun}");
    // The server's own limits are minutes.
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
}

#[test]
fn lists_and_limits_are_the_same_over_http2_and_tls() {
    const TEST: &str = "lists_and_limits_are_the_same_over_http2_and_tls";
    let Some(curl) = find("curl", TEST) else { return };
    let (server, _) = start(TEST, GUARDED);
    let ask = |version: &str, url: &str, client: &str| {
        let field = format!("X-Forwarded-For: {client}");
        let flags = ["-sSk", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}"];
        run(&curl, [&flags[..], &[version, "-H", &field, url]].concat()).well().text()
    };
    for (number, (version, base)) in [
        ("--http2-prior-knowledge", server.http()),
        ("--http2", server.https()),
        ("--http1.1", server.https()),
    ]
    .into_iter()
    .enumerate()
    {
        let admin = format!("{base}/admin/");
        assert_eq!(ask(version, &admin, "203.0.113.7"), "200");
        assert_eq!(ask(version, &admin, "198.51.100.1"), "403");
        let (limited, client) = (format!("{base}/limited"), format!("203.0.113.{number}"));
        let statuses = [(); 3].map(|()| ask(version, &limited, &client));
        assert_eq!(statuses, ["200", "200", "429"], "{version}");
    }
}

#[test]
fn a_route_may_require_a_client_certificate_of_its_own() {
    const TEST: &str = "a_route_may_require_a_client_certificate_of_its_own";
    let Some(curl) = find("curl", TEST) else { return };
    let (authority, [certificate, key]) = super::certificates::clients(&scratch(TEST));
    let listen = format!(
        "[[listen]]\nhttps = \"127.0.0.1:0\"\nclient-ca = \"{}\"\nclient-certificate = \"optional\"\n",
        authority.display()
    );
    let route = |path: &str, value: &str| {
        format!("[[route]]\npath = \"{path}\"\nrespond = \"fine\"\nclient-certificate = {value}\n")
    };
    let text = listen
        + "[[route]]\nrespond = \"open\"\n"
        + &route("/any", "\"required\"")
        + &route("/alice", "[\"CN=alice\"]")
        + &route("/other", &format!("[\"CN=bob\", \"{}\"]", "ab:".repeat(31) + "ab"));
    // The directory has the certificates: it is not made anew.
    let path = authority.with_file_name("bolide.toml");
    std::fs::write(&path, text).expect("the directory is there");
    let server = Server::start(&["--config", &path.display().to_string()]);
    let ask = |flags: &[&str], path: &str| {
        let url = format!("{}{path}", server.https());
        let own = ["-sSk", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}"];
        run(&curl, [&own[..], flags, &[&url]].concat()).well().text()
    };
    let shown = ["--cert", &certificate, "--key", &key];
    for (path, without, with) in [
        ("/", "200", "200"),
        ("/any", "403", "200"),
        ("/alice", "403", "200"),
        ("/other", "403", "403"),
    ] {
        assert_eq!(
            (ask(&[], path), ask(&shown, path)),
            (without.to_owned(), with.to_owned()),
            "{path}"
        );
    }
}

#[test]
fn a_protected_directory_is_not_reached_by_another_spelling_of_its_path() {
    let directory = scratch("a_protected_directory");
    std::fs::create_dir_all(directory.join("site/admin")).expect("a directory");
    for file in ["index.html", "admin/index.html", "~x"] {
        std::fs::write(directory.join("site").join(file), file).expect("a file");
    }
    let path = directory.join("bolide.toml");
    let text = "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nroot = \"site\"\n\
                [[route]]\npath = \"/admin/\"\nroot = \"site/admin\"\ndeny = [\"127.0.0.0/8\"]\n";
    std::fs::write(&path, text).expect("the directory is there");
    let server = Server::start(&["--config", &path.display().to_string()]);
    for (path, status) in [
        ("/", 200),
        ("/%7ex", 200),
        ("/admin/", 403),
        ("/admin/index.html", 403),
        ("/%61dmin/index.html", 400),
        ("//admin/index.html", 400),
        ("/%2fadmin/index.html", 400),
        ("/admin%2findex.html", 400),
        ("/x/%2e%2e/admin/index.html", 404),
    ] {
        let response = send(&server, &get(path, ""));
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {response}");
    }
}
