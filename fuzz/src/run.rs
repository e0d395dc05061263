//! One run, and what must hold in it.

use std::time::Duration;

use bolide_eventloop::{Service, Stats};
use bolide_simnet::{Faults, Simulation};

/// Longer than every deadline, for as many requests as a script has, one after the other.
const TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// Memory that a worker has besides its first block, whatever its connections do, in bytes: where heads and output are written, and room for
/// streams, timers and pooled connections.
const WORKER_BYTES: u64 = 256 << 10;

/// Memory that a connection has of its own before it is charged with anything, in bytes: session, exchange and header tables.
const CONNECTION_BYTES: u64 = 8 << 10;

/// A slice of a block that is at least `SLICE_BYTES` long may keep the whole block, in bytes.
const BLOCK_BYTES: u64 = 256 << 10;

/// Shorter ones are copied.
const SLICE_BYTES: u64 = 64 << 10;

/// A network without faults that cuts what is sent into pieces like this.
#[must_use]
pub fn network(piece: u16) -> Faults {
    let piece = usize::from(piece) + 1;
    Faults { segment_bytes: piece..=piece.max(1460), ..Faults::none() }
}

/// Runs until every deadline has come: nothing panics, no connection is left, and after each turn the worker has no more memory than its
/// account says.
pub fn run<S: Service>(mut simulation: Simulation<S>) {
    simulation.around_network(|work| allocation_counter::opt_out(work));
    let mut allocated = 0;
    let mut goes_on = true;
    let mut before = simulation.stats();
    while goes_on && simulation.now() < TIME {
        let rest = TIME - simulation.now();
        let counted = allocation_counter::measure(|| goes_on = simulation.step(Some(rest)));
        allocated += counted.bytes_current;
        let stats = simulation.stats();
        check(allocated, before.held_bytes.max(stats.held_bytes), &stats);
        before = stats;
    }
    let stats = simulation.stats();
    assert_eq!(stats.panics, 0, "a call panicked: {stats:?}");
    assert_eq!(stats.open, 0, "a connection outlives every deadline: {stats:?}");
    assert_eq!(stats.held_bytes, 0, "the account of no connection: {stats:?}");
}

/// `held_bytes`: in this turn or the one before, because what a connection shared with another when it ended goes in that one's next turn.
fn check(allocated: i64, held_bytes: u64, stats: &Stats) {
    let open = stats.open;
    let blocks = open.min(held_bytes / SLICE_BYTES);
    let uncharged = WORKER_BYTES + open * CONNECTION_BYTES + blocks * BLOCK_BYTES;
    let bound = held_bytes * 13 / 10 + uncharged;
    assert!(
        allocated <= bound as i64,
        "{allocated} bytes are allocated, {bound} is the bound: {stats:?}"
    );
}
