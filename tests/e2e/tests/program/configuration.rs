//! `bolide serve --config FILE`: what is in force, what is refused, and what the documentation shows.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use bolide_launcher::{Server, find, program, root, run, scratch};

/// A configuration file in a directory of its own.
fn file(test: &str, text: &str) -> PathBuf {
    let path = scratch(test).join("bolide.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn start(path: &Path, flags: &[&str]) -> Server {
    let path = path.display().to_string();
    Server::start(&[&["--config", &path], flags].concat())
}

/// The status, the head and the body of one response.
fn ask(server: &Server, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(Server::authority(server.http())).unwrap();
    write!(stream, "{request}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
}

fn get(server: &Server, host: &str, path: &str) -> (u16, String, String) {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: {host}"))
}

const HOSTS: &str = r#"
[[listen]]
http = "127.0.0.1:0"

[[route]]
respond = "anybody"

[[route]]
path = "/status"
respond = "tea"
status = 418
content-type = "text/x-tea"

[[route]]
host = "example.org"
respond = "example"

[[route]]
host = "*.example.org"
path = "/deep/"
respond = "deep"

[[route]]
path = "/old/"
redirect = "https://example.org/new/"

[[route]]
host = "files.org"
root = "site"

[[route]]
host = "files.org"
builtin = true
"#;

#[test]
fn routes_are_taken_by_host_and_path() {
    let path = file("routes_are_taken_by_host_and_path", HOSTS);
    let site = path.with_file_name("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "home").unwrap();
    let server = start(&path, &[]);
    for (host, path, body) in [
        ("a", "/", "anybody"),
        ("a", "/x/y", "anybody"),
        ("EXAMPLE.org:8080", "/", "example"),
        ("www.example.org", "/", "anybody"),
        ("www.example.org", "/deep/er", "deep"),
        ("example.org", "/deep/er", "example"),
        ("files.org", "/", "home"),
        ("files.org", "/ping", "pong"),
        ("a", "/ping", "anybody"),
    ] {
        assert_eq!(get(&server, host, path).2, body, "{host}{path}");
    }
    assert_eq!(get(&server, "files.org", "/none").0, 404);
    let (status, head, body) = get(&server, "a", "/status");
    assert_eq!((status, body.as_str()), (418, "tea"));
    assert!(head.contains("content-type: text/x-tea"), "{head}");
    for (path, target) in [
        ("/old/a/b?c=d", "https://example.org/new/a/b?c=d"),
        ("/old//evil.org", "https://example.org/new/evil.org"),
    ] {
        let (status, head, _) = get(&server, "a", path);
        assert_eq!(status, 308);
        assert!(head.contains(&format!("location: {target}\r\n")), "{head}");
    }
    assert_eq!(ask(&server, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0").2, "anybody");
}

#[test]
fn flags_win_over_the_file() {
    let path = file("flags_win_over_the_file", HOSTS);
    std::fs::create_dir(path.with_file_name("site")).unwrap();
    std::fs::write(path.with_file_name("ping"), "a file").unwrap();
    let directory = path.parent().unwrap().display().to_string();
    let server =
        start(&path, &["--root", &directory, "--http", "127.0.0.1:0", "--http", "[::1]:0"]);
    assert_eq!(server.urls().len(), 2, "{:?}", server.urls());
    assert_eq!(get(&server, "example.org", "/ping").2, "pong");
    assert_eq!(get(&server, "example.org", "/").0, 404);
}

#[test]
fn files_come_first_and_what_has_none_is_asked_upstream() {
    let directory = scratch("files_come_first");
    std::fs::write(directory.join("file"), "a file").unwrap();
    let root = directory.display().to_string();
    let behind = Server::start(&["--http", "127.0.0.1:0"]);
    let any = ["--http", "127.0.0.1:0", "--root", &root, "--proxy", behind.http()];
    let server = Server::start(&any);
    for _ in 0..3 {
        assert_eq!(get(&server, "a", "/file").2, "a file");
        assert_eq!(get(&server, "a", "/ping").2, "pong");
        assert_eq!(get(&server, "a", "/echo?size=3").2, "xxx");
        assert_eq!(get(&server, "a", "/none").0, 404);
    }
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0";
    assert_eq!(ask(&server, post).0, 200, "no file takes a POST");
    behind.terminate();
    assert!(behind.wait().success());
    assert_eq!(get(&server, "a", "/file").2, "a file");
    assert_eq!(get(&server, "a", "/ping").0, 502, "it came from upstream");
}

/// Runs `serve --check` on a text.
#[track_caller]
fn check(test: &str, text: &str) -> (Option<i32>, String) {
    let path = file(test, text).display().to_string();
    let finished = run(program(), ["serve", "--config", &path, "--check"]);
    let said = finished.both().replace(&path, "FILE");
    assert!(!said.contains("panicked"), "{said}");
    (finished.status.code(), said.trim().to_owned())
}

#[test]
fn a_check_says_that_all_is_fine() {
    let text = "[[listen]]\nhttp = \"127.0.0.1:1\"\n[[route]]\nproxy = \"http://127.0.0.1:2\"\n";
    let (code, said) = check("a_check_says_that_all_is_fine", text);
    assert_eq!((code, said.as_str()), (Some(0), "valid: 1 listener, 1 route, 1 upstream"));
}

#[test]
fn each_kind_of_mistake_has_its_sentence() {
    let test = "each_kind_of_mistake_has_its_sentence";
    for (text, sentence) in [
        ("workers = \n", "FILE:1:11: invalid TOML: "),
        ("wrokers = 1\n", "FILE:1:1: `wrokers` is not known here: did you mean `workers`?"),
        ("workers = true\n", "FILE:1:11: `workers` is true or false: give a number"),
        (
            "[limits.http1]\nhead-byte = 1\n",
            "FILE:2:1: `head-byte` is not known in [limits.http1]: did you mean `head-bytes`?",
        ),
        ("[[listen]]\nhttp = \"x\"\n", "FILE:2:8: can't listen on `x`: give an IP address"),
        (
            "[[listen]]\nhttps = \"127.0.0.1:1\"\ncert = \"none.pem\"\nkey = \"none.key\"\n",
            "FILE:1:1: cert ",
        ),
        ("[[route]]\nroot = \"none\"\n", "FILE:2:8: root `"),
        ("[[route]]\nroot = \"bolide.toml\"\n", "is a file, not a directory: name the directory"),
        (
            "[[route]]\npath = \"/a\"\nrespond = \"\"\n[[route]]\npath = \"/a\"\nrespond = \"\"\n",
            "FILE:4:1: this route conflicts with the route in line 1: both match `/a`",
        ),
        ("[[route]]\npath = \"/a?\"\nrespond = \"\"\n", "FILE:2:8: path `/a?` can never match"),
        ("[[route]]\nproxy = \"ftp://a\"\n", "FILE:2:9: `ftp://a` is not an upstream: its scheme"),
        ("[[route]]\nproxy = \"nobody\"\n", "FILE:2:9: there is no upstream `nobody`"),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"http://127.0.0.1:1\"]\n",
            "FILE:1:1: upstream `a` is used by no route",
        ),
        (
            "[[upstream]]\nname = \"a\"\nservers = [\"h3://127.0.0.1:1\"]\nproxy-protocol = \"v1\"\n",
            "FILE:4:18: upstream `h3://127.0.0.1:1` speaks HTTP/3, which has no PROXY header",
        ),
    ] {
        let (code, said) = check(test, text);
        assert_eq!(code, Some(2), "{text}: {said}");
        assert!(said.contains(sentence), "{text}\n  said: {said}\n  want: {sentence}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let none = run(program(), ["serve", "--config", "/none.toml", "--check"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(none.both().contains("--config /none.toml: can't be read"), "{}", none.both());
}

#[test]
fn the_printed_defaults_are_a_configuration() {
    let printed = run(program(), ["serve", "--print-config"]).well().text();
    for words in
        ["# How long a request's head may take", "head-timeout = \"10s\"", "[limits.http2]"]
    {
        assert!(printed.contains(words), "{words} is missing: {printed}");
    }
    let (code, said) = check("the_printed_defaults_are_a_configuration", &printed);
    assert_eq!((code, said.as_str()), (Some(0), "valid: 2 listeners, 1 route, 0 upstreams"));
}

/// The examples of a page in a language.
fn examples(page: &str, language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The examples in docs/configuration.md, in TOML.
fn documented() -> Vec<String> {
    examples("docs/configuration.md", "toml")
}

/// A file with one of these examples, in a directory with all that they name.
fn example(test: &str, text: &str) -> String {
    let path = file(test, text);
    let directory = path.parent().unwrap();
    std::fs::create_dir_all(directory.join("site/assets")).unwrap();
    for (name, content) in
        [("index.html", "the site"), ("assets/a.css", "a style"), ("assets/404.html", "no style")]
    {
        std::fs::write(directory.join("site").join(name), content).unwrap();
    }
    for name in ["maintenance.html", "404.html"] {
        std::fs::write(directory.join(name), "a page").unwrap();
    }
    std::fs::create_dir_all(directory.join("sites")).unwrap();
    for name in ["example.org", "example.com"] {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(directory.join(format!("{name}.pem")), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(directory.join(format!("{name}.key")), key).unwrap();
        std::fs::write(directory.join("clients.pem"), made.cert.pem()).unwrap();
    }
    path.display().to_string()
}

#[test]
fn the_documented_examples_are_fine() {
    let examples = documented();
    assert!(examples.len() >= 2, "the page has lost its examples");
    for text in examples {
        let path = example("the_documented_examples_are_fine", &text);
        let finished = run(program(), ["serve", "--config", &path, "--check"]).well();
        assert!(finished.text().starts_with("valid: "), "{text}\n{}", finished.both());
    }
}

/// Checks that nginx and Caddy take the first example of theirs on a page, with what `replaced` says of each.
fn others_take(test: &str, page: &str, directory: &Path, replaced: &[(&str, &str)]) {
    let named = |name: &str| directory.join(name).display().to_string();
    let [nginx, caddy] = ["nginx", "caddyfile"].map(|language| {
        let text = examples(page, language).swap_remove(0);
        replaced.iter().fold(text, |text, (from, to)| text.replace(from, to))
    });
    let log = format!("error_log {}; pid {};", named("error.log"), named("nginx.pid"));
    let nginx = format!("{log}\nevents {{}}\nhttp {{\n{nginx}}}\n");
    std::fs::write(named("nginx.conf"), nginx).unwrap();
    std::fs::write(named("Caddyfile"), caddy).unwrap();
    if let Some(nginx) = find("nginx", test) {
        run(&nginx, ["-t", "-p", &directory.display().to_string(), "-c", "nginx.conf"]).well();
    }
    if let Some(caddy) = find("caddy", test) {
        let checked = std::process::Command::new(&caddy)
            .args(["validate", "--adapter", "caddyfile", "--config", "Caddyfile"])
            .current_dir(directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{said}");
    }
}

#[test]
fn the_site_for_three_servers_is_valid_for_each() {
    let test = "the_site_for_three_servers_is_valid_for_each";
    let page = "docs/from-nginx-and-caddy.md";
    let path = example(test, &examples(page, "toml")[0]);
    run(program(), ["serve", "--config", &path, "--check"]).well();
    others_take(test, page, Path::new(&path).parent().unwrap(), &[]);
}

#[test]
fn the_operators_site_for_nginx_and_caddy_is_valid_for_each() {
    let test = "the_operators_site_for_nginx_and_caddy";
    let path = example(test, "");
    let directory = Path::new(&path).parent().unwrap();
    let log = directory.join("access.log").display().to_string();
    let replaced = [
        ("listen 80 ", "listen 127.0.0.1:8080 "),
        ("listen 443 ", "listen 127.0.0.1:8443 "),
        ("/var/log/nginx/access.log", &log),
        ("/var/log/caddy/access.log", &log),
        ("/etc/nginx/example", "example"),
        ("/etc/caddy/", ""),
    ];
    others_take(test, "docs/operate.md", directory, &replaced);
}

#[test]
fn the_full_example_is_served() {
    let test = "the_full_example_is_served";
    let behind = "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nrespond = \"behind\"\n";
    let behind = file("the_full_example_has_an_upstream", behind).display().to_string();
    let behind = Server::start(&["--config", &behind]);
    let upstream = Server::authority(behind.http());
    let mut text = documented().remove(0);
    for (port, to) in [
        ("127.0.0.1:8080", "127.0.0.1:0"),
        ("127.0.0.1:8443", "127.0.0.1:0"),
        ("127.0.0.1:9000", upstream),
        ("127.0.0.1:9001", upstream),
    ] {
        assert!(text.contains(port), "the example has changed: {port}");
        text = text.replace(port, to);
    }
    let path = example(test, &text);
    let server = Server::start(&["--config", &path]);
    for (host, path, status, body) in [
        ("anybody", "/health", 200, "fine"),
        ("example.org", "/assets/a.css", 200, "a style"),
        ("example.org", "/assets/none", 404, "no style"),
        ("a.example.org", "/", 200, "the site"),
        ("a.example.org", "/none", 200, "behind"),
        ("anybody", "/api/a", 200, "behind"),
        ("measure.example.org", "/ping", 200, "pong"),
    ] {
        let response = get(&server, host, path);
        assert_eq!(
            (response.0, response.2.as_str()),
            (status, body),
            "{host}{path}: {}",
            response.1
        );
    }
    let style = get(&server, "example.org", "/assets/a.css").1;
    assert!(style.contains("cache-control: max-age=60"), "{style}");
    let moved = get(&server, "www.example.com", "/a");
    assert!(moved.0 == 301 && moved.1.contains("location: https://example.com/"), "{}", moved.1);
    assert_eq!(get(&server, "anybody", "/ping").0, 404);
    let Some(curl) = find("curl", test) else { return };
    let (_, port) = server.https().rsplit_once(':').expect("a port");
    for (name, path_there, body) in
        [("example.org", "/assets/a.css", "a style"), ("example.com", "/health", "fine")]
    {
        let to = format!("{name}:{port}:127.0.0.1");
        let ca = path.replace("bolide.toml", &format!("{name}.pem"));
        let url = format!("https://{name}:{port}{path_there}");
        let said = run(&curl, ["-sS", "--cacert", &ca, "--resolve", &to, &url]).well().text();
        assert_eq!(said, body, "each name has its certificate");
    }
}
