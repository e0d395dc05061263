//! Readiness of a socket, as the kernel has reported it and no call has used it up.

use crate::kernel::Ready;

/// Readiness to be read.
///
/// ```text
///            readable            FIN or an error
///  Drained ───────────▶ Ready ───────────────────▶ ToEnd
///     ▲   short read,     │                          │
///     └───────────────────┴──────────────────────────┤
///         WouldBlock                      WouldBlock │ a read of no bytes,
///                                                    ▼ from Ready as well
///                                                  Ended
/// ```
///
/// What is reported together is passed through at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reading {
    /// Nothing, until the kernel reports something.
    #[default]
    Drained,
    /// Bytes. A read that comes short has drained the socket.
    Ready,
    /// Bytes and the end, which can share one event: a read that comes short is not the last.
    ToEnd,
    /// Nothing any more: the peer's FIN was read.
    Ended,
}

impl Reading {
    /// The kernel reported something; `failed`: now or before, an error.
    #[inline]
    pub(crate) fn reported(&mut self, ready: Ready, failed: bool) {
        let may_end = ready.read_closed || ready.failed || (ready.readable && failed);
        *self = match *self {
            Self::Drained | Self::Ready if may_end => Self::ToEnd,
            Self::Drained if ready.readable => Self::Ready,
            unchanged => unchanged,
        };
    }

    /// A read brought fewer bytes than there was room for.
    #[inline]
    pub(crate) fn came_short(&mut self) {
        if *self == Self::Ready {
            *self = Self::Drained;
        }
    }

    #[inline]
    pub(crate) fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::ToEnd)
    }
}

/// Readiness to be written.
///
/// ```text
///  Connecting ───┐ writable
///                ▼          a flush         the socket is full
///              Room ─────────────────▶ Open ───────────────────▶ Blocked
///                ▲                                                  │ writable
///                └──────────────────────────────────────────────────┘
/// ```
///
/// A write that fails leads to `Lost` from where there is something to be read, and to the end from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Writing {
    /// Not before the connection is established.
    Connecting,
    /// As far as is known.
    #[default]
    Open,
    /// No more, until the kernel reports room.
    Blocked,
    /// Room was reported: what waits is to be flushed.
    Room,
    /// Nothing any more: a write has failed.
    Lost,
}

impl Writing {
    /// The kernel reported room. A connection that has failed is not established by that.
    #[inline]
    pub(crate) fn reported(&mut self, failed: bool) {
        match self {
            Self::Blocked => *self = Self::Room,
            Self::Connecting if !failed => *self = Self::Room,
            Self::Connecting | Self::Open | Self::Room | Self::Lost => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READABLE: Ready =
        Ready { key: 0, readable: true, writable: false, read_closed: false, failed: false };

    #[test]
    fn a_short_read_drains_a_socket_unless_its_end_may_follow() {
        let mut reading = Reading::default();
        reading.reported(READABLE, false);
        assert_eq!(reading, Reading::Ready);
        reading.came_short();
        assert_eq!(reading, Reading::Drained);
        reading.reported(Ready { read_closed: true, ..READABLE }, false);
        reading.came_short();
        reading.reported(READABLE, false);
        assert_eq!(reading, Reading::ToEnd);
        reading = Reading::Ended;
        reading.reported(Ready { failed: true, ..READABLE }, true);
        assert_eq!(reading, Reading::Ended);
    }

    #[test]
    fn a_connection_that_failed_is_not_established_by_room() {
        let mut writing = Writing::Connecting;
        writing.reported(true);
        assert_eq!(writing, Writing::Connecting);
        writing.reported(false);
        assert_eq!(writing, Writing::Room);
    }
}
