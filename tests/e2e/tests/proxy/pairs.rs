//! Every pair of versions, with random bodies compared.

use std::path::Path;

use bolide_e2e::{SIZES, assert_same, random_file};
use bolide_launcher::{Server, find, root, run, scratch, skip};

use crate::behind::Behind;

/// The ways in which curl asks the proxy, and whether over TLS.
pub(crate) const WAYS: &[(&str, bool)] = &[
    ("--http1.1", false),
    ("--http2-prior-knowledge", false),
    ("--http1.1", true),
    ("--http2", true),
];

/// Starts a proxy to these upstreams.
pub(crate) fn proxy(urls: &[&str], more: &[&str]) -> Server {
    let mut arguments = vec!["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
    for url in urls {
        arguments.extend(["--proxy", url]);
    }
    arguments.extend(more);
    Server::start(&arguments)
}

/// Asks in every way, with bodies of these sizes.
pub(crate) fn exercise(curl: &Path, server: &Server, path: &str, sizes: &[usize], test: &str) {
    let directory = scratch(&format!("{test}-files"));
    let files: Vec<_> = sizes.iter().map(|size| random_file(&directory, *size)).collect();
    for (option, tls) in WAYS {
        let url = if *tls { server.https() } else { server.http() };
        let options = ["-sSk", "--fail-with-body", "--max-time", "60", option];
        for file in &files {
            let sent = std::fs::read(file).expect("it was written");
            for coding in ["Content-Type: a/b", "Transfer-Encoding: chunked"] {
                let data = format!("@{}", file.display());
                let target = format!("{url}{path}");
                let post = ["-H", coding, "--data-binary", &data, &target];
                let response = run(curl, options.iter().chain(&post)).well();
                let what = format!("{test} {option} tls {tls} {coding}");
                assert_same(&response.stdout, &sent, &what);
            }
        }
    }
}

fn exercise_all(behind: &Behind, test: &str) {
    let Some(curl) = find("curl", test) else { return };
    let certificate = behind.certificate.display().to_string();
    for (url, version) in behind.urls.iter().zip(["1", "2", "2"]) {
        let server = proxy(&[url], &["--proxy-ca", &certificate]);
        let hello = run(&curl, ["-sS", server.http()]).well().text();
        assert!(hello.starts_with(&format!("hello from {version}")), "{url}: {hello}");
        assert!(hello.ends_with("for 127.0.0.1"), "{url}: {hello}");
        exercise(&curl, &server, "/", SIZES, test);
    }
}

/// The server that Node runs.
pub(crate) fn node(test: &str) -> Option<Behind> {
    let node = find("node", test)?;
    let script = root().join("tests/e2e/servers/node/echo.mjs").display().to_string();
    Some(Behind::start(&node, &[&script], &scratch(test)))
}

/// The server that is written in Go.
pub(crate) fn go(test: &str) -> Option<Behind> {
    let go = find("go", test)?;
    let directory = scratch(test);
    let (source, built) = (root().join("tests/e2e/servers/go/echo.go"), directory.join("echo"));
    let arguments = ["build".as_ref(), "-o".as_ref(), built.as_os_str(), source.as_os_str()];
    let finished = run(&go, arguments);
    if !finished.status.success() {
        skip(&format!("this Go can't build the server ({test}): {}", finished.both()));
        return None;
    }
    Some(Behind::start(&built, &[], &directory))
}

#[test]
fn node_behind() {
    let Some(behind) = node("node_behind") else { return };
    exercise_all(&behind, "node_behind");
}

#[test]
fn go_behind() {
    let Some(behind) = go("go_behind") else { return };
    exercise_all(&behind, "go_behind");
    let Some(curl) = find("curl", "go_behind") else { return };
    exercise(&curl, &proxy(&[&behind.unix], &[]), "/", SIZES, "go_behind_unix");
}
