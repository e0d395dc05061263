//! Certificates by name, certificates of clients, and certificates that are replaced.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bolide_launcher::{Finished, Server, find, finish, run, scratch};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::Signal;

const REQUEST: &[u8] = b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A certificate for these names and its key, as files.
fn pair(directory: &Path, name: &str, names: &[&str]) -> [String; 2] {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let paths = [directory.join(format!("{name}.pem")), directory.join(format!("{name}.key"))];
    std::fs::write(&paths[0], certificate.pem()).unwrap();
    std::fs::write(&paths[1], key.serialize_pem()).unwrap();
    paths.map(|path| path.display().to_string())
}

/// Connects with openssl to the first listener with TLS, and sends a request.
fn connect(openssl: &Path, server: &Server, options: &[&str]) -> Finished {
    connect_to(openssl, server.https(), options)
}

/// Connects with openssl and sends a request.
fn connect_to(openssl: &Path, url: &str, options: &[&str]) -> Finished {
    let mut child = Command::new(openssl)
        .args(["s_client", "-ign_eof", "-connect", Server::authority(url)])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl can be started");
    // Not read if the handshake failed.
    drop(child.stdin.take().expect("stdin is piped").write_all(REQUEST));
    finish(child)
}

#[test]
fn each_name_gets_its_certificate() {
    let Some(openssl) = find("openssl", "each_name_gets_its_certificate") else { return };
    let directory = scratch("each_name_gets_its_certificate");
    let mut arguments = vec!["--https".to_owned(), "127.0.0.1:0".to_owned()];
    for (name, names) in [
        ("first", ["first.org", "localhost"]),
        ("wild", ["*.example.org", "example.org"]),
        ("exact", ["a.example.org", "b.org"]),
    ] {
        let [cert, key] = pair(&directory, name, &names);
        arguments.extend(["--cert".to_owned(), cert, "--key".to_owned(), key]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start(&arguments);
    for (option, expected) in [
        (["-servername", "x.example.org"].as_slice(), "wild"),
        (&["-servername", "example.org"], "wild"),
        (&["-servername", "a.example.org"], "exact"),
        (&["-servername", "B.ORG"], "exact"),
        (&["-servername", "a.b.example.org"], "first"),
        (&["-noservername"], "first"),
    ] {
        for version in ["-tls1_2", "-tls1_3"] {
            let said = connect(&openssl, &server, &[option, &[version]].concat()).both();
            let subject = format!("CN = {expected}");
            assert!(said.contains(&subject), "{option:?} {version} {expected}: {said}");
            assert!(said.contains("pong"), "{said}");
        }
    }
}

/// An authority, and a client that it vouches for: their files.
pub(super) fn clients(directory: &Path) -> (PathBuf, [String; 2]) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "authority");
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let path = directory.join("authority.pem");
    std::fs::write(&path, root.pem()).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name.push(DnType::CommonName, "alice");
    let key = KeyPair::generate().unwrap();
    let certificate = client.signed_by(&key, &issuer).unwrap();
    let paths = [directory.join("alice.pem"), directory.join("alice.key")];
    std::fs::write(&paths[0], certificate.pem()).unwrap();
    std::fs::write(&paths[1], key.serialize_pem()).unwrap();
    (path, paths.map(|path| path.display().to_string()))
}

#[test]
fn clients_have_to_say_who_they_are() {
    let Some(curl) = find("curl", "clients_have_to_say_who_they_are") else { return };
    let directory = scratch("clients_have_to_say_who_they_are");
    let (authority, [cert, key]) = clients(&directory);
    let [stranger, stranger_key] = pair(&directory, "stranger", &["stranger"]);
    let authority = authority.display().to_string();
    for (word, nobody_may) in [("required", false), ("optional", true)] {
        let any = ["--https", "127.0.0.1:0", "--client-ca", &authority];
        let server = Server::start(&[&any[..], &["--client-certificate", word]].concat());
        let url = format!("{}/ping", server.https());
        for version in ["--http1.1", "--http2"] {
            for (files, may) in [
                ([].as_slice(), nobody_may),
                (&["--cert", &cert, "--key", &key], true),
                (&["--cert", &stranger, "--key", &stranger_key], false),
            ] {
                let finished =
                    run(&curl, ["-sSk", version].iter().chain(files).chain(&[url.as_str()]));
                assert_eq!(finished.status.success(), may, "{word} {files:?}: {}", finished.both());
                assert_eq!(finished.text() == "pong", may, "{word} {files:?}");
            }
        }
    }
}

#[test]
fn a_certificate_that_changes_is_read_again() {
    let Some(openssl) = find("openssl", "a_certificate_that_changes_is_read_again") else { return };
    let directory = scratch("a_certificate_that_changes_is_read_again");
    let [cert, key] = pair(&directory, "old", &["localhost"]);
    let server = Server::start(&["--https", "127.0.0.1:0", "--cert", &cert, "--key", &key]);
    let session = directory.join("session").display().to_string();
    let first = connect(&openssl, &server, &["-tls1_3", "-sess_out", &session]).both();
    assert!(first.contains("CN = old"), "{first}");
    let replace = |name: &str| {
        let [new_cert, new_key] = pair(&directory, name, &["localhost"]);
        std::fs::rename(new_cert, &cert).unwrap();
        std::fs::rename(new_key, &key).unwrap();
    };
    replace("new-by-change");
    server.said("certificates have changed and were reloaded");
    let said = connect(&openssl, &server, &[]).both();
    assert!(said.contains("CN = new-by-change") && said.contains("pong"), "{said}");
    let resumed = connect(&openssl, &server, &["-tls1_3", "-sess_in", &session]).both();
    assert!(resumed.contains("Reused, TLSv1.3"), "tickets outlive a certificate: {resumed}");
    replace("by-signal");
    server.signal(Signal::HUP);
    server.said("bolide: reloaded");
    assert!(connect(&openssl, &server, &[]).both().contains("CN = by-signal"));
    std::fs::write(&key, "no key").unwrap();
    let said = server.said("certificates have changed but can't be used, keeping the old ones");
    assert!(said.contains("there is no private key in it"), "{said}");
    assert!(connect(&openssl, &server, &[]).both().contains("CN = by-signal"));
}

#[test]
fn a_listener_of_a_file_gets_the_certificates_that_it_names_now() {
    let test = "a_listener_of_a_file_gets_the_certificates";
    let Some(openssl) = find("openssl", test) else { return };
    let directory = scratch(test);
    pair(&directory, "one", &["localhost"]);
    pair(&directory, "two", &["localhost"]);
    let path = directory.join("bolide.toml");
    let write = |name: &str| {
        let text = format!(
            "[[listen]]\nhttps = \"127.0.0.1:0\"\ncert = \"{name}.pem\"\nkey = \"{name}.key\"\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    write("one");
    let server = Server::start(&["--config", &path.display().to_string()]);
    assert!(connect(&openssl, &server, &[]).both().contains("CN = one"));
    write("two");
    server.signal(Signal::HUP);
    server.said("bolide: reloaded");
    assert!(connect(&openssl, &server, &[]).both().contains("CN = two"));
    write("three");
    server.signal(Signal::HUP);
    let said = server.said("not reloaded");
    assert!(said.contains("three.pem") && said.contains("can't be read"), "{said}");
    assert!(connect(&openssl, &server, &[]).both().contains("CN = two"));
}

#[test]
fn listeners_of_the_same_address_and_certificate_are_told_apart() {
    let test = "listeners_of_the_same_address_and_certificate_are_told_apart";
    let Some(openssl) = find("openssl", test) else { return };
    let directory = scratch(test);
    pair(&directory, "one", &["localhost"]);
    pair(&directory, "two", &["localhost"]);
    clients(&directory);
    let path = directory.join("bolide.toml");
    let listen = |name: &str| {
        format!(
            "[[listen]]\nhttps = \"127.0.0.1:0\"\ncert = \"{name}.pem\"\nkey = \"{name}.key\"\n"
        )
    };
    std::fs::write(&path, listen("one") + &listen("one")).unwrap();
    let server = Server::start(&["--config", &path.display().to_string()]);
    let [first, second] = server.urls()[..] else { panic!("two listeners") };
    for url in [first, second] {
        let said = connect_to(&openssl, url, &[]).both();
        assert!(said.contains("CN = one") && said.contains("pong"), "{said}");
    }
    std::fs::write(&path, listen("one") + &listen("two") + "client-ca = \"authority.pem\"\n")
        .unwrap();
    server.signal(Signal::HUP);
    assert!(server.said("bolide: reloaded").ends_with("reloaded"), "nothing needs a restart");
    let said = connect_to(&openssl, first, &[]).both();
    assert!(said.contains("CN = one") && said.contains("pong"), "{said}");
    let said = connect_to(&openssl, second, &[]).both();
    assert!(
        said.contains("CN = two") && !said.contains("pong"),
        "who shows no certificate: {said}"
    );
}

#[test]
fn each_listener_has_its_own_versions_suites_and_protocols() {
    let test = "each_listener_has_its_own_versions_suites_and_protocols";
    let Some(openssl) = find("openssl", test) else { return };
    let directory = scratch(test);
    pair(&directory, "one", &["localhost"]);
    let listen = |keys: &str| {
        format!(
            "[[listen]]\nhttps = \"127.0.0.1:0\"\ncert = \"one.pem\"\nkey = \"one.key\"\n{keys}\n"
        )
    };
    let old = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let (new, only_http1) = ("TLS_AES_256_GCM_SHA384", "alpn = [\"http/1.1\"]");
    let path = directory.join("bolide.toml");
    let all = [
        listen(""),
        listen(&format!("min-version = \"1.3\"\ncipher-suites = [\"{new}\"]\n{only_http1}")),
        listen(&format!("max-version = \"1.2\"\ncipher-suites = [\"{old}\"]")),
    ];
    std::fs::write(&path, all.concat()).unwrap();
    let server = Server::start(&["--config", &path.display().to_string()]);
    let [plain, modern, legacy] = server.urls()[..] else { panic!("three listeners") };
    let both = ["-alpn", "h2,http/1.1"];
    let http1 = ["-alpn", "http/1.1"];
    let sha = "ECDHE-ECDSA-AES128-GCM-SHA256";
    for (url, options, expected) in [
        (plain, ["-tls1_2"].as_slice(), Some("TLSv1.2")),
        (plain, &["-tls1_3"], Some("TLSv1.3")),
        (plain, &both, Some("ALPN protocol: h2")),
        (modern, &["-tls1_2"], None),
        (modern, &["-tls1_3"], Some(new)),
        (modern, &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"], None),
        (modern, &both, Some("ALPN protocol: http/1.1")),
        (legacy, &["-tls1_3"], None),
        (legacy, &["-tls1_2"], Some(sha)),
        (legacy, &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"], None),
        (legacy, &http1, Some(sha)),
    ] {
        let said = connect_to(&openssl, url, options).both();
        let has_response = said.contains("pong") || options == both && url == plain;
        assert_eq!(has_response, expected.is_some(), "{url} {options:?}: {said}");
        assert!(said.contains(expected.unwrap_or("alert")), "{url} {options:?}: {said}");
    }
}

/// Starts the program with a data directory of its own.
fn start_with_data(data: &Path) -> Server {
    let mut command = Command::new(bolide_launcher::program());
    command.env("XDG_DATA_HOME", data);
    Server::start_by(command, &["--https", "127.0.0.1:0"])
}

#[test]
fn a_development_ca_is_kept_so_that_it_is_trusted_once() {
    let Some(curl) = find("curl", "a_development_ca") else { return };
    let data = scratch("a_development_ca");
    let ca = data.join("bolide/development-ca.pem");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let server = start_with_data(&data);
        let url = format!("{}/ping", server.https());
        let trusted = ca.display().to_string();
        assert_eq!(run(&curl, ["-sS", "--cacert", &trusted, &url]).well().text(), "pong");
        let by_name = url.replace("127.0.0.1", "localhost");
        assert_eq!(run(&curl, ["-sS4", "--cacert", &trusted, &by_name]).well().text(), "pong");
        seen.push(std::fs::read(&ca).unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    // A directory that can't be: one sentence, and a certificate of this run.
    let server = start_with_data(&ca);
    let line = server.said("the certificate is self-signed for this run");
    assert!(line.contains("development-ca.pem/bolide"), "{line}");
    let url = format!("{}/ping", server.https());
    assert_eq!(run(&curl, ["-sSk", &url]).well().text(), "pong");
    // What only checks leaves nothing behind.
    let empty = scratch("a_development_ca_of_a_check");
    let mut check = Command::new(bolide_launcher::program());
    check.args(["serve", "--check"]).env("XDG_DATA_HOME", &empty);
    assert!(check.status().unwrap().success());
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}
