//! openssl s_client: versions of TLS, ALPN, resumption; and s_server, with a certificate that few have.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bolide_launcher::{Finished, Server, find, finish, free_address, program, run, scratch};

const REQUEST: &[u8] = b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Connects, sends what is given, and reads until the server ends.
fn connect(openssl: &Path, server: &Server, options: &[&str], input: &[u8]) -> Finished {
    let mut child = Command::new(openssl)
        .args(["s_client", "-connect", Server::authority(server.https())])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl can be started");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // Not read if the handshake failed.
    drop(stdin.write_all(input));
    drop(stdin);
    finish(child)
}

#[test]
fn openssl_agrees_on_version_and_protocol() {
    let test = "openssl_agrees_on_version_and_protocol";
    let Some(openssl) = find("openssl", test) else { return };
    let server = Server::start_both();
    for (option, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        for (offer, choice) in [
            ("h2,http/1.1", "ALPN protocol: h2"),
            ("http/1.1,h2", "ALPN protocol: h2"),
            ("http/1.1", "ALPN protocol: http/1.1"),
            ("h2", "ALPN protocol: h2"),
            ("spdy/1,http/1.1", "ALPN protocol: http/1.1"),
        ] {
            let text = connect(&openssl, &server, &[option, "-alpn", offer], b"").well().both();
            assert!(text.contains(choice), "{option} {offer}: {text}");
            assert!(text.contains(&format!("New, {version}, Cipher is")), "{option}: {text}");
        }
    }
}

#[test]
fn openssl_gets_without_alpn() {
    let Some(openssl) = find("openssl", "openssl_gets_without_alpn") else { return };
    let server = Server::start_both();
    for option in ["-tls1_2", "-tls1_3"] {
        let text = connect(&openssl, &server, &[option, "-ign_eof"], REQUEST).both();
        assert!(text.contains("HTTP/1.1 200"), "{option}: {text}");
        assert!(text.contains("pong"), "{option}: {text}");
    }
}

#[test]
fn openssl_is_refused() {
    let Some(openssl) = find("openssl", "openssl_is_refused") else { return };
    let server = Server::start_both();
    // An old version, and a protocol that isn't spoken here (RFC 7301 §3.2).
    for options in [["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_3", "-alpn", "spdy/1"]] {
        let finished = connect(&openssl, &server, &options, b"");
        let text = finished.both();
        assert!(!finished.status.success(), "{options:?}: {text}");
        assert!(text.contains("alert"), "{options:?}: {text}");
    }
}

#[test]
fn openssl_resumes_sessions() {
    let Some(openssl) = find("openssl", "openssl_resumes_sessions") else { return };
    let server = Server::start_both();
    let directory = scratch("openssl_resumes_sessions");
    for (option, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let session = directory.join(version).display().to_string();
        let first = [option, "-ign_eof", "-sess_out", &session];
        let text = connect(&openssl, &server, &first, REQUEST).both();
        assert!(text.contains(&format!("New, {version}")), "{option}: {text}");
        let second = [option, "-ign_eof", "-sess_in", &session];
        let text = connect(&openssl, &server, &second, REQUEST).both();
        assert!(text.contains(&format!("Reused, {version}")), "{option}: {text}");
        assert!(text.contains("pong"), "{option}: {text}");
    }
}

/// As `openssl x509 -req` makes it without extensions.
#[test]
fn a_certificate_of_the_first_version_is_trusted_if_any_is_and_not_served() {
    let test = "a_certificate_of_the_first_version_is_trusted_if_any_is_and_not_served";
    let Some(openssl) = find("openssl", test) else { return };
    let directory = scratch(test);
    let path = |name: &str| directory.join(name).display().to_string();
    let (key, request, certificate) = (path("key.pem"), path("request"), path("certificate.pem"));
    let new = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-keyout", &key];
    run(&openssl, new.iter().chain(&["-out", &request])).well();
    let sign = ["x509", "-req", "-in", &request, "-signkey", &key, "-out", &certificate];
    run(&openssl, sign).well();
    let own = ["serve", "--https", "127.0.0.1:0", "--cert", &certificate, "--key", &key];
    let said = run(program(), own);
    assert_eq!(said.status.code(), Some(2));
    assert!(said.both().contains("X.509's first version"), "{}", said.both());
    let address = free_address().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let mut server = Command::new(&openssl)
            .args(["s_server", "-www", "-accept", &address, version])
            .args(["-cert", &certificate, "-key", &key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| line != "ACCEPT")) {}
        let url = format!("https://{address}/");
        let text = run(program(), ["load", "-n", "1", "--insecure", &url]).well().both();
        assert!(text.contains("statuses    200: 1"), "{text}");
        let refused = run(program(), ["load", "-n", "1", &url]);
        assert!(refused.both().contains("the TLS handshake failed"), "{}", refused.both());
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

#[test]
fn openssl_reconnects() {
    let Some(openssl) = find("openssl", "openssl_reconnects") else { return };
    let server = Server::start_both();
    let text = connect(&openssl, &server, &["-tls1_2", "-reconnect"], b"").both();
    assert_eq!(text.matches("Reused, TLSv1.2").count(), 5, "{text}");
}
