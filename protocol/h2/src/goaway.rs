//! RFC 9113 §6.8: the orderly end of a connection, in two steps.

/// Greater than any stream.
pub(crate) const LAST_OF_ALL: u32 = 0x7fff_ffff;

/// How far our own shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Not begun.
    No,
    /// The first GOAWAY has been sent: requests that are on their way are still served.
    Announced,
    /// The GOAWAY with the last stream that is served has been sent.
    Final { last: u32 },
}

/// Both directions of a shutdown.
#[derive(Debug)]
pub(crate) struct Goaway {
    pub(crate) leaving: Leaving,
    /// The last stream that the peer serves, once it is leaving.
    received: Option<u32>,
}

impl Goaway {
    pub(crate) fn new() -> Self {
        Self { leaving: Leaving::No, received: None }
    }

    /// Returns whether a request on this stream is still served.
    #[inline]
    pub(crate) fn serves(&self, stream: u32) -> bool {
        match self.leaving {
            Leaving::No | Leaving::Announced => true,
            Leaving::Final { last } => stream <= last,
        }
    }

    /// Returns whether new streams may be opened by us.
    #[inline]
    pub(crate) fn may_open(&self) -> bool {
        self.leaving == Leaving::No && self.received.is_none()
    }

    pub(crate) fn is_final(&self) -> bool {
        matches!(self.leaving, Leaving::Final { .. })
    }

    /// The peer is leaving. The last stream may only become lower: false when it does not.
    pub(crate) fn receive(&mut self, last: u32) -> bool {
        let lowers = self.received.is_none_or(|before| last <= before);
        if lowers {
            self.received = Some(last);
        }
        lowers
    }

    /// Returns whether the peer is leaving.
    pub(crate) fn is_received(&self) -> bool {
        self.received.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_above_the_last_are_not_served() {
        let mut goaway = Goaway::new();
        assert!(goaway.serves(9) && goaway.may_open());
        goaway.leaving = Leaving::Announced;
        assert!(goaway.serves(9) && !goaway.may_open());
        goaway.leaving = Leaving::Final { last: 7 };
        assert!(goaway.serves(7) && !goaway.serves(9));
    }

    #[test]
    fn the_last_stream_never_rises() {
        let mut goaway = Goaway::new();
        assert!(goaway.receive(LAST_OF_ALL));
        assert!(goaway.receive(5));
        assert!(!goaway.receive(7));
        assert!(!goaway.may_open());
    }
}
