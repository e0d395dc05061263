//! Browsers over HTTP/3: the landing page, a file and a WebSocket (RFC 9220).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bolide_launcher::{Server, find, run, scratch};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData as _};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

const PAGE: &str = include_str!("browsers.html");

/// Arguments that Chromium is started with: no window, and nothing that it would look for elsewhere.
const CHROMIUM: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    // Off by default: WebSockets would have a connection of HTTP/1.1 of their own.
    "--enable-features=EnableWebsocketsOverHttp3",
];

/// The same for Firefox, but for its window; and it may speak HTTP/3 with a server whose CA is not one of its own.
const FIREFOX: [(&str, &str); 6] = [
    ("network.http.http3.disable_when_third_party_roots_found", "false"),
    ("network.captive-portal-service.enabled", "false"),
    ("network.connectivity-service.enabled", "false"),
    ("datareporting.policy.dataSubmissionEnabled", "false"),
    ("browser.startup.homepage_override.mstone", "\"ignore\""),
    ("browser.shell.checkDefaultBrowser", "false"),
];

/// It is killed when this goes out of scope.
struct Browser(Child);

impl Browser {
    fn open(command: &mut Command, directory: &Path) -> Self {
        let command = command.env("HOME", directory).stdin(Stdio::null());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with a page that tells what a browser saw.
struct Site {
    directory: PathBuf,
    server: Server,
    /// The server's key.
    key: KeyPair,
}

impl Site {
    fn start(test: &str) -> Self {
        let directory = scratch(test);
        std::fs::create_dir(directory.join("files")).unwrap();
        std::fs::write(directory.join("files/page.html"), PAGE).unwrap();
        std::fs::write(directory.join("files/300000"), bolide_e2e::random(300_000, 7)).unwrap();
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(directory.join("ca.pem"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let own = CertificateParams::new(names).unwrap();
        let certificate = own.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        std::fs::write(directory.join("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
        let configuration = "[[listen]]\nhttps = \"127.0.0.1:0\"\n\
                             cert = \"certificate.pem\"\nkey = \"key.pem\"\n\
                             [[route]]\npath = \"/files/\"\nroot = \"files\"\n\
                             [[route]]\nbuiltin = true\n";
        let file = directory.join("bolide.toml");
        std::fs::write(&file, configuration).unwrap();
        let file = file.display().to_string();
        let server = Server::start(&["--config", &file, "--access-log", "/dev/stderr"]);
        Self { directory, server, key }
    }

    /// The port, and the address of the page on `host`.
    fn page(&self, host: &str) -> (String, String) {
        let (_, port) = Server::authority(self.server.https()).rsplit_once(':').unwrap();
        let port = port.trim_end_matches('/').to_owned();
        let page = format!("https://{host}:{port}/files/page.html");
        (port, page)
    }

    /// Everything has come over HTTP/3, but for the WebSocket, which has come over this version.
    fn is_seen(&self, websocket: &str) {
        // The page says what it saw; the log of the WebSocket comes when its stream has ended, before that or after it.
        let mut socket = None;
        let told = loop {
            let line = self.server.said("HTTP/");
            if line.contains("GET /told?") {
                break line;
            }
            socket = socket.or_else(|| Some(line).filter(|line| line.contains(" /ws ")));
        };
        let expected = "/told?page=h3&landing=h3&file=h3,300000&socket=echoed HTTP/3.0\" 404";
        assert!(told.contains(expected), "{told}");
        let socket = socket.unwrap_or_else(|| self.server.said(" /ws "));
        assert!(socket.contains(&format!("\"CONNECT /ws {websocket}\" 200")), "{socket}");
    }
}

#[test]
fn chromium_over_http3() {
    let Some(chromium) = find("chromium", "chromium_over_http3") else { return };
    let site = Site::start("chromium_over_http3");
    let (port, page) = site.page("127.0.0.1");
    // QUIC has no other way to trust a certificate than its public key.
    let sha256 = TLS13_AES_128_GCM_SHA256.tls13().unwrap().common.hash_provider;
    let key = sha256.hash(&site.key.subject_public_key_info());
    let key = BASE64_STANDARD.encode(key.as_ref());
    let mut command = Command::new(chromium);
    command
        .args(CHROMIUM)
        .arg(format!("--origin-to-force-quic-on=127.0.0.1:{port}"))
        .arg(format!("--ignore-certificate-errors-spki-list={key}"))
        .arg(format!("--user-data-dir={}", site.directory.join("profile").display()))
        .arg(page);
    let browser = Browser::open(&mut command, &site.directory);
    site.is_seen("HTTP/3.0");
    drop(browser);
}

#[test]
fn firefox_over_http3() {
    let test = "firefox_over_http3";
    let Some(firefox) = find("firefox-esr", test) else { return };
    let Some(certutil) = find("certutil", test) else { return };
    let site = Site::start(test);
    let (port, page) = site.page("localhost");
    let profile = site.directory.join("profile");
    std::fs::create_dir(&profile).unwrap();
    let database = format!("sql:{}", profile.display());
    run(&certutil, ["-N", "--empty-password", "-d", &database]).well();
    let ca = site.directory.join("ca.pem").display().to_string();
    run(&certutil, ["-A", "-n", "ca", "-t", "C,,", "-i", &ca, "-d", &database]).well();
    let server = format!("\"localhost;h3=:{port}\"");
    let always = ("network.http.http3.alt-svc-mapping-for-testing", server.as_str());
    let preferences = FIREFOX.into_iter().chain([always]);
    let line = |(name, value)| format!("user_pref(\"{name}\", {value});\n");
    std::fs::write(profile.join("user.js"), preferences.map(line).collect::<String>()).unwrap();
    let mut command = Command::new(firefox);
    command.args(["--headless", "--no-remote", "--profile"]).arg(profile).arg(page);
    let browser = Browser::open(&mut command, &site.directory);
    // It has a connection of HTTP/2 for it, as long as RFC 9220 is off by default there.
    site.is_seen("HTTP/2.0");
    drop(browser);
}
