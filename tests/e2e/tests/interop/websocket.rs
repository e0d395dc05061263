//! WebSocket: Python's websockets over HTTP/1.1, with and without compression; Node's http2 by extended
//! CONNECT (RFC 8441).

use bolide_launcher::{Server, find, root, run, skip};

#[test]
fn python_websockets() {
    let environment = root().join("target/tools/python");
    let installed = std::fs::read_to_string(environment.join("ready")).unwrap_or_default();
    if !installed.contains("websockets") {
        skip("websockets for Python is not installed (python_websockets)");
        return;
    }
    let server = Server::start_both();
    let [http, https] = server.both();
    let client = root().join("tests/e2e/clients/python/websocket.py").display().to_string();
    let text = run(&environment.join("bin/python"), [client.as_str(), http, https]).well().text();
    for client in ["ws threads", "ws asyncio", "wss asyncio"] {
        for compression in ["plain", "deflate"] {
            let way = format!("ok: {client} {compression}\n");
            assert!(text.contains(&way), "{way}: {text}");
        }
    }
    assert!(text.contains("ok: refusals\n"), "{text}");
}

#[test]
fn node_websockets_over_http2() {
    let Some(node) = find("node", "node_websockets_over_http2") else { return };
    let server = Server::start_both();
    let [http, https] = server.both();
    let client = root().join("tests/e2e/clients/node/websocket.mjs").display().to_string();
    let text = run(&node, [client.as_str(), http, https]).well().text();
    for way in ["websocket h2c", "websocket h2 tls"] {
        assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
    }
}
