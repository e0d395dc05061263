//! What can move bulk data: raw TCP, and each contender in each of its protocols.

use serde::{Deserialize, Serialize};

use crate::catalogue::{Cell, Cores, Kind, Protocol, Route};
use crate::contender::Contender;

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

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stack {
    /// `raw`, or the contender's name.
    pub(super) name: String,
    /// What tables say.
    pub(super) title: String,
    /// `None`: TCP with nothing on it.
    pub(super) protocol: Option<Protocol>,
    /// Whether it takes uploads.
    pub(super) uploads: bool,
}

impl Stack {
    /// TCP with nothing on it.
    pub(super) fn raw() -> Self {
        Self { name: "raw".to_owned(), title: "raw TCP".to_owned(), protocol: None, uploads: true }
    }

    /// The rows of a contender.
    pub(super) fn of(contender: &Contender) -> Vec<Self> {
        let has = |route: &str| contender.routes.iter().any(|name| name == route);
        if !has("bulk") {
            return Vec::new();
        }
        let row = |protocol: &Protocol| Self {
            name: contender.name.clone(),
            title: format!("{} {}", contender.shown(), protocol.title()),
            protocol: Some(*protocol),
            uploads: has("bulk-put"),
        };
        contender.protocols.iter().map(row).collect()
    }

    /// Gbit/s that others have published for this stack, in this lab's shape: on their machine.
    pub(super) fn published(&self, direction: Direction) -> Option<f64> {
        let protocol = self.protocol;
        let (down, up) = match (self.name.as_str(), protocol) {
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

    /// Whether it can be measured in this direction.
    pub(super) fn goes(&self, direction: Direction) -> bool {
        direction == Direction::Download || self.uploads
    }
}

/// The cell that says which command of a contender speaks a protocol.
pub(super) fn cell(protocol: Protocol) -> Cell {
    Cell {
        protocol,
        route: Route::Ping,
        connections: 1,
        depth: 1,
        size: 0,
        window: None,
        load: Kind::Closed,
        cores: Cores::One,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_has_a_row_for_each_protocol_and_says_whether_it_takes_uploads() {
        let of = |routes: &str| {
            let text = format!(
                "name = 'go'\nprotocols = ['h1', 'h2c']\nroutes = [{routes}]\n[start]\ncommand = ['x']"
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
    }
}
