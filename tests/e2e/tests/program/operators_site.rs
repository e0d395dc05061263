//! The site of docs/operate.md, line by line.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bolide_launcher::{Server, find, finish, program, root, run, scratch, spawn};
use rustix::process::Signal;

/// Its text, as it is on the page.
fn documented() -> String {
    let page = std::fs::read_to_string(root().join("docs/operate.md")).unwrap();
    let block = page.split("```toml\n").nth(1).expect("the page has a site");
    block.split("```").next().unwrap_or_default().to_owned()
}

fn serve(directory: &Path, text: &str) -> Server {
    let path = directory.join("bolide.toml");
    std::fs::write(&path, text).unwrap();
    Server::start(&["--config", &path.display().to_string()])
}

/// A server with these routes, in cleartext.
fn behind(test: &str, routes: &str) -> Server {
    serve(&scratch(test), &format!("[[listen]]\nhttp = \"127.0.0.1:0\"\n{routes}"))
}

/// One response: the status, and head and content together.
#[derive(Debug)]
struct Got(u16, String);

impl Got {
    #[track_caller]
    fn is(&self, status: u16, parts: &[&str]) {
        assert_eq!(self.0, status, "{self:?}");
        for part in parts {
            assert!(self.1.to_lowercase().contains(&part.to_lowercase()), "{part}: {self:?}");
        }
    }

    #[track_caller]
    fn lacks(&self, part: &str) {
        assert!(!self.1.to_lowercase().contains(part), "{part}: {self:?}");
    }
}

struct Site {
    server: Server,
    curl: PathBuf,
    directory: PathBuf,
}

impl Site {
    fn ask(&self, url: &str, host: &str, more: &[&str]) -> Got {
        let host = format!("Host: {host}");
        let own = ["-sSik", "--max-time", "60", "-H", &host, url];
        let text = run(&self.curl, [&own, more].concat()).well().text();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        Got(status.expect("a status"), text)
    }

    fn plain(&self, path: &str) -> Got {
        self.ask(&format!("{}{path}", self.server.http()), "example.org", &[])
    }

    /// Of the listener's address, which no name leads to.
    fn secure_url(&self, path: &str) -> String {
        format!("{}{path}", self.server.https())
    }

    fn secure(&self, path: &str, more: &[&str]) -> Got {
        let (_, port) = self.server.https().rsplit_once(':').expect("a port");
        let to = format!("example.org:{port}:127.0.0.1");
        let more = [&["--resolve", &to], more].concat();
        self.ask(&format!("https://example.org:{port}{path}"), "example.org", &more)
    }
}

/// The servers behind the site: two of the API, one of the others, and what sends WebSocket messages back.
struct BehindIt([Server; 4]);

impl BehindIt {
    fn start(test: &str) -> Self {
        let echo = behind(
            &format!("{test}_echo"),
            "[limits]\nbody-bytes-max = \"50MiB\"\n[[route]]\nbuiltin = true\n",
        );
        let messages = format!("proxy = \"{}\"\n", echo.http());
        let json = format!("[{}]", "{\"name\": \"value\"}, ".repeat(200));
        let api = |name: &str| {
            let routes = format!(
                "[[route]]\npath = \"/json\"\nrespond = '{json}'\ncontent-type = \"application/json\"\n\
                 [[route]]\npath = \"/ws\"\n{messages}\
                 [[route]]\npath = \"/echo\"\n{messages}body-bytes-max = \"50MiB\"\n\
                 [[route]]\npath = \"/admin/ws\"\nstrip-prefix = \"/admin\"\n{messages}\
                 [[route]]\npath = \"/health\"\nwhile-file = \"sick\"\nrespond = \"\"\nstatus = 503\n\
                 [[route]]\npath = \"/health\"\nrespond = \"\"\n\
                 [[route]]\npath = \"/traced\"\nheader = {{ x-request-id = true }}\nrespond = \"traced\"\n\
                 [[route]]\npath = \"/client\"\nheader = {{ x-client = \"192.0.2.9\" }}\nrespond = \"known\"\n\
                 [[route]]\nrespond = \"api\"\n[route.response-headers]\n\
                 set = {{ x-target = \"{{path}}{{query}}\", x-powered-by = \"1\", server = \"{name}\", x-name = \"{name}\" }}\n\
                 [[route]]\npath = \"/admin/key\"\nheader = {{ authorization = true }}\nrespond = \"leaked\"\n"
            );
            behind(&format!("{test}_{name}"), &routes)
        };
        let others = format!(
            "[[route]]\npath = \"/verify\"\nheader = {{ cookie = \"user=bob\" }}\nrespond = \"\"\n\
             response-headers = {{ set = {{ x-user = \"bob\" }} }}\n\
             [[route]]\npath = \"/verify\"\nrespond = \"who are you?\"\nstatus = 401\n\
             [[route]]\npath = \"/wiki/ws\"\nstrip-prefix = \"/wiki\"\n{messages}\
             [[route]]\npath = \"/wiki/\"\nheader = {{ x-user = \"bob\" }}\nrespond = \"the wiki\"\n"
        );
        let others = behind(&format!("{test}_others"), &others);
        Self([api("one"), api("two"), others, echo])
    }
}

/// The site, and the servers behind it.
fn start(test: &str) -> Option<(Site, BehindIt)> {
    let curl = find("curl", test)?;
    let directory = scratch(test);
    let behind_it = BehindIt::start(test);
    let [one, two, others, _] =
        behind_it.0.each_ref().map(|server| Server::authority(server.http()));
    let mut text = documented();
    for (there, here) in [
        ("0.0.0.0:80\"", "127.0.0.1:0\""),
        ("0.0.0.0:443\"", "127.0.0.1:0\""),
        ("10.0.0.0/8", "127.0.0.0/8"),
        ("10.0.0.2:9000", one),
        ("10.0.0.3:9000", two),
        ("10.0.0.4:9000", others),
        ("10.0.0.5:9091", others),
        ("\"letsencrypt\"", "\"https://127.0.0.1:9/directory\""),
        ("/etc/bolide/", ""),
        ("/run/bolide/", ""),
        ("/var/log/bolide/", ""),
        ("/var/lib/bolide/", ""),
    ] {
        assert!(text.contains(there), "the page has changed: {there}");
        text = text.replace(there, here);
    }
    let made = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).unwrap();
    std::fs::create_dir_all(directory.join("site/assets")).unwrap();
    for (name, content) in [
        ("example.org.pem", made.cert.pem()),
        ("example.org.key", made.signing_key.serialize_pem()),
        ("site/index.html", "the app".to_owned()),
        ("site/assets/app.1f.js", "script".to_owned()),
        ("maintenance.html", "later".to_owned()),
        ("404.html", "nothing here".to_owned()),
        ("down.html", "we are down".to_owned()),
    ] {
        std::fs::write(directory.join(name), content).unwrap();
    }
    let server = serve(&directory, &text);
    Some((Site { server, curl, directory }, behind_it))
}

#[test]
fn the_site_of_the_operators_page_is_served() {
    let Some((site, behind)) = start("the_site_of_the_operators_page") else { return };
    site.plain("/api/x?y").is(308, &["location: https://example.org/api/x?y"]);
    for version in ["--http1.1", "--http2"] {
        let app = site.secure("/some/page", &[version]);
        app.is(200, &["the app", "cache-control: no-cache", "x-content-type-options: nosniff"]);
        app.is(200, &["strict-transport-security: max-age=31536000; includeSubDomains"]);
        let asset = site.secure("/assets/app.1f.js", &[version]);
        asset.is(200, &["script", "cache-control: max-age=31536000, immutable"]);
        let api = site.secure("/api/x?y", &[version]);
        api.is(200, &["x-target: /x?y", "set-cookie: at=", "; secure", "ratelimit-policy:"]);
        api.is(200, &["x-request-id:"]);
        api.lacks("x-powered-by");
        api.lacks("\nserver: ");
        site.secure("/api/traced", &[version]).is(200, &["traced"]);
        site.secure("/api/json", &[version, "--compressed"])
            .is(200, &["content-encoding: ", "vary: accept-encoding"]);
    }
    assert!(site.directory.join("acme").is_dir(), "the storage of certificates is there");
    for api in behind.0.into_iter().take(2) {
        api.terminate();
        assert!(api.wait().success());
    }
    site.ask(&site.secure_url("/x"), "other.example", &[]).is(404, &["nothing here"]);
    site.ask(&site.secure_url("/x?y"), "www.example.com", &[])
        .is(301, &["location: https://example.org/x?y"]);
    let down = site.secure("/api/", &[]);
    assert!((502..=503).contains(&down.0) && down.1.ends_with("we are down"), "{down:?}");
}

#[test]
fn the_sites_protected_paths_let_those_through_whom_the_page_names() {
    let Some((site, _behind)) = start("the_sites_protected_paths") else { return };
    let near = ["-H", "X-Forwarded-For: 192.0.2.7"];
    site.secure("/admin/key", &[]).is(403, &[]);
    site.secure("/admin/key", &near).is(401, &["www-authenticate: basic realm=\"admin\""]);
    let alice = [&near[..], &["-u", "alice:correct horse"]].concat();
    let let_in = site.secure("/admin/key", &alice);
    let_in.is(200, &[]);
    let_in.lacks("leaked");
    site.secure("/wiki/page", &[]).is(401, &["who are you?"]);
    site.secure("/wiki/page", &["-H", "Cookie: user=bob"]).is(200, &["the wiki"]);
    site.secure("/wiki/page", &["-H", "X-User: bob"]).is(401, &[]);
    std::fs::write(site.directory.join("maintenance"), "").unwrap();
    // Each worker looks once a second by itself: one may have seen the file when another has not.
    let begun = Instant::now();
    let mut page = site.secure("/", &[]);
    while page.0 != 503 && begun.elapsed() < Duration::from_secs(60) {
        page = site.secure("/", &[]);
    }
    page.is(503, &["later", "retry-after: 600"]);
    let Site { server, directory, .. } = site;
    server.terminate();
    assert!(server.wait().success());
    let log = std::fs::read_to_string(directory.join("access.log")).unwrap();
    assert!(log.contains("192.0.2.7 - alice ["), "{log}");
}

#[test]
fn no_request_is_lost_while_the_site_is_reloaded() {
    let Some((site, _behind)) = start("the_site_is_reloaded") else { return };
    let send = |url: &str, more: &[&str]| {
        let load = ["load", "--quiet", "--no-server-watch", "--insecure", "-c", "4"];
        let fields = ["-H", "Host: example.org", "-H", "X-Forwarded-For: 192.0.2.7", url];
        spawn(program(), [&load[..], more, &fields].concat())
    };
    let load = |path: &str, more: &[&str]| send(&site.secure_url(path), more);
    let messages = site.secure_url("/wiki/ws").replacen("https", "wss", 1);
    let bob = ["-H", "Cookie: user=bob"];
    // The credentials of the page: alice's password is "correct horse".
    let alice = ["-H", "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ=="];
    let many = ["-D", "4s", "-m", "4"];
    let mut loads = [
        load("/some/page", &many),
        load("/assets/app.1f.js", &["-D", "4s", "--http1"]),
        // Above the rate limit, requests are refused, and not lost.
        load("/api/x", &[&many[..], &["--expect-status", "200,429"]].concat()),
        load("/admin/x", &[&many[..], &alice].concat()),
        load("/wiki/page", &[&many[..], &bob].concat()),
        load(
            "/api/json",
            &[&many[..], &["-H", "Accept-Encoding: gzip", "--expect-status", "200,429"]].concat(),
        ),
        load("/api/echo", &[&many[..], &["-d", "a body", "--expect-status", "200,429"]].concat()),
        send(&messages, &[&bob[..], &["-D", "4s", "--http1", "--expect-echo"]].concat()),
        send(&messages, &[&bob[..], &["-D", "4s", "--http2", "--expect-echo"]].concat()),
    ];
    let mut reloads = 0;
    while loads.iter_mut().any(|load| load.try_wait().expect("the child is ours").is_none()) {
        site.server.signal(Signal::HUP);
        site.server.said("bolide: reloaded");
        reloads += 1;
    }
    for load in loads {
        finish(load).well();
    }
    assert!(reloads > 1, "the loads were over after {reloads} reloads");
    site.secure("/", &[]).is(200, &["the app"]);
}

#[test]
fn a_session_stays_with_one_of_the_apis_servers() {
    let Some((site, _behind)) = start("a_session_stays") else { return };
    let of = |cookie: Option<&str>| {
        let cookie = cookie.map(|value| format!("Cookie: {value}"));
        let more = cookie.iter().flat_map(|field| ["-H", field]).collect::<Vec<_>>();
        let got = site.secure("/api/x", &more);
        got.is(200, &["x-name: "]);
        let field = |name: &str| {
            let (_, rest) = got.1.split_once(name)?;
            rest.split([';', '\r']).next().map(str::to_owned)
        };
        (field("x-name: ").expect("a name"), field("set-cookie: "))
    };
    let sessions: Vec<_> = (0..20).map(|_| of(None)).collect();
    for name in ["one", "two"] {
        let (_, cookie) = sessions.iter().find(|(of, _)| of == name).expect("both servers respond");
        let cookie = cookie.as_deref().expect("a new session has a cookie");
        for _ in 0..10 {
            assert_eq!(of(Some(cookie)).0, name);
        }
    }
}

#[test]
fn an_api_server_that_is_not_healthy_is_not_asked() {
    let test = "an_api_server_that_is_not_healthy";
    let Some((site, _behind)) = start(test) else { return };
    let names = || -> Vec<bool> {
        let is_one = |_| site.secure("/api/x", &[]).1.contains("x-name: one");
        (0..10).map(is_one).collect()
    };
    assert!(names().contains(&true), "both are asked");
    std::fs::write(root().join(format!("target/tests/{test}_one/sick")), "").unwrap();
    let begun = Instant::now();
    while names().contains(&true) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is asked still");
    }
}

#[test]
fn the_load_balancers_word_for_the_clients_address_counts() {
    let Some((site, _behind)) = start("the_load_balancers_word") else { return };
    let near = ["-H", "X-Forwarded-For: 192.0.2.9"];
    site.secure("/api/client", &near).is(200, &["known"]);
    // What the client itself sends as that field goes no further.
    let forged = site.secure("/api/client", &["-H", "X-Client: 192.0.2.9"]);
    forged.is(200, &["x-target: /client"]);
    forged.lacks("known");
    site.secure("/some/page", &["--haproxy-protocol"]).is(200, &["the app"]);
    let address = Server::authority(site.server.http());
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = "PROXY TCP4 192.0.2.8 192.0.2.1 4711 80\r\n\
                   GET /x HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 308 "), "{response}");
    let Site { server, directory, .. } = site;
    server.terminate();
    assert!(server.wait().success());
    let path = directory.join("access.log");
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.contains("192.0.2.8 - - ["), "{log}");
    let Some(goaccess) = find("goaccess", "the_load_balancers_word") else { return };
    let report = directory.join("report.json");
    let (log_path, report_path) = (path.display().to_string(), report.display().to_string());
    let format = "--log-format=COMBINED";
    run(&goaccess, [&log_path, format, "-o", &report_path, "--no-progress"]).well();
    let report = std::fs::read_to_string(report).unwrap();
    let counted = format!("\"valid_requests\": {}", log.lines().count());
    assert!(
        report.contains(&counted) && report.contains("\"failed_requests\": 0"),
        "{report:.600}"
    );
}

#[test]
fn the_sites_limits_hold() {
    let Some((site, _behind)) = start("the_sites_limits") else { return };
    let body = site.directory.join("body");
    std::fs::write(&body, vec![b'x'; 2 << 20]).unwrap();
    let post = ["--data-binary".to_owned(), format!("@{}", body.display())];
    let post = [&post[0], &post[1], "-o", "/dev/null", "-D", "-"];
    site.secure("/api/echo", &post).is(200, &["content-length: 2097152"]);
    let announced = ["--http1.1", "-X", "POST", "-H", "Content-Length: 52428801"];
    site.secure("/api/echo", &announced).is(413, &[]);
    let bob = [&post[..], &["--http1.1", "-H", "Cookie: user=bob"]].concat();
    site.secure("/wiki/page", &bob).is(413, &[]);
    let requests = ["load", "--json", "-", "--quiet", "--no-server-watch", "--insecure"];
    let more = ["-n", "1000", "-c", "2", "--expect-status", "200,429", "-H", "Host: example.org"];
    let client = ["-H", "X-Forwarded-For: 198.51.100.7"];
    let url = site.secure_url("/api/x");
    let begun = Instant::now();
    let report = run(program(), [&requests[..], &more, &client, &[&url]].concat()).well().text();
    let count = |status: &str| {
        let (_, rest) = report.split_once(&format!("\"{status}\":")).expect("both statuses");
        let digits = rest.trim_start().split(|byte: char| !byte.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u64>().ok()).expect("a count")
    };
    let most = 100 + (20.0 * begun.elapsed().as_secs_f64()).ceil() as u64;
    assert!((100..=most).contains(&count("200")), "{} of at most {most}", count("200"));
    assert_eq!(count("200") + count("429"), 1000);
    // All on one connection, and so many more than come in the meantime.
    let refused = site.secure("/api/[1-300]", &client).1;
    let (_, refused) = refused.split_once("HTTP/2 429").expect("one of them is refused");
    assert!(
        refused.contains("retry-after: 1") && refused.contains("ratelimit: "),
        "{refused:.600}"
    );
    site.secure("/api/x", &[]).is(200, &["api"]);
}

#[test]
fn websockets_pass_through_the_sites_routes() {
    let Some((site, _behind)) = start("the_sites_websockets") else { return };
    let (_, address) = site.server.https().split_once("://").expect("a scheme");
    let alice = ["-H", "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ=="];
    let bob = ["-H", "Cookie: user=bob"];
    let near = ["-H", "Host: example.org", "-H", "X-Forwarded-For: 192.0.2.7"];
    let base = ["load", "--quiet", "--no-server-watch", "--insecure", "-n", "50", "-c", "2"];
    let load = |url: &str, more: &[&str]| {
        run(program(), [&base[..], more, &near, &[url]].concat()).well();
    };
    for (path, own) in [("/api/ws", &[][..]), ("/admin/ws", &alice), ("/wiki/ws", &bob)] {
        for version in ["--http1", "--http2"] {
            load(&format!("wss://{address}{path}"), &[own, &[version, "--expect-echo"]].concat());
        }
    }
}

#[test]
fn a_name_whose_certificate_the_ca_has_not_issued_fails_alone() {
    let Some((site, _behind)) = start("a_name_without_its_certificate") else { return };
    let (_, port) = site.server.https().rsplit_once(':').expect("a port");
    let (url, to) =
        (format!("https://example.com:{port}/"), format!("example.com:{port}:127.0.0.1"));
    let failed = run(&site.curl, ["-sSk", "--resolve", &to, &url]);
    assert_eq!(failed.status.code(), Some(35), "{}", failed.both());
    site.secure("/", &[]).is(200, &["the app"]);
}
