//! Rules of routes: what one may match, rewrite and edit: one test per key, over HTTP/1.1 and HTTP/2, with files, an upstream and a
//! fixed response behind it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide_launcher::{Server, find, program, run, scratch};

/// The versions that each test uses, as curl's options.
const VERSIONS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

/// One response.
#[derive(Debug)]
struct Got {
    status: u16,
    /// In lower case, a line for each field.
    head: String,
    body: String,
}

impl Got {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let head = head.replace('\r', "") + "\n";
        Self { status: status.expect("a status"), head, body: body.to_owned() }
    }

    /// Checks that the head has this line, and its field no other value.
    #[track_caller]
    fn has(&self, line: &str) {
        let (name, _) = line.split_once(':').expect("a name");
        let same =
            |own: &&str| own.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name));
        let lines: Vec<&str> = self.head.lines().filter(same).collect();
        assert!(lines.len() == 1 && lines[0].eq_ignore_ascii_case(line), "{line}: {self:?}");
    }

    #[track_caller]
    fn lacks(&self, name: &str) {
        assert!(!self.head.to_lowercase().contains(&format!("\n{name}:")), "{name}: {self:?}");
    }
}

/// A server with a configuration, and curl.
struct Site {
    server: Server,
    curl: PathBuf,
    directory: PathBuf,
}

impl Site {
    /// `None`: there is no curl.
    fn start(test: &str, routes: &str) -> Option<Self> {
        let curl = find("curl", test)?;
        let directory = scratch(test);
        Some(Self { server: serve(&directory, routes), curl, directory })
    }

    /// Responses over each version.
    fn ask(&self, host: &str, path: &str, more: &[&str]) -> Vec<Got> {
        let versions = VERSIONS.into_iter();
        versions.map(|version| self.ask_by(self.server.http(), version, host, path, more)).collect()
    }

    fn ask_by(&self, to: &str, version: &str, host: &str, path: &str, more: &[&str]) -> Got {
        let (url, host) = (format!("{to}{path}"), format!("Host: {host}"));
        let own = ["-sSik", "--path-as-is", version, "-H", &host, &url];
        Got::of(&run(&self.curl, [&own, more].concat()).well().text())
    }

    fn secure(&self, host: &str, path: &str) -> Vec<Got> {
        let versions = ["--http1.1", "--http2"].into_iter();
        versions.map(|version| self.ask_by(self.server.https(), version, host, path, &[])).collect()
    }
}

fn serve(directory: &Path, routes: &str) -> Server {
    let path = directory.join("bolide.toml");
    let listen = "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[listen]]\nhttps = \"127.0.0.1:0\"\n";
    std::fs::write(&path, format!("{listen}{routes}")).unwrap();
    Server::start(&["--config", &path.display().to_string()])
}

/// A route with these keys for each kind of handler: files below `/files/`, an upstream below `/proxy/`, a text at `/text`.
fn everywhere(directory: &Path, upstream: &str, keys: &str) -> String {
    std::fs::create_dir_all(directory.join("files")).unwrap();
    std::fs::write(directory.join("files/file.txt"), "file").unwrap();
    let mut routes = String::new();
    for action in [
        "path = \"/files/\"\nroot = \"files\"",
        &format!("path = \"/proxy/\"\nproxy = \"{upstream}\""),
        "path = \"/text\"\nrespond = \"text\"",
    ] {
        writeln!(routes, "[[route]]\n{action}\n{keys}").unwrap();
    }
    routes
}

/// An upstream that says which target and fields it got.
fn upstream(test: &str) -> Server {
    let routes = "[[route]]\npath = \"/seen\"\nrespond = \"seen\"\n\
                  header = { x-seen = \"127.0.0.1 /proxy/seen\", x-gone = false }\n\
                  [[route]]\nrespond = \"up\"\n\
                  response-headers = { set = { x-target = \"{path}{query}\", x-upstream = \"1\" } }\n";
    serve(&scratch(&format!("{test}_upstream")), routes)
}

#[test]
fn response_headers_are_set_added_and_removed_whoever_responds() {
    let test = "response_headers_are_set";
    let Some(curl) = find("curl", test) else { return };
    let (directory, behind) = (scratch(test), upstream(test));
    let keys = "response-headers = { set = { x-set = \"{method} {path}\" }, add = { x-add = \"1\" }, \
                remove = [\"x-upstream\", \"last-modified\"] }\n";
    let routes = everywhere(&directory, behind.http(), keys);
    let site = Site { server: serve(&directory, &routes), curl, directory };
    for (path, status) in
        [("/files/file.txt", 200), ("/files/none", 404), ("/proxy/a", 200), ("/text", 200)]
    {
        for got in site.ask("a", path, &[]) {
            assert_eq!(got.status, status, "{got:?}");
            got.has(&format!("x-set: GET {path}"));
            got.has("x-add: 1");
            got.lacks("x-upstream");
            got.lacks("last-modified");
        }
    }
    behind.terminate();
    assert!(behind.wait().success());
    for got in site.ask("a", "/proxy/a", &[]) {
        assert_eq!(got.status, 502);
        got.has("x-set: GET /proxy/a");
    }
}

#[test]
fn request_headers_reach_the_upstream_with_the_rewritten_target() {
    let test = "request_headers_reach";
    let behind = upstream(test);
    let routes = format!(
        "[[route]]\npath = \"/proxy/\"\nproxy = \"{}\"\nstrip-prefix = \"/proxy\"\n\
         request-headers = {{ set = {{ x-seen = \"{{client}} {{path}}\" }}, remove = [\"x-gone\"] }}\n",
        behind.http()
    );
    let Some(site) = Site::start(test, &routes) else { return };
    for got in site.ask("a", "/proxy/seen", &["-H", "x-gone: 1", "-H", "x-seen: forged"]) {
        assert_eq!(got.body, "seen", "{got:?}");
    }
    for got in site.ask("a", "/proxy/x?y=/proxy", &[]) {
        got.has("x-target: /x?y=/proxy");
    }
}

#[test]
fn http_goes_to_https_for_all_hosts_by_one_route() {
    let routes = "[[route]]\nscheme = \"http\"\nredirect = \"https://{host}{path}{query}\"\n\
                  [[route]]\nhost = \"a.example\"\nrespond = \"a\"\n\
                  [[route]]\nhost = \"a.example\"\npath = \"/deep/\"\nrespond = \"deep\"\n\
                  [[route]]\nscheme = \"http\"\npath = \"/.well-known/\"\nrespond = \"known\"\n";
    let Some(site) = Site::start("http_goes_to_https", routes) else { return };
    for (host, path) in [("a.example:80", "/deep/b?c=d"), ("b.example", "/%20?")] {
        for got in site.ask(host, path, &[]) {
            assert_eq!(got.status, 308);
            got.has(&format!("location: https://{}{path}", host.trim_end_matches(":80")));
        }
    }
    assert!(site.ask("a.example", "/.well-known/x", &[]).iter().all(|got| got.body == "known"));
    assert!(site.secure("a.example", "/deep/b").iter().all(|got| got.body == "deep"));
    assert!(site.secure("a.example", "/b").iter().all(|got| got.body == "a"));
}

#[test]
fn targets_are_rewritten_for_upstreams_and_files() {
    let test = "targets_are_rewritten";
    let behind = upstream(test);
    let routes = format!(
        "[[route]]\npath = \"/api/\"\nproxy = \"{0}\"\nstrip-prefix = \"/api/\"\nadd-prefix = \"/v2\"\n\
         [[route]]\npath = \"/old/\"\nproxy = \"{0}\"\nrewrite = {{ from = \"^/old/(.*)$\", to = \"/new/{{1}}\" }}\n\
         [[route]]\npath = \"/page/\"\nroot = \"site\"\nrewrite = {{ from = \"^/page/([0-9]+)$\", to = \"/{{1}}.txt\" }}\n\
         [[route]]\npath = \"/go/\"\nredirect = {{ from = \"^/go/([a-z]+)$\", to = \"https://{{1}}.example/\" }}\n\
         [[route]]\npath = \"/cut\"\nproxy = \"{0}\"\n",
        behind.http()
    );
    let directory = scratch(test);
    let Some(curl) = find("curl", test) else { return };
    std::fs::create_dir(directory.join("site")).unwrap();
    std::fs::write(directory.join("site/7.txt"), "seven").unwrap();
    let site = Site { server: serve(&directory, &routes), curl, directory };
    for (path, target) in [("/api/a?b", "/v2/a?b"), ("/api/", "/v2/"), ("/old/a/b", "/new/a/b")] {
        for got in site.ask("a", path, &[]) {
            got.has(&format!("x-target: {target}"));
        }
    }
    assert!(site.ask("a", "/page/7", &[]).iter().all(|got| got.body == "seven"));
    assert!(site.ask("a", "/page/x", &[]).iter().all(|got| got.status == 404));
    assert!(site.ask("a", "/old/../x", &[]).iter().all(|got| got.status == 400));
    for got in site.ask("a", "/go/news", &[]) {
        got.has("location: https://news.example/");
    }
    assert!(
        site.ask("a", "/go/7", &[]).iter().all(|got| got.status == 404),
        "the route is not there"
    );
}

#[test]
fn routes_with_conditions_are_tried_in_order_and_passed_over() {
    let routes = "[[route]]\npath = \"/a/\"\nmethod = [\"POST\", \"PUT\"]\nrespond = \"written\"\n\
                  [[route]]\npath = \"/a/\"\nheader = { x-beta = true, accept = \"text/*\" }\nrespond = \"beta\"\n\
                  [[route]]\npath = \"/a/\"\nquery = { version = \"2\" }\nrespond = \"two\"\n\
                  [[route]]\npath = \"/a/\"\naddress = \"192.0.2.0/24\"\nrespond = \"elsewhere\"\n\
                  [[route]]\npath = \"/a/b/\"\naddress = [\"127.0.0.0/8\", \"::1\"]\nrespond = \"here\"\n\
                  [[route]]\npath = \"/c/\"\naddress = \"192.0.2.0/24\"\nrespond = \"elsewhere\"\n\
                  [[route]]\npath = \"/c/\"\naddress = \"127.0.0.0/8\"\nrespond = \"near\"\n\
                  [[route]]\npath = \"/c/\"\nrespond = \"anywhere\"\n\
                  [[route]]\nrespond = \"all\"\n";
    let Some(site) = Site::start("routes_with_conditions", routes) else { return };
    let beta: &[&str] = &["-H", "x-beta: 1", "-H", "accept: text/html"];
    for (path, more, body) in [
        ("/a/x", &["-XPUT"][..], "written"),
        ("/a/x", beta, "beta"),
        ("/a/x", &beta[..2], "all"),
        ("/a/x?version=%32", &[], "two"),
        ("/a/x?version=3", &[], "all"),
        ("/a/b/", &[], "here"),
        ("/c/", &[], "near"),
        ("/x", &[], "all"),
    ] {
        for got in site.ask("a", path, more) {
            assert_eq!((got.status, got.body.as_str()), (200, body), "{path} {more:?}");
        }
    }
}

#[test]
fn error_pages_stand_for_the_servers_own_errors_alone() {
    let test = "error_pages_stand";
    let Some(curl) = find("curl", test) else { return };
    let (directory, behind) = (scratch(test), upstream(test));
    std::fs::write(directory.join("gone.html"), "<p>nothing here").unwrap();
    std::fs::write(directory.join("down.txt"), "down").unwrap();
    let keys = "error-pages = { 404 = \"gone.html\", 502 = \"down.txt\", 413 = \"down.txt\" }\nbody-bytes-max = 3\n";
    let routes = everywhere(&directory, behind.http(), keys)
        + "[[route]]\npath = \"/own\"\nrespond = \"own\"\nstatus = 404\nerror-pages = { 404 = \"gone.html\" }\n";
    let site = Site { server: serve(&directory, &routes), curl, directory };
    for got in site.ask("a", "/files/none", &[]) {
        assert_eq!((got.status, got.body.as_str()), (404, "<p>nothing here"));
        got.has("content-type: text/html; charset=utf-8");
        got.has("content-length: 15");
    }
    assert!(site.ask("a", "/own", &[]).iter().all(|got| got.body == "own"));
    for got in site.ask("a", "/text", &["-d", "four"]) {
        assert_eq!((got.status, got.body.as_str()), (413, "down"));
    }
    behind.terminate();
    assert!(behind.wait().success());
    for got in site.ask("a", "/proxy/", &[]) {
        assert_eq!((got.status, got.body.as_str()), (502, "down"));
        got.has("content-type: text/plain; charset=utf-8");
    }
}

#[test]
fn a_file_turns_the_maintenance_page_on_and_off() {
    let test = "a_file_turns_the_maintenance";
    let Some(curl) = find("curl", test) else { return };
    let directory = scratch(test);
    std::fs::write(directory.join("page.html"), "back soon").unwrap();
    let routes = "[[route]]\nwhile-file = \"maintenance\"\nrespond = { file = \"page.html\" }\nstatus = 503\n\
                  retry-after = \"10min\"\n[[route]]\nhost = \"a\"\npath = \"/deep/\"\nrespond = \"up\"\n";
    let site = Site { server: serve(&directory, routes), curl, directory };
    let until = |body: &str| {
        // A worker looks once a second, and curl takes its time as well.
        for _ in 0..600 {
            let got = site.ask("a", "/deep/x", &[]);
            if got.iter().all(|got| got.body == body) {
                return got;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never {body}");
    };
    until("up");
    std::fs::write(site.directory.join("maintenance"), "").unwrap();
    for got in until("back soon") {
        assert_eq!(got.status, 503);
        got.has("retry-after: 600");
        got.has("content-type: text/html; charset=utf-8");
    }
    std::fs::remove_file(site.directory.join("maintenance")).unwrap();
    until("up");
}

#[test]
fn hsts_is_sent_over_tls_alone_and_the_security_headers_everywhere() {
    let routes = "[[route]]\nrespond = \"a\"\nhsts = { max-age = \"720h\", include-subdomains = true }\n\
                  security-headers = true\nresponse-headers = { set = { x-frame-options = \"DENY\" } }\n";
    let Some(site) = Site::start("hsts_is_sent", routes) else { return };
    for got in site.secure("a", "/") {
        got.has("strict-transport-security: max-age=2592000; includeSubDomains");
    }
    for got in site.ask("a", "/", &[]) {
        got.lacks("strict-transport-security");
        got.has("x-content-type-options: nosniff");
        got.has("referrer-policy: strict-origin-when-cross-origin");
        got.has("x-frame-options: DENY");
    }
}

#[test]
fn scripts_of_allowed_origins_may_read_responses() {
    let test = "scripts_of_allowed_origins";
    let Some(curl) = find("curl", test) else { return };
    let (directory, behind) = (scratch(test), upstream(test));
    let keys = "cors = { origins = [\"https://a.example\"], methods = [\"GET\", \"PUT\"], headers = [\"x-a\"], \
                expose = [\"x-b\"], credentials = true, max-age = \"10min\" }\n";
    let routes = everywhere(&directory, behind.http(), keys);
    let site = Site { server: serve(&directory, &routes), curl, directory };
    let preflight = ["-XOPTIONS", "-H", "access-control-request-method: PUT"];
    for path in ["/files/file.txt", "/proxy/", "/text"] {
        for got in
            site.ask("a", path, &[&preflight[..], &["-H", "origin: https://a.example"]].concat())
        {
            assert_eq!((got.status, got.body.as_str()), (204, ""));
            got.has("access-control-allow-origin: https://a.example");
            got.has("access-control-allow-methods: GET, PUT");
            got.has("access-control-allow-headers: x-a");
            got.has("access-control-max-age: 600");
            got.has("access-control-allow-credentials: true");
        }
        for got in
            site.ask("a", path, &[&preflight[..], &["-H", "origin: https://b.example"]].concat())
        {
            assert_eq!(got.status, 204);
            got.lacks("access-control-allow-origin");
            got.lacks("access-control-allow-methods");
            got.has("vary: origin");
        }
        for got in site.ask("a", path, &["-H", "origin: https://a.example"]) {
            assert_eq!(got.status, 200);
            got.has("access-control-allow-origin: https://a.example");
            got.has("access-control-expose-headers: x-b");
            assert!(got.head.to_lowercase().contains("\nvary: origin"), "{got:?}");
        }
        assert!(
            site.ask("a", path, &[])
                .iter()
                .all(|got| got.head.to_lowercase().contains("vary: origin"))
        );
    }
}

#[test]
fn files_are_included_and_variables_replaced() {
    let test = "files_are_included";
    let directory = scratch(test);
    std::fs::create_dir(directory.join("sites")).unwrap();
    std::fs::write(
        directory.join("sites/b.toml"),
        "[[route]]\npath = \"/b\"\nrespond = \"${BOLIDE_NONE:-b}\"\n",
    )
    .unwrap();
    std::fs::write(
        directory.join("sites/a.toml"),
        "[[route]]\npath = \"/a\"\nrespond = { file = \"a.txt\" }\n",
    )
    .unwrap();
    std::fs::write(directory.join("sites/a.txt"), "below its own file").unwrap();
    std::fs::write(directory.join("sites/.hidden.toml"), "nonsense").unwrap();
    let Some(curl) = find("curl", test) else { return };
    let path = directory.join("bolide.toml");
    let text =
        "include = [\"sites/*.toml\"]\n[[listen]]\nhttp = \"${BOLIDE_ADDRESS:-127.0.0.1:0}\"\n";
    std::fs::write(&path, text).unwrap();
    let server = Server::start(&["--config", &path.display().to_string()]);
    let site = Site { server, curl, directory };
    assert!(site.ask("a", "/a", &[]).iter().all(|got| got.body == "below its own file"));
    assert!(site.ask("a", "/b", &[]).iter().all(|got| got.body == "b"));

    let path = site.directory.join("bolide.toml");
    let given = path.display().to_string();
    let printed = run(program(), ["serve", "--config", &given, "--print-config"]).well().text();
    for line in [
        "http = \"127.0.0.1:0\"",
        "respond = \"b\"",
        "respond = { file = \"a.txt\" }",
        "head-timeout = \"10s\"",
    ] {
        assert!(printed.lines().any(|own| own == line), "{line} is missing: {printed}");
    }
    let again = site.directory.join("sites/printed");
    std::fs::write(&again, &printed).unwrap();
    run(program(), ["serve", "--config", &again.display().to_string(), "--check"]).well();

    let refused = |file: &str, text: &str, said: &str| {
        std::fs::write(site.directory.join(file), text).unwrap();
        let path = path.display().to_string();
        let finished = run(program(), ["serve", "--config", &path, "--check"]);
        let told = finished.both().replace(&site.directory.display().to_string(), "DIR");
        assert_eq!(finished.status.code(), Some(2), "{told}");
        assert!(told.contains(said), "{told}");
    };
    let b = "[[route]]\npath = \"/b\"\nrespnd = \"b\"\n";
    refused(
        "sites/b.toml",
        b,
        "DIR/sites/b.toml:3:1: `respnd` is not known in [[route]]: did you mean `respond`?",
    );
    refused(
        "sites/b.toml",
        "workers = 2\n",
        "DIR/sites/b.toml:1:1: `workers` is not known here: known keys are",
    );
    refused(
        "sites/b.toml",
        "include = \"a.toml\"\n",
        "DIR/sites/b.toml:1:11: an included file can't include others",
    );
    let unset = "[[route]]\npath = \"/b\"\nrespond = \"${BOLIDE_NONE}\"\n";
    refused(
        "sites/b.toml",
        unset,
        "DIR/sites/b.toml:3:11: the environment variable `BOLIDE_NONE` is not set",
    );
    refused(
        "sites/b.toml",
        "[[route]]\npath = \"/a\"\nrespond = \"\"\n",
        "DIR/sites/b.toml:1:1: this route conflicts with the route in line 1 of ",
    );
    refused(
        "bolide.toml",
        "include = [\"none.toml\"]\n",
        "bolide.toml:1:12: `include` is `none.toml`: ",
    );
}

#[test]
fn websockets_pass_through_rewriting_and_edited_fields() {
    let test = "websockets_pass_through";
    let behind = serve(&scratch(&format!("{test}_upstream")), "[[route]]\nbuiltin = true\n");
    let routes = format!(
        "[[route]]\npath = \"/up/\"\nproxy = \"{}\"\nstrip-prefix = \"/up\"\n\
         request-headers = {{ set = {{ x-a = \"1\" }} }}\nresponse-headers = {{ set = {{ x-set = \"{{path}}\" }} }}\n",
        behind.http()
    );
    let server = serve(&scratch(test), &routes);
    let mut stream = TcpStream::connect(Server::authority(server.http())).unwrap();
    let handshake = "GET /up/ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(handshake.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("\r\nx-set: /up/ws\r\n"), "{head}");
    assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
    // A text of two letters, masked by zeros, comes back unmasked.
    stream.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i']).unwrap();
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).unwrap();
    assert_eq!(echo, [0x81, 2, b'h', b'i']);
}
