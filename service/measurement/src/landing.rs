//! `GET /`: what this connection is, and what else there is.

use std::fmt::Write;

use bolide_semantics::in_markup;
use bolide_server::{Request, Response, Version};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;\
padding:0 1rem;color:#1b1f24;background:#fff}table{border-collapse:collapse}td{padding:.25rem 1rem \
.25rem 0;vertical-align:top}code{background:#eef1f4;padding:.1rem .3rem;border-radius:.25rem}\
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#14171a}code{background:#23282d}\
a{color:#8ab4f8}}";

const ENDPOINTS: &str = "<h2>What there is</h2><table>\
<tr><td><a href=\"/ping\"><code>GET /ping</code></a><td><code>pong</code>\
<tr><td><a href=\"/echo?size=1024\"><code>GET /echo?size=1024</code></a><td>as many bytes as you \
ask for, up to 1 GiB (64 if you don't say)\
<tr><td><code>POST /echo</code><td>what you send, as you send it, of any size\
<tr><td><a href=\"/events?n=5&amp;gap=500\"><code>GET /events?n=5&amp;gap=500</code></a><td>so many \
Server-Sent Events, so many milliseconds apart\
<tr><td><a href=\"/1048576\"><code>GET /1048576</code></a><td>as many zero bytes, up to 1 TiB\
<tr><td><code>PUT /1048576</code><td>reads what you send, of any size, and discards it\
<tr><td><code>/ws</code><td>WebSocket: your messages come back\
<tr><td><code>/ndt/v7/download</code>, <code>/ndt/v7/upload</code><td>ndt7 speed tests\
<tr><td><a href=\"/.well-known/nq\"><code>GET /.well-known/nq</code></a><td>responsiveness: where \
<code>/small</code>, <code>/large</code> and <code>/slurp</code> are</table>";

/// The page.
pub(crate) fn page(request: &mut Request<'_>) -> Response {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Bolide</title><style>{STYLE}</style>\
         <h1>Bolide</h1><p>This server works. Your connection:</p><table>"
    );
    let mut row = |name: &str, value: &str| {
        let value = in_markup(value);
        // Writing to a string can't fail.
        let _ = write!(html, "<tr><td>{name}<td><code>{value}</code>");
    };
    let version = match request.version() {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    row("Protocol", version);
    match request.tls() {
        None => row("TLS", "none: cleartext"),
        Some(facts) => {
            let how = if facts.resumed { "resumed" } else { "full handshake" };
            row("TLS", &format!("{}, {}, {how}", facts.version, facts.cipher));
            row("Server name", facts.server_name.as_deref().unwrap_or("none given"));
        }
    }
    let peer = request.peer().map_or_else(|| "Unix socket".to_owned(), |peer| peer.to_string());
    row("Your address", &peer);
    row("Host", request.authority().unwrap_or("none given"));
    html.push_str("</table>");
    html.push_str(ENDPOINTS);
    html.push_str("</html>\n");
    Response::html(html)
}
