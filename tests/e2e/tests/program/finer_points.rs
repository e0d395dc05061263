//! Keys of a site that need a server to be seen: how fast clients are sent content, lines by template, users, pages of paths without a
//! route.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bolide_launcher::{Server, program, scratch};

/// Starts a server with this configuration in a directory with these files.
fn start(test: &str, text: &str, files: &[(&str, &[u8])]) -> (Server, PathBuf) {
    let directory = scratch(test);
    for (name, content) in files {
        std::fs::write(directory.join(name), content).expect("the directory is there");
    }
    let path = directory.join("bolide.toml");
    std::fs::write(&path, format!("[[listen]]\nhttp = \"127.0.0.1:0\"\n{text}"))
        .expect("as before");
    (Server::start(&["--config", &path.display().to_string()]), directory)
}

fn get(server: &Server, path: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = Vec::new();
    // A connection that is closed at once has said nothing.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

#[test]
fn content_is_sent_no_faster_than_a_clients_bandwidth_and_comes_whole() {
    const TEST: &str = "content_is_sent_no_faster_than_a_clients_bandwidth_and_comes_whole";
    let content = vec![b'x'; 300_000];
    let (behind, _) =
        start(&format!("{TEST}_behind"), "[[route]]\nroot = \".\"\n", &[("file", &content)]);
    // Each route has clients of its own: neither waits for what the other has sent.
    let limit = "bandwidth = { bytes-per-second = 200000, burst = 100000 }\n";
    let text = format!(
        "[[route]]\nroot = \".\"\n{limit}[[route]]\npath = \"/api/\"\nstrip-prefix = \"/api\"\nproxy = \"{}\"\n{limit}",
        behind.http()
    );
    let (server, _) = start(TEST, &text, &[("file", &content)]);
    for path in ["/file", "/api/file"] {
        let began = Instant::now();
        let response = get(&server, path, "");
        let (head, body) = response.split_once("\r\n\r\n").expect("a response");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(body.len(), content.len(), "{path}");
        // Of the 200,000 bytes beyond the burst, a piece may be early.
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(600), "{path}: {took:?}");
    }
}

#[test]
fn content_is_taken_no_faster_than_a_clients_bandwidth_and_comes_whole() {
    const TEST: &str = "content_is_taken_no_faster_than_a_clients_bandwidth_and_comes_whole";
    let (behind, _) = start(&format!("{TEST}_behind"), "[[route]]\nbuiltin = true\n", &[]);
    let text = format!(
        "[[route]]\nproxy = \"{}\"\nupload-bandwidth = {{ bytes-per-second = 200000, burst = 100000 }}\n",
        behind.http()
    );
    let (server, _) = start(TEST, &text, &[]);
    let began = Instant::now();
    let mut stream = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    let head =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n";
    stream.write_all(&[&head[..], &[b'x'; 300_000]].concat()).expect("it reads");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").expect("a response");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.ends_with('x') && body.matches('x').count() == 300_000, "{head}");
    // Of the 200,000 bytes beyond the burst, a piece may be early.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(600), "{took:?}");
}

#[test]
fn a_client_has_as_many_connections_as_it_may() {
    const TEST: &str = "a_client_has_as_many_connections_as_it_may";
    let text = "[limits]\nclient-connections-count = 1\n[[route]]\nrespond = \"fine\"\n";
    let (server, _) = start(TEST, text, &[]);
    let mut kept = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    kept.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    assert!(kept.read(&mut [0; 1]).expect("a response") > 0);
    assert_eq!(get(&server, "/", ""), "");
    drop(kept);
    while !get(&server, "/", "").ends_with("fine") {}
}

#[test]
fn lines_follow_a_template_and_errors_are_always_logged() {
    const TEST: &str = "lines_follow_a_template_and_errors_are_always_logged";
    let text = "[access-log]\nfile = \"log\"\nformat = \"{client} {user} {method} {path} {query} {status} {route}\"\n\
                sample = 0.000001\n\
                [[route]]\nrespond = \"fine\"\n[[route]]\npath = \"/ill\"\nrespond = \"ill\"\nstatus = 500\n";
    let (server, directory) = start(TEST, text, &[]);
    for _ in 0..20 {
        assert!(get(&server, "/well", "").ends_with("fine"));
    }
    assert!(get(&server, "/ill?a=b", "").ends_with("ill"));
    let log = loop {
        let log = std::fs::read_to_string(directory.join("log")).expect("a log");
        if log.ends_with('\n') {
            break log;
        }
    };
    assert_eq!(log, "127.0.0.1 - GET /ill ?a=b 500 /ill\n");
}

#[test]
fn an_upstream_is_told_the_user_and_a_path_without_a_route_has_a_page() {
    const TEST: &str = "an_upstream_is_told_the_user_and_a_path_without_a_route_has_a_page";
    // `correct horse`.
    let hash = "$argon2id$v=19$m=19456,t=2,p=1$k2Jd4MSvwYOv9U+hQH7iTA$rleQqMokCG5+EOSZWjmYstksQPNA+tjm1W2ecLsrN9U";
    // The same path: the route with a condition comes first.
    let behind = "[[route]]\nheader = { x-user = \"alice\" }\nrespond = \"it is alice\"\n[[route]]\nrespond = \"nobody\"\n";
    let (behind, _) = start(&format!("{TEST}_behind"), behind, &[]);
    let text = format!(
        "[defaults]\nerror-pages = {{ 404 = \"404.html\" }}\nsecurity-headers = true\n\
         [[route]]\npath = \"/own/\"\nproxy = \"{}\"\nbasic-auth = {{ users = {{ alice = \"{hash}\" }} }}\n\
         request-headers = {{ set = {{ x-user = \"{{user}}\" }} }}\n",
        behind.http()
    );
    let (server, _) = start(TEST, &text, &[("404.html", b"the page")]);
    let credentials = "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\nX-User: mallory\r\n";
    assert!(get(&server, "/own/", credentials).ends_with("it is alice"));
    let response = get(&server, "/none", "");
    assert!(response.starts_with("HTTP/1.1 404") && response.ends_with("the page"), "{response}");
    assert!(response.contains("x-content-type-options: nosniff\r\n"), "{response}");
}

#[test]
fn what_cannot_be_is_one_sentence_with_its_place() {
    const TEST: &str = "finer_points_what_cannot_be_is_one_sentence_with_its_place";
    let route = |line: &str| format!("[[route]]\nrespond = \"\"\n{line}\n");
    let upstream = |line: &str| {
        format!(
            "[[route]]\nproxy = \"a\"\n[[upstream]]\nname = \"a\"\nservers = [\"http://127.0.0.1:1\"]\n{line}\n"
        )
    };
    for (text, said) in [
        (route("bandwidth = { burst = 1 }"), ":3:13: `bandwidth` needs a rate: write"),
        (
            route("upload-bandwidth = { burst = 1 }"),
            ":3:20: `upload-bandwidth` needs a rate: write",
        ),
        (
            route("bandwidth = { bytes-per-second = 0 }"),
            ":3:34: `bytes-per-second` is out of range",
        ),
        (
            route("response-headers = { set = { x-user = \"{user}\" } }"),
            ":3:39: `x-user`: `{user}` is for requests",
        ),
        (
            "[access-log]\nfile = \"-\"\nformat = \"{statu}\"\n".to_owned(),
            ":3:10: `format` `{statu}` is not a placeholder: known are {time}",
        ),
        (
            "[access-log]\nfile = \"-\"\nformat = \"jsn\"\n".to_owned(),
            ":3:10: `format` is `jsn` (`json`?): give one of common",
        ),
        (
            "[access-log]\nfile = \"-\"\nsample = 2\n".to_owned(),
            ":3:10: `sample` must be above 0 and at most 1",
        ),
        (upstream("health = \"websocket:chat\""), ":6:10: the health check `chat` is invalid"),
        (
            upstream("health = \"grpc\"\nhealth-statuses = \"200\""),
            ":6:10: `health-statuses` goes with a path",
        ),
    ] {
        let path = scratch(TEST).join("bolide.toml");
        std::fs::write(&path, text).expect("the directory is there");
        let mut command = Command::new(program());
        let output = command.args(["serve", "--check", "--config"]).arg(&path).output();
        let output = output.expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(said), "{said}\n{told}");
    }
}
