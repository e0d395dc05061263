//! Go: net/http over HTTP/1.1 and HTTP/2, and x/net/http2, with and without TLS, quic-go over HTTP/3, and through proxies.

use bolide_launcher::{Server, find, run};

#[test]
fn go_clients() {
    let Some(client) = find("go-client", "go_clients") else { return };
    for server in Server::start_everywhere() {
        let [http, https] = server.both();
        let text = run(&client, [http, https]).well().text();
        for way in ["net/http h1", "net/http h2c", "net/http tls h1", "net/http tls h2"] {
            assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
        }
        for way in ["x/net/http2 h2c", "x/net/http2 tls h2", "quic-go h3"] {
            assert!(text.contains(&format!("ok: {way}\n")), "{way}: {text}");
        }
    }
}
