//! RFC 9293, RFC 9002: what the kernel or QUIC says of the connections of a transfer.

use bolide_connection::QuicStats;
use bolide_eventloop::Path;

use crate::plan::Direction;

/// Knowledge of this side of some connections: what it sent again, or what came to it out of order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Segments sent again, of an upload.
    pub(crate) retransmits: Option<u64>,
    /// The congestion control of an upload.
    pub(crate) congestion_control: Option<String>,
    /// Segments that arrived out of order, of a download.
    pub(crate) out_of_order: Option<u64>,
}

impl Tcp {
    /// Asks about one connection that has carried its part.
    pub(crate) fn of(path: &dyn Path, direction: Direction) -> Self {
        match direction {
            Direction::Download => Self { out_of_order: path.out_of_order(), ..Self::default() },
            Direction::Upload => Self {
                retransmits: path.retransmits(),
                congestion_control: path.congestion_control(),
                out_of_order: None,
            },
        }
    }

    /// The same of a connection over QUIC: what was lost is sent again.
    pub(crate) fn of_quic(stats: &QuicStats, direction: Direction) -> Self {
        let is_upload = direction == Direction::Upload;
        Self { retransmits: is_upload.then_some(stats.packets_lost), ..Self::default() }
    }

    /// Adds another connection.
    pub(crate) fn add(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.retransmits = sum(self.retransmits, other.retransmits);
        self.out_of_order = sum(self.out_of_order, other.out_of_order);
        self.congestion_control = self.congestion_control.take().or(other.congestion_control);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A connection that had trouble in both directions.
    #[derive(Debug)]
    struct Troubled;

    impl Path for Troubled {
        fn rtt(&self) -> Option<Duration> {
            None
        }

        fn retransmits(&self) -> Option<u64> {
            Some(3)
        }

        fn out_of_order(&self) -> Option<u64> {
            Some(5)
        }

        fn congestion_control(&self) -> Option<String> {
            Some("cubic".to_owned())
        }
    }

    #[test]
    fn the_side_that_sends_knows_other_things_than_the_one_that_receives() {
        let mut upload = Tcp::of(&Troubled, Direction::Upload);
        upload.add(Tcp::of(&Troubled, Direction::Upload));
        assert_eq!((upload.retransmits, upload.out_of_order), (Some(6), None));
        assert_eq!(upload.congestion_control.as_deref(), Some("cubic"));
        let mut download = Tcp::default();
        download.add(Tcp::of(&Troubled, Direction::Download));
        download.add(Tcp::of(&Troubled, Direction::Download));
        // Where nothing is known of one, the others still are.
        download.add(Tcp::of(&(), Direction::Download));
        let expected = Tcp { out_of_order: Some(10), ..Tcp::default() };
        assert_eq!(download, expected);
    }
}
