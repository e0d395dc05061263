//! A far end that sends a greeting, and later many pieces.

use std::time::{Duration, Instant, SystemTime};

use bolide_eventloop::Service;
use bolide_server::{Limits, LoopLimits, Router, worker_service};
use bolide_simnet::{Client, Faults, Simulation, Wire};

use crate::cost::Cost;

/// When the pieces begin: all greetings have been understood by then.
pub(crate) const BEGINNING: Duration = Duration::from_millis(50);

/// After the last piece was sent, everything has come to rest by then.
const REST: Duration = Duration::from_millis(100);

/// How the pieces are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Together: many arrive with one read.
    AtOnce,
    /// Each by itself: the worker has a turn for each.
    OneByOne,
}

/// Bytes that one end sends.
pub(crate) struct Talk {
    greeting: Vec<u8>,
    opening: Vec<u8>,
    piece: Box<dyn Fn(usize) -> Vec<u8>>,
    count: usize,
    pace: Pace,
    reads: bool,
    sent: usize,
    due: Duration,
    is_open: bool,
}

impl Talk {
    /// Sends `greeting` when the connection is made.
    pub(crate) fn new(greeting: impl Into<Vec<u8>>) -> Self {
        Self {
            greeting: greeting.into(),
            opening: Vec::new(),
            piece: Box::new(|_| Vec::new()),
            count: 0,
            pace: Pace::AtOnce,
            reads: true,
            sent: 0,
            due: BEGINNING,
            is_open: false,
        }
    }

    /// Sends this before the first piece.
    pub(crate) fn opening(self, opening: impl Into<Vec<u8>>) -> Self {
        Self { opening: opening.into(), ..self }
    }

    /// Sends so many pieces.
    pub(crate) fn pieces(self, count: usize, pace: Pace, piece: impl Into<Vec<u8>>) -> Self {
        let piece = piece.into();
        self.each_piece(count, pace, move |_| piece.clone())
    }

    /// The same with pieces that differ.
    pub(crate) fn each_piece(
        self,
        count: usize,
        pace: Pace,
        piece: impl Fn(usize) -> Vec<u8> + 'static,
    ) -> Self {
        Self { count, pace, piece: Box::new(piece), ..self }
    }

    /// Never reads.
    pub(crate) fn deaf(self) -> Self {
        Self { reads: false, ..self }
    }
}

impl Client for Talk {
    fn advance(&mut self, wire: &mut Wire<'_>) {
        if wire.was_reset() {
            return;
        }
        if wire.is_new() {
            wire.read(self.reads);
            wire.send(&self.greeting);
            wire.wake_after(BEGINNING.saturating_sub(wire.now()));
        }
        if wire.now() < self.due {
            return;
        }
        if !std::mem::replace(&mut self.is_open, true) {
            wire.send(&self.opening);
        }
        let until = match self.pace {
            Pace::AtOnce => self.count,
            Pace::OneByOne => self.count.min(self.sent + 1),
        };
        let bytes: Vec<u8> = (self.sent..until).flat_map(|nth| (self.piece)(nth)).collect();
        self.sent = until;
        wire.send(&bytes);
        if self.sent < self.count {
            self.due = wire.now() + Duration::from_micros(1);
            wire.wake_after(Duration::from_micros(1));
        }
    }
}

/// A quick network whose ends hold so many bytes for a reader that does not read.
pub(crate) fn network(buffer_bytes: usize) -> Faults {
    Faults { segment_bytes: buffer_bytes..=buffer_bytes, buffer_bytes, ..Faults::none() }
}

fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// A worker with these routes on such a network.
pub(crate) fn simulation(
    faults: Faults,
    router: impl FnOnce() -> Router,
) -> Simulation<impl Service> {
    let start = Instant::now();
    Simulation::with(1, faults, LoopLimits::default(), |_| {
        worker_service(router(), Limits::default(), wall_clock, start)
    })
}

/// Lets the greetings pass, then measures what the worker does with `count` pieces. Nothing may be closed meanwhile.
pub(crate) fn measure<S: Service>(mut simulation: Simulation<S>, count: usize) -> Cost {
    simulation.run_for(BEGINNING - Duration::from_micros(1));
    let before = simulation.stats();
    let cost = Cost::of(|| {
        simulation.run_for(REST + Duration::from_micros(count as u64));
    });
    let after = simulation.stats();
    assert_eq!(after.panics, 0);
    assert!(after.bytes_received - before.bytes_received >= count as u64, "all arrived: {after:?}");
    assert!(after.open >= before.open, "a connection was closed: {before:?} {after:?}");
    cost
}
