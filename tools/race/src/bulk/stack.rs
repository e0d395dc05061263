//! Stacks that can move bulk data: raw TCP, and each contender in each of its protocols.

use serde::{Deserialize, Serialize};

use crate::catalogue::{Cell, Certificate, Cores, Kind, Protocol, Route};
use crate::contender::Contender;
use crate::differing::Requests;

/// Which way the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    Download,
    Upload,
}

impl Direction {
    pub(super) const ALL: [Self; 2] = [Self::Download, Self::Upload];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Download => "download: server → client",
            Self::Upload => "upload: client → server",
        }
    }
}

/// How the payload gets from one side to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// The client asks the server.
    #[default]
    Direct,
    /// The client asks a proxy, which asks a server of HTTP/1.1.
    Proxy,
    /// In messages of a WebSocket.
    Ndt7,
    /// The client is a browser.
    Browser,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stack {
    /// `raw`, `chromium`, or the contender's name.
    pub(super) name: String,
    /// Title in tables.
    pub(super) title: String,
    /// `None`: TCP with nothing on it.
    pub(super) protocol: Option<Protocol>,
    /// True if it takes uploads.
    pub(super) uploads: bool,
    #[serde(default)]
    pub(super) way: Way,
}

/// The contender that a browser asks.
pub(super) const BROWSERS_SERVER: &str = "bolide";

/// Name of a browser's row in `--only`.
pub(super) const BROWSER: &str = "chromium";

impl Stack {
    /// TCP with nothing on it.
    pub(super) fn raw() -> Self {
        Self {
            name: "raw".to_owned(),
            title: "raw TCP".to_owned(),
            protocol: None,
            uploads: true,
            way: Way::Direct,
        }
    }

    /// The rows of a browser: over TLS, for without it no browser speaks HTTP/2.
    pub(super) fn browser() -> [Self; 2] {
        [Protocol::H1s, Protocol::H2].map(|protocol| Self {
            name: BROWSER.to_owned(),
            title: format!("Bolide to Chromium's fetch() {}", protocol.title()),
            protocol: Some(protocol),
            uploads: true,
            way: Way::Browser,
        })
    }

    /// The rows of a contender.
    pub(super) fn of(contender: &Contender) -> Vec<Self> {
        let has = |route: &str| contender.routes.iter().any(|name| name == route);
        let row = |protocol: Protocol, way: Way, what: &str| Self {
            name: contender.name.clone(),
            title: format!("{} {what}", contender.shown()),
            protocol: Some(protocol),
            uploads: way != Way::Direct || has("bulk-put"),
            way,
        };
        let mut rows = Vec::new();
        for protocol in &contender.protocols {
            let shown = protocol.title();
            if has("bulk") {
                rows.push(row(*protocol, Way::Direct, shown));
            }
            match protocol {
                Protocol::H1 if has("ndt7") => rows.push(row(*protocol, Way::Ndt7, "ndt7 (ws)")),
                Protocol::H1s if has("ndt7") => rows.push(row(*protocol, Way::Ndt7, "ndt7 (wss)")),
                Protocol::H2c | Protocol::H2 if has("bulk-proxy") => {
                    rows.push(row(*protocol, Way::Proxy, &format!("as a proxy, {shown}")));
                }
                _ => {}
            }
        }
        rows
    }

    /// The contender that serves it; `None`: raw TCP.
    pub(super) fn server(&self) -> Option<&str> {
        match self.way {
            Way::Browser => Some(BROWSERS_SERVER),
            _ => self.protocol.map(|_| self.name.as_str()),
        }
    }

    /// Gbit/s that others have published for this stack, in this lab's shape: on their machine.
    pub(super) fn published(&self, direction: Direction) -> Option<f64> {
        let protocol = self.protocol;
        let (down, up) = match (self.name.as_str(), protocol) {
            ("go", Some(Protocol::H1s)) if self.way == Way::Ndt7 => (20.0, 19.0),
            _ if self.way != Way::Direct => return None,
            ("raw", None) => (52.0, 53.0),
            ("go", Some(Protocol::H1)) => (47.0, 45.0),
            ("go", Some(Protocol::H1s)) => (20.0, 20.0),
            ("go", Some(Protocol::H2c)) => (5.0, 8.0),
            ("go", Some(Protocol::H2)) => (4.0, 7.0),
            ("hyper", Some(Protocol::H2c)) => (18.0, 21.0),
            ("hyper", Some(Protocol::H2)) => (11.0, 12.0),
            _ => return None,
        };
        Some(if direction == Direction::Download { down } else { up })
    }

    /// Returns whether it can be measured in this direction.
    pub(super) fn goes(&self, direction: Direction) -> bool {
        direction == Direction::Download || self.uploads
    }
}

/// The cell that says which command of a contender speaks a protocol, as a server or a proxy.
pub(super) fn cell(protocol: Protocol, way: Way) -> Cell {
    Cell {
        protocol,
        route: if way == Way::Proxy { Route::Proxy6 } else { Route::Ping },
        connections: 1,
        depth: 1,
        size: 0,
        window: None,
        load: Kind::Closed,
        cores: Cores::One,
        certificate: Certificate::default(),
        requests: Requests::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_has_a_row_for_each_protocol_and_says_whether_it_takes_uploads() {
        let of = |routes: &str| {
            let text = format!(
                "name = 'go'\nprotocols = ['h1', 'h2c']\nroutes = [{routes}]\n[start]\ncommand = ['x']\n\
                 proxy_command = ['y']"
            );
            Stack::of(&Contender::parse(&text, "go.toml").unwrap())
        };
        assert!(of("'ping'").is_empty());
        let rows = of("'ping', 'bulk'");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].title, "go h2c");
        assert!(rows[0].goes(Direction::Download) && !rows[0].goes(Direction::Upload));
        let rows = of("'bulk', 'bulk-put'");
        assert!(rows[0].goes(Direction::Upload));
        assert_eq!(rows[1].published(Direction::Upload), Some(8.0));
        assert_eq!(Stack::raw().published(Direction::Download), Some(52.0));
        let third = "name = 'go'\nprotocols = ['h3']\nroutes = ['bulk', 'bulk-proxy']\n[start]\n\
                     command = ['x']\nproxy_command = ['y']";
        let third = Stack::of(&Contender::parse(third, "go.toml").unwrap());
        assert_eq!((third.len(), third[0].title.as_str()), (1, "go HTTP/3"));
        let rows = of("'bulk', 'bulk-proxy', 'ndt7'");
        let ways: Vec<Way> = rows.iter().map(|row| row.way).collect();
        assert_eq!(ways, [Way::Direct, Way::Ndt7, Way::Direct, Way::Proxy]);
        assert!(rows[1].goes(Direction::Upload) && rows[3].goes(Direction::Upload));
        assert_eq!(rows[3].published(Direction::Upload), None, "a proxy is another row");
        assert_eq!(Stack::browser()[1].server(), Some("bolide"));
        assert_eq!(Stack::raw().server(), None);
    }
}
