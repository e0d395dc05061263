//! Node: http, https and http2.

use bolide_launcher::{Server, find, root, run};

#[test]
fn node_clients() {
    let Some(node) = find("node", "node_clients") else { return };
    let server = Server::start_both();
    let [http, https] = server.both();
    let client = root().join("tests/e2e/clients/node/client.mjs").display().to_string();
    let text = run(&node, [client.as_str(), http, https]).well().text();
    for way in ["http", "https", "http2 h2c", "http2 tls"] {
        assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
    }
}
