//! Python: http.client of its library, and httpx over HTTP/1.1 and HTTP/2.

use bolide_launcher::{Server, root, run, skip};

#[test]
fn python_clients() {
    let environment = root().join("target/tools/python");
    if !environment.join("ready").exists() {
        skip("httpx for Python is not installed (python_clients)");
        return;
    }
    let server = Server::start_both();
    let [http, https] = server.both();
    let client = root().join("tests/e2e/clients/python/client.py").display().to_string();
    let text = run(&environment.join("bin/python"), [client.as_str(), http, https]).well().text();
    for way in
        ["http.client", "http.client tls", "httpx h1", "httpx h2c", "httpx tls h1", "httpx tls h2"]
    {
        assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
    }
}
