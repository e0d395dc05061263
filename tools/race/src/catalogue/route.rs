//! Routes, and their right responses.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// Events of a stream.
pub(crate) const EVENTS_COUNT: usize = 20;

/// The time between two of them, in milliseconds.
pub(crate) const EVENTS_GAP_MS: usize = 10;

/// Data of each, in bytes.
pub(crate) const EVENT_BYTES: usize = 64;

/// Route that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `GET /ping`: `pong`.
    Ping,
    /// `GET /echo?size=N`: N times `x`.
    Echo,
    /// `POST /echo`: the body back.
    Post,
    /// A gRPC call: the message back.
    Grpc,
    /// A file of 6 bytes.
    #[serde(rename = "static-6")]
    Static6,
    /// A file of 4,096 bytes.
    #[serde(rename = "static-4k")]
    Static4k,
    /// A file of 16 MiB.
    #[serde(rename = "static-16m")]
    Static16m,
    /// The same file of 6 bytes, through a proxy.
    #[serde(rename = "proxy-6")]
    Proxy6,
    /// The same file of 4,096 bytes, through a proxy.
    #[serde(rename = "proxy-4k")]
    Proxy4k,
    /// `GET /events`: 20 events, 10 ms apart.
    Events,
    /// The same events, through a proxy.
    ProxyEvents,
    /// `GET /ping` of those that also run with their access log on.
    Logged,
    /// An asset of the site: a file of 4,096 bytes.
    SiteAsset,
    /// A path of the site without a file: its `index.html`.
    SitePage,
    /// JSON of 20 KiB from the site's upstream, compressed by gzip.
    SiteApi,
    /// A file of 6 bytes, below a path with a rate limit.
    SiteLimited,
    /// A 302 to another path.
    SiteRedirect,
}

impl Route {
    /// The names by which contenders say that they serve it.
    pub const NAMES: [&'static str; 16] = [
        "ping",
        "echo",
        "post",
        "grpc",
        "static-6",
        "static-4k",
        "static-16m",
        "proxy",
        "events",
        "proxy-events",
        "logged",
        "site-asset",
        "site-page",
        "site-api",
        "site-limited",
        "site-redirect",
    ];

    /// The one of [`NAMES`](Self::NAMES) that covers it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Echo => "echo",
            Self::Post => "post",
            Self::Grpc => "grpc",
            Self::Static6 => "static-6",
            Self::Static4k => "static-4k",
            Self::Static16m => "static-16m",
            Self::Proxy6 | Self::Proxy4k => "proxy",
            Self::Events => "events",
            Self::ProxyEvents => "proxy-events",
            Self::Logged => "logged",
            Self::SiteAsset => "site-asset",
            Self::SitePage => "site-page",
            Self::SiteApi => "site-api",
            Self::SiteLimited => "site-limited",
            Self::SiteRedirect => "site-redirect",
        }
    }

    /// Returns whether requests have a body, which comes back.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Grpc)
    }

    /// Returns whether a file is requested.
    pub fn is_file(self) -> bool {
        matches!(
            self,
            Self::Static6
                | Self::Static4k
                | Self::Static16m
                | Self::Proxy6
                | Self::Proxy4k
                | Self::SiteAsset
                | Self::SiteLimited
        )
    }

    /// Returns whether it is a part of the site, which a contender starts by `site_command`.
    pub fn is_site(self) -> bool {
        self.name().starts_with("site-")
    }

    /// The status of a right response.
    pub fn status(self) -> StatusCode {
        if self == Self::SiteRedirect { StatusCode::FOUND } else { StatusCode::OK }
    }

    /// Returns whether the bytes of a right response are the contender's choice: a content coding, which is decoded to be compared,
    /// or the text of a redirect, whose `location` is compared instead.
    pub fn has_own_bytes(self) -> bool {
        matches!(self, Self::SiteApi | Self::SiteRedirect)
    }

    /// Returns whether a backend is needed.
    pub fn is_proxy(self) -> bool {
        matches!(self, Self::Proxy6 | Self::Proxy4k | Self::ProxyEvents)
    }
}
