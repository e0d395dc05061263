//! RFC 9113 §3, RFC 9114 §3, RFC 7301: from how a server is reached to what a connection begins with.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bolide_client::{
    Alpn, ClientOptions, ClientTls, Dial, Speaks, Trust, WallClock, platform_trust,
};
use bolide_connection::Limits;
use bolide_eventloop::Destination;
use bolide_probe::patient::patient_limits;
use bolide_probe::plan::ServerAddress;
use bolide_semantics::{Scheme, Url};

use crate::plan::{Connecting, Trusted, Version};

/// Everything that connections to one server have in common.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) dial: Dial,
    pub(crate) limits: Limits,
    pub(crate) destination: Destination,
    /// For `:scheme`.
    pub(crate) scheme: &'static str,
    /// For `:authority` and Host.
    pub(crate) authority: String,
}

impl Route {
    /// Finds out how the server is reached.
    ///
    /// # Errors
    ///
    /// What stands in the way, in a sentence.
    pub(crate) fn new(connecting: &Connecting) -> Result<Self, String> {
        let origin = &connecting.origin;
        let destination = match origin.addresses.first() {
            Some(ServerAddress::Inet(address)) if connecting.version == Version::Http3 => {
                Destination::Datagrams(*address)
            }
            Some(ServerAddress::Inet(address)) => Destination::Inet(*address),
            Some(ServerAddress::Unix(path)) if connecting.version == Version::Http3 => {
                return Err(format!("HTTP/3 needs UDP, and {} is a Unix socket", path.display()));
            }
            Some(ServerAddress::Unix(path)) => Destination::Unix(Arc::from(path.as_path())),
            None => return Err(format!("`{}` has no address", origin.authority)),
        };
        let limits = limits(connecting);
        let speaks = match (origin.is_https, connecting.version) {
            (true, version) => tls(connecting, version)?,
            (false, Version::Http2) => Speaks::Http2,
            (false, Version::Http3) => return Err("HTTP/3 needs an https:// URL".to_owned()),
            (false, Version::Http1 | Version::Negotiated) => Speaks::Http1,
        };
        let dial = Dial { speaks, timeout: connecting.timeout, preamble: None };
        dial.check(&limits, Instant::now())
            .map_err(|error| format!("the server's name for TLS can't be used: {error}"))?;
        Ok(Self {
            dial,
            limits,
            destination,
            scheme: if origin.is_https { "https" } else { "http" },
            authority: origin.authority.clone(),
        })
    }

    /// Returns whether there is TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == "https"
    }
}

/// A server that is slow is measured, not given up; one that sends a lot is what we came for.
fn limits(connecting: &Connecting) -> Limits {
    let mut limits = patient_limits(connecting.timeout);
    let h2 = Arc::make_mut(&mut limits.h2);
    if let Some(bytes) = connecting.window_bytes {
        (h2.windows.stream_window_bytes, h2.windows.stream_window_bytes_max) = (bytes, bytes);
        (h2.windows.connection_window_bytes, h2.windows.connection_window_bytes_max) =
            (bytes, bytes);
    }
    if let Some(bytes) = connecting.frame_bytes {
        (h2.frames.frame_bytes, h2.frames.data_frame_bytes) = (bytes, bytes);
    }
    limits
}

fn tls(connecting: &Connecting, version: Version) -> Result<Speaks, String> {
    let trust = match &connecting.trusted {
        Trusted::Platform => platform_trust().map_err(|error| error.to_string())?,
        Trusted::Roots(pem) => Trust::Pem(pem.to_vec()),
        Trusted::Any => Trust::Any,
    };
    let (alpn, required): (&[Alpn], _) = match version {
        Version::Negotiated => (&[Alpn::H2, Alpn::Http11], None),
        Version::Http1 => (&[Alpn::Http11], Some(Alpn::Http11)),
        Version::Http2 => (&[Alpn::H2], Some(Alpn::H2)),
        // QUIC's handshake offers h3 by itself.
        Version::Http3 => (&[], None),
    };
    // A new connection costs what it costs a client that was never there.
    let options =
        ClientOptions { trust: &trust, alpn, identity: None, resume: false, early_data: false };
    let settings = ClientTls::with(&options, WallClock(SystemTime::now))
        .map_err(|error| format!("the file of trusted certificates can't be used: {error}"))?;
    let authority = &connecting.origin.authority;
    // An authority that came out of a URL is taken apart like one.
    let host = Url::parse(&format!("https://{authority}"), &Scheme::HTTP)?.host;
    Ok(Speaks::Tls { settings, server_name: host, required })
}
