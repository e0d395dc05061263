//! HTTP/3: aioquic, libcurl (ngtcp2) and quiche as clients, frames that are wrong, and `bolide load` against aioquic,
//! quic-go and quiche.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bolide_launcher::{Server, find, program, root, run, scratch, skip};
use serde_json::Value;

/// Python with aioquic and pycurl.
pub(crate) fn python(test: &str) -> Option<PathBuf> {
    let environment = root().join("target/tools/python");
    let installed = std::fs::read_to_string(environment.join("ready")).unwrap_or_default();
    if !installed.contains("aioquic") {
        skip(&format!("aioquic for Python is not installed ({test})"));
        return None;
    }
    Some(environment.join("bin/python"))
}

#[test]
fn aioquic_and_libcurl_over_http3_and_the_errors_of_what_is_wrong() {
    let Some(python) = python("aioquic_and_libcurl_over_http3") else { return };
    let server = Server::start(&["--https", "127.0.0.1:0"]);
    let client = root().join("tests/e2e/clients/python/http3.py").display().to_string();
    let text = run(&python, [client.as_str(), server.https()]).well().text();
    for way in ["aioquic", "websocket", "libcurl", "mistakes", "final size"] {
        assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
    }
    // What the transport counts wrongly ends its connection.
    server.said("attempt to subtract with overflow");
}

#[test]
fn aioquic_sends_requests_with_its_first_packets() {
    let test = "aioquic_sends_requests_with_its_first_packets";
    let Some(python) = python(test) else { return };
    let file = scratch("early_data").join("bolide.toml");
    let text =
        "[[listen]]\nhttps = \"127.0.0.1:0\"\nearly-data = true\n[[route]]\nbuiltin = true\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&["--config", &file.display().to_string()]);
    let client = root().join("tests/e2e/clients/python/http3.py").display().to_string();
    let text = run(&python, [client.as_str(), server.https(), "early"]).well().text();
    assert!(text.contains("ok: early data\n"), "{text}");
}

/// A server that prints its port and ends with its standard input.
struct Foreign {
    child: Child,
    url: String,
}

impl Foreign {
    fn start(program: &Path, arguments: &[&str], test: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let directory = scratch(test);
        let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .args([certificate, key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("port: ").unwrap_or_else(|| panic!("{line}"));
        Self { url: format!("https://127.0.0.1:{port}"), child }
    }

    /// Loads it; every response must be right, and over HTTP/3.
    fn load(&self, count: u64, arguments: &[&str]) {
        let count_text = count.to_string();
        let common = ["load", "--http3", "--insecure", "--json", "-", "--quiet", "-n", &count_text];
        let url = format!("{}/echo", self.url);
        let words = common.iter().chain(arguments).copied().chain([url.as_str()]);
        let text = run(program(), words).well().text();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["protocol"], "h3");
        let counts = &report["phases"][0]["counts"];
        assert_eq!((&counts["succeeded"], &counts["failed"]), (&count.into(), &0.into()), "{text}");
    }

    fn load_each_way(&self, test: &str) {
        self.load(1000, &["-c", "4", "-m", "10", "--expect-body", "pong", "--sample", "100%"]);
        let body = "grüße ".repeat(20_000);
        let file = scratch(&format!("{test}_body")).join("body");
        std::fs::write(&file, body).unwrap();
        let file = file.display().to_string();
        let echoed = ["--data-file", &file, "--expect-body-file", &file, "--sample", "100%"];
        self.load(40, &[&["-c", "2", "-m", "4"], &echoed[..]].concat());
        self.load(20, &["-c", "2", "--new-connections", "--expect-body", "pong"]);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It has ended already where a test failed because of that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn load_over_http3_against_aioquic() {
    let test = "load_over_http3_against_aioquic";
    let Some(python) = python(test) else { return };
    let script = root().join("tests/e2e/servers/python/http3.py").display().to_string();
    Foreign::start(&python, &[&script], test).load_each_way(test);
}

#[test]
fn load_over_http3_against_quic_go() {
    let test = "load_over_http3_against_quic_go";
    let Some(client) = find("go-client", test) else { return };
    Foreign::start(&client, &["serve"], test).load_each_way(test);
}

#[test]
fn quiche_in_both_roles() {
    let test = "quiche_in_both_roles";
    let Some(quiche) = find("quiche-peer", test) else { return };
    let server = Server::start(&["--https", "127.0.0.1:0"]);
    let address = server.https().trim_start_matches("https://");
    let text = run(&quiche, ["client", address]).well().text();
    for way in ["ping", "bodies", "at once", "head"] {
        assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
    }
    Foreign::start(&quiche, &["serve"], test).load_each_way(test);
}
