//! Routes that require a user name and a password.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use bolide_launcher::{Server, find, program, run, scratch};

/// The versions that each test uses, as curl's options.
const VERSIONS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

fn hash_password(input: &str) -> std::process::Output {
    let mut command = Command::new(program());
    let mut child = command
        .arg("hash-password")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // It may have enough before it has all.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn hash(password: &str) -> String {
    let output = hash_password(&format!("{password}\n"));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

fn serve(directory: &Path, routes: &str) -> Server {
    let path = directory.join("bolide.toml");
    std::fs::write(&path, format!("[[listen]]\nhttp = \"127.0.0.1:0\"\n{routes}")).unwrap();
    Server::start(&["--config", &path.display().to_string()])
}

struct Curl(PathBuf);

impl Curl {
    /// The status, and head and content together, in lower case, over each version.
    fn ask(&self, server: &Server, path: &str, more: &[&str]) -> Vec<(String, String)> {
        let of = |version| {
            let url = format!("{}{path}", server.http());
            let own = ["-sSi", "--max-time", "60", version, &url];
            let text = run(&self.0, [&own, more].concat()).well().text().to_lowercase();
            let status = text.split(' ').nth(1).expect("a status")[..3].to_owned();
            (status, text)
        };
        VERSIONS.into_iter().map(of).collect()
    }
}

#[test]
fn a_route_with_basic_auth_lets_its_users_through_and_nobody_else() {
    let test = "a_route_with_basic_auth";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let (directory, behind) = (scratch(test), scratch(&format!("{test}_upstream")));
    let behind = serve(&behind, "[[route]]\nbuiltin = true\n");
    std::fs::write(directory.join("401.html"), "<p>who are you</p>").unwrap();
    let users = format!("# the office\n\nbob:{}\n", hash("päss:word"));
    std::fs::write(directory.join("users"), users).unwrap();
    let alice = hash("secret");
    let routes = format!(
        "[[route]]\nproxy = \"{}\"\nstrip-prefix = \"/admin\"\npath = \"/admin/\"\n\
         error-pages = {{ 401 = \"401.html\" }}\n\
         request-headers = {{ set = {{ authorization = \"Basic YWxpY2U6c2VjcmV0\" }} }}\n\
         basic-auth = {{ realm = \"Office\", users = {{ alice = \"{alice}\" }}, users-file = \"users\" }}\n\
         [[route]]\nrespond = \"open\"\n",
        behind.http()
    );
    let server = serve(&directory, &routes);
    // Credentials that the server itself sets for the upstream are not the client's.
    for more in [&[][..], &["-u", "alice:Secret"], &["-u", "bob:secret"], &["-u", "carol:secret"]] {
        for (status, text) in curl.ask(&server, "/admin/ping", more) {
            assert_eq!(status, "401", "{text}");
            let challenge = "\nwww-authenticate: basic realm=\"office\", charset=\"utf-8\"\r";
            assert!(text.contains(challenge), "{text}");
            assert!(text.ends_with("<p>who are you</p>"), "{text}");
        }
    }
    for user in ["alice:secret", "bob:päss:word"] {
        for (status, text) in curl.ask(&server, "/admin/ping", &["-u", user]) {
            assert_eq!(status, "200", "{text}");
        }
    }
    for (status, _) in curl.ask(&server, "/admin/ping", &["-u", "alice:secre"]) {
        assert_eq!(status, "401");
    }
    for (status, text) in curl.ask(&server, "/", &[]) {
        assert_eq!(status, "200");
        assert!(text.ends_with("open"));
    }
}

#[test]
fn a_body_waits_until_its_senders_password_was_verified() {
    let test = "a_body_waits_until_its_senders_password";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let (directory, behind) = (scratch(test), scratch(&format!("{test}_upstream")));
    let behind = serve(&behind, "[[route]]\nbuiltin = true\n");
    let large = directory.join("large");
    std::fs::write(&large, "0123456789abcdef".repeat(30_000)).unwrap();
    let data = format!("@{}", large.display());
    let alice = hash("secret");
    // Each has a server of its own, which remembers no address.
    for version in VERSIONS {
        for data in ["short", &data] {
            let routes = format!(
                "[[route]]\nproxy = \"{}\"\nbasic-auth = {{ users = {{ alice = \"{alice}\" }} }}\n",
                behind.http()
            );
            let server = serve(&directory, &routes);
            let url = format!("{}/echo", server.http());
            let own = ["-sS", "--max-time", "60", version, "--data-binary", data, &url];
            let echoed = run(&curl.0, [&own[..], &["-u", "alice:secret"]].concat()).well().text();
            let expected = if data == "short" {
                data.to_owned()
            } else {
                std::fs::read_to_string(&large).unwrap()
            };
            assert!(echoed == expected, "{version}: {} bytes", echoed.len());
            let refused =
                ["-u", "alice:wrong", "-d", "short", "-o", "/dev/null", "-w", "%{http_code}"];
            let own = ["-sS", "--max-time", "60", version, &url];
            let refused = run(&curl.0, [&own[..], &refused].concat()).well().text();
            assert_eq!(refused, "401");
        }
    }
}

#[test]
fn hash_password_reads_a_line_and_prints_a_hash_with_a_salt_of_its_own() {
    let one = hash("secret");
    assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
    assert_ne!(one, hash("secret"));
    for (input, said) in [("", "the password is empty"), ("\n", "the password is empty")] {
        let output = hash_password(input);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
    let output = hash_password(&"a".repeat(600));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("longer than 512 bytes"),
        "{output:?}"
    );
}

#[test]
fn mistakes_in_basic_auth_and_forward_auth_are_found() {
    let directory = scratch("mistakes_in_basic_auth");
    let path = directory.join("bolide.toml");
    std::fs::write(directory.join("users"), "# none\nalice\n").unwrap();
    for (route, said) in [
        ("basic-auth = {}", "`basic-auth` has no users"),
        ("basic-auth = { users = { a = \"secret\" } }", "the hash of `a` is not one of argon2"),
        ("basic-auth = { users-file = \"none\" }", "can't be read"),
        (
            "basic-auth = { users-file = \"users\" }",
            "users:2: a line is a user name, a colon and a hash",
        ),
        ("basic-auth = { realm = \"a\\\"b\" }", "`realm` is `a\\\"b`: a realm is printable ASCII"),
        ("basic-auth = { user = {} }", "did you mean `users`?"),
        ("basic-auth = true", "`basic-auth` is a table"),
        ("forward-auth = {}", "`forward-auth` needs a server"),
        ("forward-auth = { url = \"localhost:1\" }", "it must begin with http:// or https://"),
        ("forward-auth = { url = \"http://a\", copy-headers = [\"host\"] }", "can't be edited"),
        ("forward-auth = { url = \"http://a\", timeout = \"0s\" }", "must be at least 1ms"),
        ("forward-auth = { url = \"http://a\", copy = [] }", "did you mean `copy-headers`?"),
        ("forward-auth = { url = \"http://a\", user = \"a b\" }", "`user` is `a b`: give the name"),
    ] {
        std::fs::write(&path, format!("[[route]]\nrespond = \"a\"\n{route}\n")).unwrap();
        let finished =
            run(program(), ["serve", "--config", &path.display().to_string(), "--check"]);
        let told = finished.both();
        assert_eq!(finished.status.code(), Some(2), "{route}: {told}");
        assert!(told.contains(said), "{said}: {told}");
    }
}

/// A server that responds to each request by what its cookie says, and repeats what it was sent. Returns its URL.
fn authority() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/verify?a=b", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let mut head = String::new();
                let lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
                for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
                    head.push_str(&line.to_lowercase());
                    head.push('\n');
                }
                let response = match head.lines().find_map(|line| line.strip_prefix("cookie: ")) {
                    Some("good=1; too=2") => {
                        "HTTP/1.1 204 No Content\r\nx-user: alice\r\nx-role: a\r\n\
                                              x-role: b\r\nx-other: 1\r\nconnection: close\r\n\r\n"
                            .to_owned()
                    }
                    Some("endless=1") => {
                        let long = "a".repeat(70_000);
                        format!("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n{long}")
                    }
                    Some("broken=1") => "what".to_owned(),
                    Some("silent=1") => {
                        // Until the other side has had enough.
                        let _ = stream.read(&mut [0]);
                        return;
                    }
                    _ => format!(
                        "HTTP/1.1 302 Found\r\nlocation: https://login.example/\r\nset-cookie: a=1\r\n\
                         set-cookie: b=2\r\nx-hop: 1\r\nconnection: close, x-hop\r\n\
                         content-length: {}\r\n\r\n{head}",
                        head.len()
                    ),
                };
                // The client may have gone.
                let _ = stream.write_all(response.as_bytes());
            });
        }
    });
    url
}

#[test]
fn forward_auth_lets_pass_what_another_server_lets_pass() {
    let test = "forward_auth_lets_pass";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let behind = scratch(&format!("{test}_upstream"));
    // The upstream says what it got.
    let behind = serve(
        &behind,
        "[[route]]\nrespond = \"wrong\"\n[[route]]\npath = \"/new\"\nrespond = \"right\"\n\
         header = { x-user = \"alice\", x-role = \"a\", x-other = false, x_user = false }\n\
         [[route]]\npath = \"/new\"\nrespond = \"other fields\"\n",
    );
    let url = authority();
    let routes = format!(
        "[[route]]\nproxy = \"{}\"\nrewrite = {{ from = \"^/old$\", to = \"/new\" }}\n\
         forward-auth = {{ url = \"{url}\", copy-headers = [\"X-User\", \"x-role\"] }}\n",
        behind.http()
    );
    let server = serve(&scratch(test), &routes);
    let forged =
        ["-H", "X-User: mallory", "-H", "X_User: mallory", "-H", "X-Forwarded-For: 6.6.6.6"];
    let good = ["-H", "Cookie: good=1; too=2"];
    for (status, text) in curl.ask(&server, "/old", &[&good[..], &forged].concat()) {
        assert_eq!(status, "200", "{text}");
        assert!(text.ends_with("right"), "{text}");
    }
    // A body waits for the response, too.
    for (_, text) in curl.ask(&server, "/old", &[&good[..], &["-d", "some body"]].concat()) {
        assert!(text.ends_with("right"), "{text}");
    }
    let more = ["-H", "Authorization: Bearer abc", "-X", "PUT"];
    for (status, text) in curl.ask(&server, "/old?q=1", &[&more[..], &forged].concat()) {
        assert_eq!(status, "302", "{text}");
        for line in
            ["location: https://login.example/\r\n", "set-cookie: a=1\r\n", "set-cookie: b=2\r\n"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("x-hop"), "{text}");
        let host = Server::authority(server.http());
        for line in [
            "get /verify?a=b http/1.1",
            "x-forwarded-method: put",
            "x-forwarded-proto: http",
            &format!("x-forwarded-host: {host}"),
            "x-forwarded-uri: /old?q=1",
            "x-forwarded-for: 127.0.0.1",
            "authorization: bearer abc",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        assert!(!text.contains("mallory") && !text.contains("6.6.6.6"), "{text}");
    }
}

/// slow-server, endless-response: what does not say that a request may pass does not let it pass.
#[test]
fn forward_auth_that_fails_is_502_and_nothing_passes() {
    let test = "forward_auth_that_fails";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let url = authority();
    let route = |path: &str, url: &str, more: &str| {
        format!(
            "[[route]]\npath = \"{path}\"\nrespond = \"in\"\nforward-auth = {{ url = \"{url}\"{more} }}\n"
        )
    };
    let routes = route("/", &url, "")
        + &route("/slow", &url, ", timeout = \"200ms\"")
        + &route("/gone", &format!("http://{gone}/"), "");
    let server = serve(&scratch(test), &routes);
    for (path, cookie) in
        [("/", "endless=1"), ("/", "broken=1"), ("/slow", "silent=1"), ("/gone", "good=1; too=2")]
    {
        for (status, text) in curl.ask(&server, path, &["-H", &format!("Cookie: {cookie}")]) {
            assert_eq!(status, "502", "{cookie}: {text}");
            assert!(text.ends_with("502 bad gateway\n"), "{text}");
        }
    }
    let twice = ["-H", "Authorization: a", "-H", "Authorization: b"];
    for (status, text) in curl.ask(&server, "/", &twice) {
        assert_eq!(status, "400", "{text}");
    }
}

/// slow-server: it holds the threads that wait for it, and no other route's.
#[test]
fn forward_auth_that_is_slow_delays_no_other_route() {
    let test = "forward_auth_that_is_slow";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let (slow, url) = (authority(), authority());
    let routes = format!(
        "[[route]]\npath = \"/slow\"\nrespond = \"in\"\nforward-auth = {{ url = \"{slow}\", timeout = \"1min\" }}\n\
         [[route]]\nrespond = \"in\"\nforward-auth = {{ url = \"{url}\", timeout = \"5s\" }}\n"
    );
    let server = serve(&scratch(test), &routes);
    let _waiting: Vec<TcpStream> = (0..100)
        .map(|_| {
            let stream = TcpStream::connect(Server::authority(server.http()));
            let mut stream = stream.expect("it listens");
            let request = b"GET /slow HTTP/1.1\r\nhost: a\r\ncookie: silent=1\r\n\r\n";
            stream.write_all(request).expect("it reads");
            stream
        })
        .collect();
    for (status, text) in curl.ask(&server, "/", &["-H", "Cookie: good=1; too=2"]) {
        assert_eq!(status, "200", "{text}");
    }
}

#[test]
fn the_access_log_names_users_who_were_let_pass() {
    let test = "the_access_log_names_users";
    let Some(curl) = find("curl", test).map(Curl) else { return };
    let directory = scratch(test);
    let routes = format!(
        "[[route]]\npath = \"/basic\"\nrespond = \"in\"\nbasic-auth = {{ users = {{ \"alice b\" = \"{}\" }} }}\n\
         [[route]]\npath = \"/asked\"\nrespond = \"in\"\nforward-auth = {{ url = \"{}\", user = \"x-user\" }}\n\
         [[route]]\nrespond = \"open\"\n[access-log]\nfile = \"log\"\nformat = \"common\"\n",
        hash("secret"),
        authority()
    );
    let server = serve(&directory, &routes);
    for (path, more, status) in [
        // The first is verified, and then remembered.
        ("/basic", &["-u", "alice b:secret"][..], "200"),
        ("/basic", &["-u", "alice b:wrong"], "401"),
        ("/asked", &["-H", "Cookie: good=1; too=2"], "200"),
        ("/open", &["-u", "alice b:secret"], "200"),
    ] {
        for (got, text) in curl.ask(&server, path, more) {
            assert_eq!(got, status, "{path}: {text}");
        }
    }
    let log = super::access::logged(&directory.join("log"), 4 * VERSIONS.len());
    for (path, status, user) in [
        ("/basic", 200, "alice\\x20b"),
        ("/basic", 401, "-"),
        ("/asked", 200, "alice"),
        ("/open", 200, "-"),
    ] {
        let lines = log.lines().filter(|line| {
            line.contains(&format!("GET {path} ")) && line.contains(&format!("\" {status} "))
        });
        let users: Vec<_> = lines.map(|line| line.split(' ').nth(2).unwrap_or_default()).collect();
        assert_eq!(users, [user; VERSIONS.len()], "{log}");
    }
}
