//! curl: every version, both ways, and many at once. Over HTTP/3 it is one that has QUIC by OpenSSL.

use std::path::Path;

use bolide_e2e::{SIZES, assert_same, debian_13, random_file};
use bolide_launcher::{Server, find, run, scratch};

/// The ways in which curl can ask: its option, whether over TLS, and the version that it reports.
const WAYS: &[(&str, bool, &str)] = &[
    ("--http1.0", false, "1.0"),
    ("--http1.1", false, "1.1"),
    ("--http2-prior-knowledge", false, "2"),
    // Asks to upgrade to h2c, which a server may ignore.
    ("--http2", false, "1.1"),
    ("--http1.1", true, "1.1"),
    ("--http2", true, "2"),
    (HTTP3, true, "3"),
];

const HTTP3: &str = "--http3-only";

/// A ClientHello of one datagram: curl 8.14 with OpenSSL 3.5 never sends its SETTINGS and its encoder's instructions where
/// the second one was lost or late, as it is with Caddy.
const ONE_DATAGRAM: [&str; 2] = ["--curves", "X25519"];

fn each_way(test: &str, check: impl Fn(&Path, &[&str], &str, &str)) {
    let Some(curl) = find("curl", test) else { return };
    let newer = debian_13("curl", test);
    let server = Server::start_both();
    for (option, tls, version) in WAYS {
        let url = if *tls { server.https() } else { server.http() };
        let options = ["--silent", "--show-error", "--insecure", "--max-time", "60", option];
        match &newer {
            _ if *option != HTTP3 => check(&curl, &options, url, version),
            Some(run) => {
                let options = [&["curl"], &options[..], &ONE_DATAGRAM].concat();
                check(run, &options, url, version);
            }
            None => {}
        }
    }
}

#[test]
fn curl_gets() {
    each_way("curl_gets", |curl, options, url, version| {
        let format = ["--write-out", " %{http_version} %{http_code} %{content_type}"];
        let ping = format!("{url}/ping");
        let response = run(curl, options.iter().chain(&format).chain(&[ping.as_str()])).well();
        // A server answers HTTP/1.0 with its own minor version (RFC 9110 §6.2).
        let version = if version == "1.0" { "1.1" } else { version };
        let wanted = format!("pong {version} 200 text/plain");
        assert!(response.text().starts_with(&wanted), "{options:?}: {}", response.text());
        for size in SIZES {
            let echo = format!("{url}/echo?size={size}");
            let response = run(curl, options.iter().chain(&[echo.as_str()])).well();
            assert_same(&response.stdout, &vec![b'x'; *size], &format!("{options:?} {size}"));
        }
    });
}

#[test]
fn curl_posts() {
    let directory = scratch("curl_posts");
    each_way("curl_posts", |curl, options, url, _| {
        for size in SIZES {
            let file = random_file(&directory, *size);
            let sent = std::fs::read(&file).unwrap();
            let data = format!("@{}", file.display());
            let echo = format!("{url}/echo");
            let post = ["--data-binary", &data, &echo];
            let response = run(curl, options.iter().chain(&post)).well();
            assert_same(&response.stdout, &sent, &format!("{options:?} {size}"));
        }
    });
}

#[test]
fn curl_posts_in_chunks() {
    let Some(curl) = find("curl", "curl_posts_in_chunks") else { return };
    let server = Server::start_both();
    let file = random_file(&scratch("curl_posts_in_chunks"), 8 * 1024 * 1024);
    let sent = std::fs::read(&file).unwrap();
    let data = format!("@{}", file.display());
    for url in server.both() {
        let echo = format!("{url}/echo");
        let chunked = ["-s", "-S", "-k", "--http1.1", "-H", "Transfer-Encoding: chunked"];
        let response = run(&curl, chunked.iter().chain(&["--data-binary", &data, &echo])).well();
        assert_same(&response.stdout, &sent, url);
    }
}

#[test]
fn curl_asks_for_the_head() {
    each_way("curl_asks_for_the_head", |curl, options, url, _| {
        let ping = format!("{url}/echo?size=100000");
        let response = run(curl, options.iter().chain(&["--head", ping.as_str()])).well();
        let text = response.text().to_ascii_lowercase();
        assert!(text.contains("content-length: 100000"), "{options:?}: {text}");
        assert!(text.ends_with("\r\n\r\n"), "{options:?}: {text}");
    });
}

#[test]
fn curl_hears_what_is_wrong() {
    each_way("curl_hears_what_is_wrong", |curl, options, url, _| {
        let format = ["--write-out", "%{http_code}", "--output", "/dev/null"];
        let options: Vec<&str> = options.iter().chain(&format).copied().collect();
        for (arguments, status) in [
            (["--request", "GET", "/no/such/path"], "404"),
            (["--request", "DELETE", "/ping"], "405"),
            (["--request", "GET", "/echo?size=2000000000"], "400"),
            (["--request", "GET", "/echo?size=many"], "400"),
        ] {
            let url = format!("{url}{}", arguments[2]);
            let arguments = [arguments[0], arguments[1], &url];
            let response = run(curl, options.iter().chain(&arguments)).well();
            assert_eq!(response.text(), status, "{options:?} {url}");
        }
    });
}

#[test]
fn curl_asks_in_parallel() {
    each_way("curl_asks_in_parallel", |curl, options, url, _| {
        if options.contains(&"--http2-prior-knowledge") {
            // curl 7.88 loses all but the first transfer then, with any server.
            return;
        }
        let many = format!("{url}/echo?size=[1000-1199]");
        let parallel = ["--parallel", "--parallel-max", "50", "--write-out", "\n%{http_code}\n"];
        let response = run(curl, options.iter().chain(&parallel).chain(&[many.as_str()])).well();
        let text = response.text();
        assert_eq!(text.matches("\n200\n").count(), 200, "{options:?}");
        let bytes = text.bytes().filter(|byte| *byte == b'x').count();
        assert_eq!(bytes, (1000..1200).sum::<usize>(), "{options:?}");
    });
}

#[test]
fn curl_comes_back_over_http3() {
    let Some(curl) = debian_13("curl", "curl_comes_back_over_http3") else { return };
    let server = Server::start(&["--https", "127.0.0.1:0"]);
    let known = scratch("curl_comes_back_over_http3").join("alt-svc").display().to_string();
    let ping = format!("{}/ping", server.https());
    let plain = ["curl", "-sS", "-k", "--alt-svc", &known, "--write-out", " %{http_version}"];
    let arguments = [&plain[..], &ONE_DATAGRAM].concat();
    for version in ["2", "3"] {
        let response = run(&curl, arguments.iter().chain(&[ping.as_str()])).well();
        assert_eq!(response.text(), format!("pong {version}"));
    }
}

#[test]
fn curl_gets_a_gigabyte() {
    let Some(curl) = find("curl", "curl_gets_a_gigabyte") else { return };
    let server = Server::start_both();
    for option in ["--http1.1", "--http2-prior-knowledge"] {
        let url = format!("{}/echo?size=1073741824", server.http());
        let format = ["--output", "/dev/null", "--write-out", "%{size_download}"];
        let arguments = ["-sS", "--max-time", "100", option];
        let response = run(&curl, arguments.iter().chain(&format).chain(&[url.as_str()])).well();
        assert_eq!(response.text(), "1073741824", "{option}");
    }
}
