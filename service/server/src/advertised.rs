//! RFC 7838 §3: other ways to this server.

/// How long clients may remember that HTTP/3 is served, in seconds.
const REMEMBERED_SECONDS: u32 = 86_400;

/// RFC 7838 §3: what a response over TLS says of HTTP/3 at the same port.
#[derive(Debug, Clone)]
pub(crate) struct Advertised {
    port: u16,
    value: String,
}

impl Advertised {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, value: format!("h3=\":{port}\"; ma={REMEMBERED_SECONDS}") }
    }

    /// Returns what a client is told that has connected to this port.
    pub(crate) fn at(advertised: &[Self], port: u16) -> Option<&str> {
        advertised.iter().find(|one| one.port == port).map(|one| &*one.value)
    }
}
