//! How the requests of a cell differ, so that a server can't live on having seen them before.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::catalogue::Cell;

/// How many files stand behind a route of files whose requests differ.
pub(crate) const FILES_COUNT: usize = 1000;

/// How often the most frequent file is requested while the last one is requested once: by Zipf's law
/// with exponent 1, the frequency of a file is inversely proportional to its rank.
const ZIPF_SCALE: usize = 100_000;

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

/// What a generated client sends with each call.
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

    /// What keys of cells end with.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Distinct => "-distinct",
            Self::Rpc => "-rpc",
        }
    }

    /// What titles of cells say.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Distinct => ", each request different",
            Self::Rpc => ", each connection different",
        }
    }
}

/// The paths of a cell whose route's path is `path`, each with its weight.
pub(crate) fn targets(cell: &Cell, path: &str) -> Vec<(usize, String)> {
    match cell.requests {
        Requests::Distinct if cell.route.is_file() => {
            (0..FILES_COUNT).map(|number| (ZIPF_SCALE / (number + 1), file(path, number))).collect()
        }
        Requests::Distinct => {
            vec![(1, format!("{path}?item=7b0d5e{{connection}}-{{request}}&page=2"))]
        }
        Requests::Same | Requests::Rpc => vec![(1, path.to_owned())],
    }
}

/// The path of one of [`FILES_COUNT`] files of one size.
pub(crate) fn file(path: &str, number: usize) -> String {
    format!("{path}-{number:03}")
}

/// The targets as a file for `bolide load --urls`.
pub(crate) fn list(targets: &[(usize, String)]) -> String {
    targets.iter().fold(String::new(), |mut list, (weight, target)| {
        let _ = writeln!(list, "{weight} {target}");
        list
    })
}

/// Text of a request with its placeholders replaced, as `bolide load` replaces them.
pub(crate) fn filled(text: &str, connection: usize, request: usize) -> String {
    text.replace("{connection}", &connection.to_string()).replace("{request}", &request.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_sends_twelve_fields_of_about_600_bytes() {
        let fields = Requests::Distinct.fields();
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert_eq!(fields.len(), 12);
        assert!((550..700).contains(&bytes), "{bytes}");
        let varies = fields.iter().filter(|(_, value)| value.contains("{connection}"));
        assert!(varies.map(|(name, _)| *name).eq(["user-agent", "referer", "cookie"]));
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(filled("/a?{connection}-{request}-{request}", 3, 12), "/a?3-12-12");
        assert_eq!(filled("{}", 3, 12), "{}");
    }
}
