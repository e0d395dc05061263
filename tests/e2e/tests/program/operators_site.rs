//! The site of docs/operate.md, line by line.

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

fn serve(folder: &Path, text: &str) -> Server {
    let path = folder.join("bolide.toml");
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
    folder: PathBuf,
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

    fn secure(&self, path: &str, more: &[&str]) -> Got {
        let (_, port) = self.server.https().rsplit_once(':').expect("a port");
        let to = format!("example.org:{port}:127.0.0.1");
        let more = [&["--resolve", &to], more].concat();
        self.ask(&format!("https://example.org:{port}{path}"), "example.org", &more)
    }
}

/// The site, and the servers behind it: of the API, and of the others.
fn start(test: &str) -> Option<(Site, [Server; 2])> {
    let curl = find("curl", test)?;
    let folder = scratch(test);
    let json = format!("[{}]", "{\"name\": \"value\"}, ".repeat(200));
    let api = format!(
        "[[route]]\npath = \"/json\"\nrespond = '{json}'\ncontent-type = \"application/json\"\n\
         [[route]]\npath = \"/ws\"\nrespond = \"no WebSocket\"\n[[route]]\nrespond = \"api\"\n\
         response-headers = {{ set = {{ x-target = \"{{path}}{{query}}\", x-powered-by = \"1\" }} }}\n\
         [[route]]\npath = \"/admin/key\"\nheader = {{ authorization = true }}\nrespond = \"leaked\"\n"
    );
    let others = "[[route]]\npath = \"/verify\"\nheader = { cookie = \"user=bob\" }\nrespond = \"\"\n\
                  response-headers = { set = { x-user = \"bob\" } }\n\
                  [[route]]\npath = \"/verify\"\nrespond = \"who are you?\"\nstatus = 401\n\
                  [[route]]\npath = \"/wiki/\"\nheader = { x-user = \"bob\" }\nrespond = \"the wiki\"\n";
    let api = behind(&format!("{test}_api"), &api);
    let others = behind(&format!("{test}_others"), others);
    let (own, near) = (Server::authority(api.http()), Server::authority(others.http()));
    let mut text = documented();
    for (there, here) in [
        ("0.0.0.0:80\"", "127.0.0.1:0\""),
        ("0.0.0.0:443\"", "127.0.0.1:0\""),
        ("10.0.0.0/8", "127.0.0.0/8"),
        ("10.0.0.2:9000", own),
        ("10.0.0.3:9000", own),
        ("10.0.0.4:9000", near),
        ("10.0.0.5:9091", near),
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
    std::fs::create_dir_all(folder.join("site/assets")).unwrap();
    for (name, content) in [
        ("example.org.pem", made.cert.pem()),
        ("example.org.key", made.signing_key.serialize_pem()),
        ("site/index.html", "the app".to_owned()),
        ("site/assets/app.1f.js", "script".to_owned()),
        ("maintenance.html", "later".to_owned()),
        ("404.html", "nothing here".to_owned()),
        ("down.html", "we are down".to_owned()),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
    }
    let server = serve(&folder, &text);
    Some((Site { server, curl, folder }, [api, others]))
}

#[test]
fn the_site_of_the_operators_page_is_served() {
    let Some((site, [api, _others])) = start("the_site_of_the_operators_page") else { return };
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
        site.secure("/api/json", &[version, "--compressed"])
            .is(200, &["content-encoding: ", "vary: accept-encoding"]);
    }
    api.terminate();
    assert!(api.wait().success());
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
    std::fs::write(site.folder.join("maintenance"), "").unwrap();
    // Each worker looks once a second by itself: one may have seen the file when another has not.
    let begun = Instant::now();
    let mut page = site.secure("/", &[]);
    while page.0 != 503 && begun.elapsed() < Duration::from_secs(60) {
        page = site.secure("/", &[]);
    }
    page.is(503, &["later", "retry-after: 600"]);
    let Site { server, folder, .. } = site;
    server.terminate();
    assert!(server.wait().success());
    let log = std::fs::read_to_string(folder.join("access.log")).unwrap();
    assert!(log.contains("192.0.2.7 - alice ["), "{log}");
}

#[test]
fn no_request_is_lost_while_the_site_is_reloaded() {
    let Some((site, _behind)) = start("the_site_is_reloaded") else { return };
    // The fallback, an asset, and what forward authentication lets through to an upstream.
    let load = |path: &str| {
        let url = format!("{}{path}", site.server.https());
        let load = ["load", "--quiet", "--no-server-watch", "--insecure", "-c", "4", "-m", "4"];
        let more = ["-n", "20000", "-H", "Host: example.org", "-H", "Cookie: user=bob", &url];
        spawn(program(), load.iter().chain(&more))
    };
    let mut loads = ["/some/page", "/assets/app.1f.js", "/wiki/page"].map(load);
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
fn a_name_whose_certificate_the_ca_has_not_issued_fails_alone() {
    let Some((site, _behind)) = start("a_name_without_its_certificate") else { return };
    let (_, port) = site.server.https().rsplit_once(':').expect("a port");
    let (url, to) =
        (format!("https://example.com:{port}/"), format!("example.com:{port}:127.0.0.1"));
    let failed = run(&site.curl, ["-sSk", "--resolve", &to, &url]);
    assert_eq!(failed.status.code(), Some(35), "{}", failed.both());
    site.secure("/", &[]).is(200, &["the app"]);
}
