//! What the program says when nothing is wrong.

use bolide_launcher::{Server, find, program, run, scratch};

#[test]
fn help_is_no_mistake() {
    for arguments in [["--help"].as_slice(), &["serve", "--help"], &["--version"]] {
        let text = run(program(), arguments).well().text();
        assert!(text.contains("bolide") || text.contains("--http"), "{arguments:?}: {text}");
    }
    let help = run(program(), ["serve", "--help"]).well().text();
    let options = ["--http", "--https", "--no-https", "--cert", "--key", "--workers"];
    for option in options.into_iter().chain(["--admin", "--access-log", "--log-level"]) {
        assert!(help.contains(option), "{option} is missing: {help}");
    }
}

#[test]
fn several_listeners_of_each_kind() {
    let Some(curl) = find("curl", "several_listeners_of_each_kind") else { return };
    let any = "127.0.0.1:0";
    let server = Server::start(&[
        "--http", any, "--http", any, "--https", any, "--https", any, "--http", "[::1]:0",
    ]);
    assert_eq!(server.urls().len(), 5);
    for url in server.urls() {
        let text = run(&curl, ["-sSk", &format!("{url}/ping")]).well().text();
        assert_eq!(text, "pong", "{url}");
    }
}

#[test]
fn a_certificate_from_files() {
    let Some(openssl) = find("openssl", "a_certificate_from_files") else { return };
    let Some(curl) = find("curl", "a_certificate_from_files") else { return };
    let folder = scratch("a_certificate_from_files");
    let kinds: [&[&str]; 2] =
        [&["-newkey", "rsa:2048"], &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]];
    for kind in kinds {
        let certificate = folder.join("certificate").display().to_string();
        let key = folder.join("key").display().to_string();
        let make = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
        let files =
            ["-addext", "subjectAltName=IP:127.0.0.1", "-out", &certificate, "-keyout", &key];
        run(&openssl, make.iter().chain(kind).chain(&files)).well();
        let server =
            Server::start(&["--https", "127.0.0.1:0", "--cert", &certificate, "--key", &key]);
        // curl checks the certificate here: it is the one that the server was given.
        let url = format!("{}/ping", server.https());
        let text = run(&curl, ["-sS", "--cacert", &certificate, &url]).well().text();
        assert_eq!(text, "pong", "{kind:?}");
    }
}

#[test]
fn the_landing_page_says_what_there_is() {
    let Some(curl) = find("curl", "the_landing_page_says_what_there_is") else { return };
    let server = Server::start_both();
    for (option, url, version) in [
        ("--http1.1", server.http(), "HTTP/1.1"),
        ("--http2-prior-knowledge", server.http(), "HTTP/2"),
        ("--http2", server.https(), "HTTP/2"),
    ] {
        let text = run(&curl, ["-sSki", option, &format!("{url}/")]).well().text();
        assert!(text.to_ascii_lowercase().contains("content-type: text/html"), "{text}");
        for word in [version, "/ping", "/echo", "127.0.0.1"] {
            assert!(text.contains(word), "{url} says nothing of {word}: {text}");
        }
    }
}
