//! Chromium over HTTP/3: the landing page, a file and a WebSocket (RFC 9220).

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bolide_launcher::{Server, find, scratch};
use rcgen::PublicKeyData as _;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

const PAGE: &str = include_str!("chromium.html");

/// What Chromium is started with: no window, and nothing that it would look for elsewhere.
const FLAGS: [&str; 10] = [
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

struct Browser(Child);

impl Browser {
    /// Opens a page, over HTTP/3 alone. QUIC has no other way to trust a certificate than `key`: base64 of the SHA-256 of
    /// its public key.
    fn open(program: PathBuf, url: &str, key: &str, folder: &str) -> Self {
        let origin = Server::authority(url).split('/').next().unwrap_or_default();
        let child = Command::new(program)
            .args(FLAGS)
            .arg(format!("--origin-to-force-quic-on={origin}"))
            .arg(format!("--ignore-certificate-errors-spki-list={key}"))
            .arg(format!("--user-data-dir={folder}/profile"))
            .arg(url)
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn chromium_over_http3() {
    let Some(chromium) = find("chromium", "chromium_over_http3") else { return };
    let folder = scratch("chromium_over_http3");
    let text = |name: &str| folder.join(name).display().to_string();
    std::fs::create_dir(folder.join("files")).unwrap();
    std::fs::write(folder.join("files/page.html"), PAGE).unwrap();
    std::fs::write(folder.join("files/300000"), bolide_e2e::random(300_000, 7)).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("certificate.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let sha256 = TLS13_AES_128_GCM_SHA256.tls13().unwrap().common.hash_provider;
    let key = sha256.hash(&made.signing_key.subject_public_key_info());
    let key = BASE64_STANDARD.encode(key.as_ref());
    let configuration = "[[listen]]\nhttps = \"127.0.0.1:0\"\n\
                         cert = \"certificate.pem\"\nkey = \"key.pem\"\n\
                         [[route]]\npath = \"/files/\"\nroot = \"files\"\n\
                         [[route]]\nbuiltin = true\n";
    std::fs::write(folder.join("bolide.toml"), configuration).unwrap();
    let server = Server::start(&["--config", &text("bolide.toml"), "--access-log", "/dev/stderr"]);
    let page = format!("{}/files/page.html", server.https());
    let browser = Browser::open(chromium, &page, &key, &folder.display().to_string());
    // The page says what it saw; the log of the WebSocket comes when its stream has ended, before that or after it.
    let mut socket = None;
    let told = loop {
        let line = server.said("HTTP/");
        if line.contains("GET /told?") {
            break line;
        }
        socket = socket.or_else(|| Some(line).filter(|line| line.contains(" /ws ")));
    };
    let expected = "/told?page=h3&landing=h3&file=h3,300000&socket=over-http3 HTTP/3.0\" 404";
    assert!(told.contains(expected), "{told}");
    let socket = socket.unwrap_or_else(|| server.said(" /ws "));
    assert!(socket.contains("\"CONNECT /ws HTTP/3.0\" 200"), "{socket}");
    drop(browser);
}
