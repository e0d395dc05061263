//! How the requests of a cell differ, so that a server can't live on having seen them before.

use serde::{Deserialize, Serialize};

/// How long the large file is, in bytes.
pub(crate) const LARGE_FILE_BYTES: usize = 16 << 20;

/// How the requests of a cell differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// Every connection repeats the same request.
    #[default]
    Same,
    /// Each request has a query of its own (or one of 1,000 files, Zipf-distributed), each connection
    /// the cookie, user agent and referer of another browser.
    Distinct,
    /// Each connection repeats the call of another client.
    Rpc,
}

/// About 600 bytes: what a browser sends that opens a page.
const BROWSER: &[(&str, &str)] = &[
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/120.0.{connection}.0 Safari/537.36",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("accept-language", "de-DE,de;q=0.9,en-US;q=0.8"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("referer", "https://www.example.com/catalogue/{connection}?page=2"),
    ("cookie", "session=4f1c9a07e2{connection}b83d; theme=dark; consent=necessary"),
    ("cache-control", "max-age=0"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-user", "?1"),
];

/// Fields that a generated client sends with each call.
const CALL: &[(&str, &str)] = &[
    ("content-type", "application/octet-stream"),
    ("user-agent", "client-rust/1.{connection}.0"),
    ("accept", "application/octet-stream"),
    ("accept-language", "en"),
    ("authorization", "Bearer 9e8d7c6b5a{connection}f4e3d2c1b0a9988776655"),
    ("x-customer", "customer-{connection}"),
    ("x-request-timeout", "5S"),
    ("x-api-version", "2024-11-05"),
];

impl Requests {
    /// Fields of each request besides those of its route; with placeholders of `bolide load`.
    pub(crate) fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Same => &[],
            Self::Distinct => BROWSER,
            Self::Rpc => CALL,
        }
    }

    /// Returns what keys of cells end with.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Distinct => "-distinct",
            Self::Rpc => "-rpc",
        }
    }

    /// Returns what titles of cells say.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Distinct => ", each request different",
            Self::Rpc => ", each connection different",
        }
    }

    /// The same in one word.
    pub(crate) fn short_title(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Distinct => ", distinct",
            Self::Rpc => ", by connection",
        }
    }
}
