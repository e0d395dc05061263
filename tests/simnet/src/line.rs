//! One connection: two directions, each with bytes under way.

use std::collections::VecDeque;
use std::time::Duration;

use bolide_eventloop::kernel::Ready;

/// A connection between a client and the worker.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Key with which the worker registered it.
    pub(crate) key: Option<u64>,
    /// The worker makes it, and the far end has not answered yet.
    pub(crate) connecting: bool,
    /// The far end did not want it.
    pub(crate) refused: bool,
    /// The way between has failed: nothing sent from here on arrives but the resets.
    pub(crate) severed: bool,
    /// Closing it resets it.
    pub(crate) resets: bool,
    /// The worker has closed it.
    pub(crate) closed: bool,
    /// Bytes on their way to the worker.
    pub(crate) toward: Toward,

    /// Bytes on their way to the client, or waiting for it to read.
    pub(crate) going: usize,
    /// Of these, the bytes that wait for it to read.
    pub(crate) unread: VecDeque<u8>,
    /// The worker has ended its side.
    pub(crate) ended: bool,
    /// The worker was told that there is no room, and must be told when there is.
    pub(crate) owed_room: bool,
    /// When the last segment to the client arrives.
    pub(crate) delivered_at: Duration,
    /// The side of the client.
    pub(crate) client: ClientEnd,
}

/// The side of the client.
#[derive(Debug, Default)]
pub(crate) struct ClientEnd {
    /// Everything that the client has read.
    pub(crate) received: Vec<u8>,
    pub(crate) eof: bool,
    pub(crate) reset: bool,
    pub(crate) stopped: bool,
    /// Bytes that the client has sent and that have not left.
    pub(crate) outbox: VecDeque<u8>,
    pub(crate) fin: bool,
}

/// Bytes on their way to the worker.
#[derive(Debug, Default)]
pub(crate) struct Toward {
    /// Bytes that the worker may read.
    pub(crate) arrived: VecDeque<u8>,
    /// FIN stands behind them.
    pub(crate) fin_arrived: bool,
    /// The worker's side is reset.
    pub(crate) reset_arrived: bool,
    /// Bytes on their way to the worker.
    pub(crate) coming: usize,
    /// FIN is on its way.
    pub(crate) fin_sent: bool,
    /// When the last segment to the worker arrives; none overtakes it.
    pub(crate) arrives_at: Duration,
}

impl Line {
    /// Returns whether what is sent no longer arrives.
    pub(crate) fn is_cut(&self) -> bool {
        self.severed || self.client.reset
    }

    /// The line as the worker's poller sees it.
    pub(crate) fn ready(&self, key: u64, buffer_bytes: usize) -> Ready {
        Ready {
            key,
            readable: !self.toward.arrived.is_empty()
                || self.toward.fin_arrived
                || self.toward.reset_arrived,
            writable: !self.connecting && self.going < buffer_bytes || self.toward.reset_arrived,
            read_closed: self.toward.fin_arrived || self.toward.reset_arrived,
            failed: self.toward.reset_arrived,
        }
    }
}
