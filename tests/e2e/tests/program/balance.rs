//! Whom a proxy asks, as its configuration has it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bolide_launcher::{Server, scratch};

/// A server that says its name.
fn named(test: &str, name: &str) -> Server {
    start(
        &format!("{test}-{name}"),
        &format!("[[route]]\npath = \"/name\"\nrespond = \"{name}\"\n[[route]]\nbuiltin = true\n"),
    )
}

fn start(test: &str, text: &str) -> Server {
    let path = scratch(test).join("bolide.toml");
    let text = format!("workers = 1\n[[listen]]\nhttp = \"127.0.0.1:0\"\n{text}");
    std::fs::write(&path, text).expect("target can be written");
    Server::start(&["--config", &path.display().to_string()])
}

fn ask(server: &Server, request: &str) -> TcpStream {
    let stream = TcpStream::connect(Server::authority(server.http()));
    let mut stream = stream.expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it reads");
    stream
}

/// The name of the upstream that responds.
fn name(server: &Server) -> String {
    let request = "GET /name HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let mut response = String::new();
    ask(server, request).read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    response.split("\r\n\r\n").nth(1).expect("a body").to_owned()
}

/// A proxy to both with what an `[[upstream]]` says.
fn before(test: &str, servers: [&Server; 2], weights: [u32; 2], balance: &str) -> Server {
    let [one, other] = servers.map(Server::http);
    let [a, b] = weights;
    start(
        &format!("{test}-{balance}"),
        &format!(
            "[[route]]\nproxy = \"both\"\n[[upstream]]\nname = \"both\"\nbalance = \"{balance}\"\n\
             servers = [{{ url = \"{one}\", weight = {a} }}, {{ url = \"{other}\", weight = {b} }}]\n"
        ),
    )
}

#[test]
fn turns_go_by_weight() {
    let test = "turns_go_by_weight";
    let (a, b) = (named(test, "a"), named(test, "b"));
    let proxy = before(test, [&a, &b], [3, 1], "round-robin");
    let names: String = (0..40).map(|_| name(&proxy)).collect();
    assert_eq!(names.matches('a').count(), 30, "{names}");
    assert!(!names.contains("bb") && !names.contains("aaaa"), "turns are spread: {names}");
}

#[test]
fn who_is_busy_is_asked_less() {
    let test = "who_is_busy_is_asked_less";
    let (a, b) = (named(test, "a"), named(test, "b"));
    for balance in ["least-requests", "power-of-two"] {
        let proxy = before(test, [&a, &b], [1, 1], balance);
        // Its response has begun, and ends with the request.
        let mut open = ask(&proxy, "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nx");
        assert_eq!(open.read(&mut [0; 12]).expect("a response"), 12);
        let first = name(&proxy);
        for _ in 0..10 {
            assert_eq!(name(&proxy), first, "{balance}");
        }
        // The weights say that who has one request is still the less busy one.
        let proxy = before(test, [&a, &b], [1, 1000], balance);
        let _open: Vec<_> = (0..5)
            .map(|_| {
                let post = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nx";
                let mut open = ask(&proxy, post);
                assert_eq!(open.read(&mut [0; 12]).expect("a response"), 12);
                open
            })
            .collect();
        let names: String = (0..20).map(|_| name(&proxy)).collect();
        assert!(names.matches('b').count() >= 19, "{balance}: {names}");
    }
}

/// The response to a request with these fields, in lower case.
fn response(server: &Server, path: &str, fields: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n");
    let mut response = String::new();
    ask(server, &request).read_to_string(&mut response).expect("a response");
    response.to_lowercase()
}

#[test]
fn a_client_stays_where_its_cookie_or_its_hash_says() {
    let test = "a_client_stays_where_its_cookie_or_its_hash_says";
    let (a, b) = (named(test, "a"), named(test, "b"));
    let proxy = start(
        &format!("{test}-proxy"),
        &format!(
            "[[route]]\npath = \"/name\"\nproxy = \"sticky\"\n\
             [[route]]\npath = \"/hashed\"\nrewrite = {{ from = \"^.*$\", to = \"/name\" }}\nproxy = \"hashed\"\n\
             [[upstream]]\nname = \"sticky\"\nservers = [\"{0}\", \"{1}\"]\n\
             sticky = {{ cookie = \"at\", max-age = \"1h\", secret = \"0123456789abcdef\" }}\n\
             [[upstream]]\nname = \"hashed\"\nservers = [\"{0}\", \"{1}\"]\nbalance = \"hash:header:x-user\"\n",
            a.http(),
            b.http()
        ),
    );
    for _ in 0..2 {
        let first = response(&proxy, "/name", "");
        let set = first.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let (pair, attributes) = set.and_then(|set| set.split_once("; ")).expect("a cookie");
        assert_eq!(attributes, "path=/; httponly; max-age=3600; samesite=lax");
        for _ in 0..4 {
            let next = response(&proxy, "/name", &format!("cookie: x=1; {pair}\r\n"));
            assert!(!next.contains("set-cookie"), "{next}");
            assert_eq!(next.chars().last(), first.chars().last());
        }
    }
    let hashed = |user: u32| response(&proxy, "/hashed", &format!("x-user: {user}\r\n")).pop();
    let first: Vec<_> = (0..20).map(hashed).collect();
    for _ in 0..2 {
        assert_eq!((0..20).map(hashed).collect::<Vec<_>>(), first);
    }
    assert!(first.contains(&Some('a')) && first.contains(&Some('b')), "{first:?}");
}

#[test]
fn an_upstream_hears_by_a_proxy_header_whose_connection_it_is() {
    let test = "an_upstream_hears_by_a_proxy_header_whose_connection_it_is";
    let directory = scratch(&format!("{test}-upstream"));
    let path = directory.join("bolide.toml");
    let text = "trusted = [\"127.0.0.0/8\"]\n[[listen]]\nhttp = \"127.0.0.1:0\"\nproxy-protocol = \"required\"\n\
                [[route]]\npath = \"/near\"\nrespond = \"yes\"\naddress = \"192.0.2.0/24\"\n\
                [[route]]\nrespond = \"no\"\n";
    std::fs::write(&path, text).expect("target can be written");
    let upstream = Server::start(&["--config", &path.display().to_string()]);
    for version in ["v1", "v2"] {
        let path = scratch(&format!("{test}-{version}")).join("bolide.toml");
        let text = format!(
            "trusted = [\"127.0.0.0/8\"]\n[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nproxy = \"behind\"\n\
             [[upstream]]\nname = \"behind\"\norigin = \"hide\"\nservers = [\"{}\"]\nproxy-protocol = \"{version}\"\n",
            upstream.http()
        );
        std::fs::write(&path, text).expect("target can be written");
        let proxy = Server::start(&["--config", &path.display().to_string()]);
        assert!(response(&proxy, "/near", "").ends_with("\r\n\r\nno"), "{version}");
        let near = response(&proxy, "/near", "x-forwarded-for: 192.0.2.7\r\n");
        assert!(near.ends_with("\r\n\r\nyes"), "{version}: {near}");
    }
}
