//! The stages of a request, as docs/REQUEST.md counts its steps.

use bolide_eventloop::Stage as Metered;

/// The stages into which the CPU time of a request is split, in the order in which a request passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The kernel's part of reading from sockets.
    Receive,
    /// Opening TLS records; handshakes are in it.
    TlsOpen,
    /// From bytes to requests.
    Parse,
    /// Finding the handler.
    Route,
    /// The handler, pieces of bodies that it makes or takes among it, and what it asks other servers.
    Handler,
    /// From the response to bytes.
    Encode,
    /// Sealing TLS records.
    TlsSeal,
    /// The kernel's part of writing to sockets.
    Send,
    /// The loop: the cost of waiting, timers, new connections, metrics, the access log, and everything else.
    Loop,
}

/// The loop itself, and the system calls.
pub const LOOP: Metered = Metered::LOOP;
/// Records are opened.
pub const TLS_OPEN: Metered = Metered::of_service(0);
/// Bytes become events.
pub const PARSE: Metered = Metered::of_service(1);
/// A route is found.
pub const ROUTE: Metered = Metered::of_service(2);
/// A handler runs.
pub const HANDLER: Metered = Metered::of_service(3);
/// A response becomes bytes.
pub const ENCODE: Metered = Metered::of_service(4);
/// Records are sealed.
pub const TLS_SEAL: Metered = Metered::of_service(5);

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::Receive,
        Self::TlsOpen,
        Self::Parse,
        Self::Route,
        Self::Handler,
        Self::Encode,
        Self::TlsSeal,
        Self::Send,
        Self::Loop,
    ];

    /// Its name in metrics, tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::TlsOpen => "tls-open",
            Self::Parse => "parse",
            Self::Route => "route",
            Self::Handler => "handler",
            Self::Encode => "encode",
            Self::TlsSeal => "tls-seal",
            Self::Send => "send",
            Self::Loop => "loop",
        }
    }

    /// Its place among what a worker's meter measures.
    pub(super) const fn metered(self) -> Metered {
        match self {
            Self::Receive => Metered::RECEIVE,
            Self::TlsOpen => TLS_OPEN,
            Self::Parse => PARSE,
            Self::Route => ROUTE,
            Self::Handler => HANDLER,
            Self::Encode => ENCODE,
            Self::TlsSeal => TLS_SEAL,
            Self::Send => Metered::SEND,
            Self::Loop => LOOP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_place_and_a_name_of_its_own() {
        let mut places: Vec<_> = Stage::ALL.iter().map(|stage| stage.metered().index()).collect();
        places.sort_unstable();
        places.dedup();
        let names: std::collections::BTreeSet<_> = Stage::ALL.map(Stage::name).into();
        assert_eq!((places.len(), names.len()), (Stage::ALL.len(), Stage::ALL.len()));
    }
}
