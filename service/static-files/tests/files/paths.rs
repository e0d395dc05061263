//! Files under their paths, and those that are never found.

use std::os::unix::fs::symlink;
use std::time::Duration;

use bolide_server::HeaderValue;

use crate::client::Site;

const FILES: &[(&str, &str)] = &[
    ("index.html", "<p>home"),
    ("a.txt", "content"),
    ("a b.txt", "space"),
    ("empty", ""),
    ("directory/index.html", "<p>inner"),
    ("bare/x.css", "css"),
    (".env", "secret"),
    (".git/config", "secret"),
    (".well-known/security.txt", "known"),
    ("404.html", "<p>nothing here"),
];

#[test]
fn files_and_index_files() {
    let site = Site::of(FILES);
    let mut client = site.connect();
    for (path, body, media_type) in [
        ("/", "<p>home", "text/html; charset=utf-8"),
        ("/a.txt", "content", "text/plain; charset=utf-8"),
        ("/a.txt?query", "content", "text/plain; charset=utf-8"),
        ("/a%20b.txt", "space", "text/plain; charset=utf-8"),
        ("/%61.txt", "content", "text/plain; charset=utf-8"),
        ("/empty", "", "application/octet-stream"),
        ("/directory/", "<p>inner", "text/html; charset=utf-8"),
        ("/bare/x.css", "css", "text/css; charset=utf-8"),
        ("/.well-known/security.txt", "known", "text/plain; charset=utf-8"),
    ] {
        // From the disk, and then from memory.
        for _ in 0..2 {
            let response = client.ask("GET", path, &[]);
            assert_eq!((response.status, response.text()), (200, body), "{path}");
            assert_eq!(response.field("content-type"), Some(media_type), "{path}");
            assert_eq!(response.field("accept-ranges"), Some("bytes"), "{path}");
            assert!(response.field("etag").unwrap().starts_with('"'), "{path}");
            assert!(response.field("last-modified").unwrap().ends_with(" GMT"), "{path}");
            assert_eq!(response.field("vary"), None, "{path}");
        }
    }
    assert_eq!(client.ask("GET", "/ping", &[]).text(), "pong", "an exact route wins");
}

#[test]
fn head_has_the_fields_of_get() {
    let site = Site::of(FILES);
    let mut client = site.connect();
    for _ in 0..2 {
        let head = client.ask("HEAD", "/a.txt", &[]);
        let get = client.ask("GET", "/a.txt", &[]);
        let lines = |head: &str| -> Vec<String> {
            head.lines().filter(|line| !line.starts_with("date")).map(str::to_owned).collect()
        };
        assert_eq!(lines(&head.head), lines(&get.head));
    }
    let response = client.ask("DELETE", "/a.txt", &[]);
    assert_eq!((response.status, response.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[test]
fn a_directory_without_its_slash_is_redirected() {
    let site = Site::of(FILES);
    for (path, location) in [
        ("/directory", "/directory/"),
        ("/directory?a=b&c", "/directory/?a=b&c"),
        ("/%64irectory", "/directory/"),
    ] {
        let response = site.get(path);
        assert_eq!((response.status, response.field("location")), (301, Some(location)), "{path}");
    }
    let site = Site::with(FILES, |site| site.under("/assets/"));
    assert_eq!(site.get("/assets").field("location"), Some("/assets/"));
    assert_eq!(site.get("/assets/directory").field("location"), Some("/assets/directory/"));
    assert_eq!(site.get("/assets/a.txt").text(), "content");
    assert_eq!(site.get("/assets/").text(), "<p>home");
    assert_eq!(site.get("/a.txt").status, 404);
}

#[test]
fn what_is_hidden_missing_or_in_disguise_is_not_found() {
    let site = Site::of(FILES);
    std::fs::write(site.root().join("..").join("outside"), "secret").ok();
    symlink("/etc", site.path("etc")).unwrap();
    symlink("../../../../../../etc/hostname", site.path("up")).unwrap();
    symlink(site.path("a.txt"), site.path("link.txt")).unwrap();
    rustix_fifo(&site.path("pipe"));
    let long = format!("/{}", "n".repeat(300));
    for path in [
        "/missing",
        "/a.txt/",
        "/a.txt/b",
        "/.env",
        "/.git/config",
        "/%2eenv",
        "/directory/../a.txt",
        "/../outside",
        "/..%2foutside",
        "/%2e%2e/outside",
        "/%2e%2e%2foutside",
        "/..%5coutside",
        "/directory/..%2f..%2foutside",
        "//a.txt",
        "//etc/passwd",
        "/directory//index.html",
        "/./a.txt",
        "/a.txt%00",
        "/%00",
        "/a%2",
        "/%zz",
        "/%ff",
        "/%c0%ae%c0%ae/",
        "/etc/passwd",
        "/etc/",
        "/up",
        "/pipe",
        "/bare/",
        "/.well-known/.x",
        &long,
    ] {
        let response = site.get(path);
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert_eq!(response.text(), "404 Not Found\n", "{path}");
    }
    assert_eq!(site.get("/link.txt").text(), "content");
}

fn rustix_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

#[test]
fn a_page_of_ones_own_for_what_is_not_found() {
    let site = Site::with(FILES, |site| site.not_found("/404.html"));
    for path in ["/missing", "/.env", "/%2e%2e/x", "/bare/"] {
        let response = site.get(path);
        assert_eq!((response.status, response.text()), (404, "<p>nothing here"), "{path}");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(response.field("etag"), None);
    }
    let response = site.get_with("/missing", &["if-none-match: *"]);
    assert_eq!(response.status, 404, "conditions are about what is there");
}

#[test]
fn an_application_that_reads_the_path_itself_has_its_page_for_every_path_without_a_file() {
    let site = Site::with(FILES, |site| {
        site.fallback("index.html")
            .fresh(Duration::ZERO)
            .cache_control("/index.html", HeaderValue::from_static("no-cache"))
    });
    for path in ["/users/7", "/users/7?tab=1", "/bare/", "/a.txt/x"] {
        let response = site.get(path);
        assert_eq!((response.status, response.text()), (200, "<p>home"), "{path}");
        assert_eq!(response.field("cache-control"), Some("no-cache"));
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
        // It is a file: it has a version, which the next request can ask about.
        let tag = format!("if-none-match: {}", response.field("etag").unwrap());
        assert_eq!(site.get_with(path, &[&tag]).status, 304);
    }
    assert_eq!(site.get("/a.txt").text(), "content");
    for path in ["/.env", "/.git/config", "/%2e%2e/x"] {
        let response = site.get(path);
        assert_eq!((response.status, response.text()), (404, "404 Not Found\n"), "{path}");
    }
    assert_eq!(site.connect().ask("POST", "/users", &[]).status, 405);
    std::fs::write(site.path("index.html"), "<p>the next version").unwrap();
    assert_eq!(site.get("/users/7").text(), "<p>the next version");
    std::fs::remove_file(site.path("index.html")).unwrap();
    assert_eq!(site.get("/users/7").status, 404);
}

#[test]
fn hidden_files_and_listings_only_when_asked_for() {
    let site = Site::with(FILES, |site| site.hidden(true).listing(true).index([""; 0]));
    assert_eq!(site.get("/.env").text(), "secret");
    let listing = site.get("/");
    assert_eq!(listing.field("content-type"), Some("text/html; charset=utf-8"));
    for link in ["./.env", "./a%20b.txt", "./directory/"] {
        assert!(listing.text().contains(&format!("href=\"{link}\"")), "{}", listing.text());
    }
    assert!(site.get("/bare/").text().contains("x.css"));
    assert_eq!(site.get("/missing/").status, 404);
    let site = Site::with(FILES, |site| site.listing(true));
    assert_eq!(site.get("/").text(), "<p>home", "an index file wins");
    assert!(site.get("/bare/").text().contains("./x.css"));
}

#[test]
fn cache_control_goes_by_pattern() {
    let value = HeaderValue::from_static;
    let site = Site::with(FILES, |site| {
        site.cache_control("*.css", value("max-age=31536000, immutable"))
            .cache_control("*.html", value("no-cache"))
    });
    let field = |path: &str| site.get(path).field("cache-control").map(str::to_owned);
    assert_eq!(field("/bare/x.css").as_deref(), Some("max-age=31536000, immutable"));
    assert_eq!(field("/").as_deref(), Some("no-cache"), "it is the index file's");
    assert_eq!(field("/a.txt"), None);
    let tag = site.get("/bare/x.css").field("etag").unwrap().to_owned();
    let response = site.get_with("/bare/x.css", &[&format!("if-none-match: {tag}")]);
    assert_eq!(response.status, 304);
    assert_eq!(response.field("cache-control"), Some("max-age=31536000, immutable"));
}

#[test]
fn a_root_swapped_while_serving_leads_nowhere() {
    let site = Site::with(&[("site/a.txt", "content")], |site| site);
    let root = site.path("site");
    let files = bolide_static_files::StaticFiles::new(&root).unwrap();
    let served = Site::serving(tempfile::tempdir().unwrap(), files.cache(0, 0));
    assert_eq!(served.get("/a.txt").text(), "content");
    std::fs::rename(&root, site.path("moved")).unwrap();
    symlink("/etc", &root).unwrap();
    assert_eq!(served.get("/passwd").status, 404);
    assert_eq!(served.get("/hostname").status, 404);
    assert_eq!(served.get("/a.txt").text(), "content");
}
