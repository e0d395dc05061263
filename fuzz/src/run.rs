//! One run, and what must hold in it.

use std::time::Duration;

use bolide_eventloop::Service;
use bolide_simnet::{Faults, Simulation};

/// Longer than every deadline, for as many requests as a script has, one after the other.
pub const TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a worker holds at most beyond four times what its peers sent, in bytes: its blocks, and what few connections hold by
/// `docs/MEMORY.md`.
pub const HELD_BYTES_MAX: u64 = 24 << 20;

/// A network without faults that cuts what is sent into pieces like this.
#[must_use]
pub fn network(piece: u16) -> Faults {
    let piece = usize::from(piece) + 1;
    Faults { segment_bytes: piece..=piece.max(1460), ..Faults::none() }
}

/// Runs until every deadline has come: nothing panics, no connection is left, and what is held stays within its bound.
///
/// # Panics
///
/// When that does not hold.
pub fn run<S: Service>(mut simulation: Simulation<S>) {
    let counted = allocation_counter::measure(|| simulation.run_for(TIME));
    let stats = simulation.stats();
    assert_eq!(stats.panics, 0, "a call panicked: {stats:?}");
    assert_eq!(stats.open, 0, "a connection outlives every deadline: {stats:?}");
    // The network keeps what it carried, too.
    let moved = 8 * (stats.bytes_received + stats.bytes_sent);
    let bound = HELD_BYTES_MAX + moved;
    assert!(counted.bytes_max <= bound, "{} bytes were held: {stats:?}", counted.bytes_max);
}
