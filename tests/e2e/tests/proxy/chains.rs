//! Proxies before proxies: our own, and nginx.

use bolide::client::{Client, Trust, Versions};
use bolide_e2e::{SIZES, assert_same, random, random_file};
use bolide_launcher::{Server, find, run, scratch};

use crate::behind::{nginx_before, nginx_of_each_version};
use crate::pairs::{exercise, proxy};

#[test]
fn a_chain_of_our_own_passes_everything() {
    let Some(curl) = find("curl", "a_chain_of_our_own") else { return };
    let origin = Server::start_both();
    for (middle, last) in [("https", "http"), ("h2c", "https")] {
        let url = |server: &Server, scheme: &str| {
            let url = if scheme == "https" { server.https() } else { server.http() };
            format!("{scheme}://{}", Server::authority(url))
        };
        let second = proxy(&[&url(&origin, last)], &["--proxy-insecure"]);
        let first = proxy(&[&url(&second, middle)], &["--proxy-insecure"]);
        exercise(&curl, &first, "/echo", SIZES, &format!("chain-{middle}-{last}"));
    }
}

#[test]
fn nginx_stands_before_and_behind() {
    let Some(nginx) = find("nginx", "nginx_stands_before_and_behind") else { return };
    let Some(curl) = find("curl", "nginx_stands_before_and_behind") else { return };
    let origin = Server::start_both();
    let last = nginx_before(origin.http(), &nginx, &scratch("nginx-behind"));
    let server = proxy(&[&last.url()], &[]);
    // With more, nginx and a server that echoes as it reads wait for each other.
    let sizes = &SIZES[..SIZES.len() - 1];
    exercise(&curl, &server, "/echo", sizes, "nginx-behind");
    let first = nginx_before(server.http(), &nginx, &scratch("nginx-before"));
    let text = run(&curl, ["-sSf", &format!("{}/ping", first.url())]).well().text();
    assert_eq!(text, "pong");
}

#[test]
fn nginx_behind_is_asked_in_each_version() {
    let test = "nginx_behind_is_asked";
    let Some(nginx) = find("nginx", test) else { return };
    let Some(curl) = find("curl", test) else { return };
    let origin = Server::start_both();
    let (_nginx, urls) = nginx_of_each_version(origin.http(), &nginx, &scratch(test));
    // With more, nginx and a server that echoes as it reads wait for each other.
    let sizes = &SIZES[..SIZES.len() - 1];
    for (number, url) in urls.iter().enumerate() {
        let server = proxy(&[url], &["--proxy-insecure"]);
        exercise(&curl, &server, "/echo", sizes, &format!("{test}-{number}"));
    }
}

#[test]
fn bodies_pass_from_nginx_by_us_to_nginx_both_ways() {
    let test = "bodies_pass_from_nginx_by_us_to_nginx";
    let Some(nginx) = find("nginx", test) else { return };
    let Some(curl) = find("curl", test) else { return };
    let directory = scratch(test);
    let files: Vec<_> = SIZES.iter().map(|size| random_file(&directory, *size)).collect();
    let root = directory.display().to_string();
    let both = ["--http", "127.0.0.1:0", "--root", &root, "--builtin"];
    let origin = Server::start(&both);
    let last = nginx_before(origin.http(), &nginx, &scratch(&format!("{test}-last")));
    let server = proxy(&[&last.url()], &[]);
    let first = nginx_before(server.http(), &nginx, &scratch(&format!("{test}-first")));
    let options = ["-sS", "--fail-with-body", "--max-time", "60"];
    for (file, size) in files.iter().zip(SIZES) {
        let sent = std::fs::read(file).expect("it was written");
        let name = file.file_name().expect("a name").display();
        let url = format!("{}/{name}", first.url());
        let response = run(&curl, options.iter().chain(&[url.as_str()])).well();
        assert_same(&response.stdout, &sent, &format!("down, {size}"));
        // With more, nginx and a server that echoes as it reads wait for each other.
        if *size > 1024 * 1024 {
            continue;
        }
        for coding in ["Content-Type: a/b", "Transfer-Encoding: chunked"] {
            let (data, url) = (format!("@{}", file.display()), format!("{}/echo", first.url()));
            let post = ["-H", coding, "--data-binary", &data, &url];
            let response = run(&curl, options.iter().chain(&post)).well();
            assert_same(&response.stdout, &sent, &format!("both ways, {size}, {coding}"));
        }
    }
}

#[test]
fn upstreams_take_turns_beside_built_in_routes() {
    let Some(curl) = find("curl", "upstreams_take_turns") else { return };
    let origins = [Server::start_both(), Server::start_both()];
    let urls: Vec<_> = origins.iter().map(|origin| origin.http()).collect();
    let server = proxy(&urls, &["--builtin", "--workers", "1"]);
    let status = ["-sSo", "/dev/null", "-w", "%{http_code}"];
    for (path, expected) in [("/ping", "200"), ("/no-such", "404")] {
        let url = format!("{}{path}", server.http());
        let text = run(&curl, status.iter().chain(&[url.as_str()])).well().text();
        assert_eq!(text, expected, "{path}");
    }
    drop(origins);
    let gone = format!("{}/elsewhere", server.http());
    let text = run(&curl, ["-sSi", &gone]).well().text();
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    assert!(text.contains("proxy-status: bolide; error=connection_refused"), "{text}");
}

#[test]
fn an_upload_that_an_upstream_refuses_gets_its_status() {
    let directory = scratch("an_upload_that_an_upstream_refuses");
    let root = directory.display().to_string();
    let origin =
        Server::start(&["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--root", &root]);
    let body = random(16 << 20, 11);
    for (scheme, url) in [
        ("http", origin.http()),
        ("h2c", origin.http()),
        ("https", origin.https()),
        ("h3", origin.https()),
    ] {
        let upstream = format!("{scheme}://{}", Server::authority(url));
        let server = proxy(&[&upstream], &["--proxy-insecure"]);
        for versions in [Versions::Http1, Versions::Http2, Versions::Http3] {
            let client = Client::builder().versions(versions).trust(Trust::Any);
            let client = client.build().expect("a client");
            let response = client.put(server.https()).body(body.clone()).send();
            let response = response.unwrap_or_else(|error| panic!("{versions:?}: {error}"));
            assert_eq!(response.status(), 405, "{versions:?} by {upstream}");
            drop(response);
            let again = client.get(server.https()).send();
            assert_eq!(again.expect("the client goes on").status(), 404, "{versions:?}");
        }
    }
}
