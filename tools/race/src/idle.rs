//! Cost of a connection that does nothing: memory, after one request on each.

use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::interrupt::Interrupt;
use crate::process::resident_memory_bytes;
use crate::verify::{OpenConnection, Subject};

/// So many of the idle connections are asked once more: they must still be there.
const ASKED_AGAIN_COUNT: usize = 10;

/// How long the last connection has been idle when the server is weighed: what only busy connections need may
/// have been given back by then.
const IDLE_FOR: Duration = Duration::from_secs(3);

/// How often it is looked whether the end is wanted, and what came over QUIC acknowledged.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Opens the cell's connections, asks once on each, and weighs the server; bytes per connection.
pub(crate) fn hold(
    subject: &Subject<'_>,
    processes: &[u32],
    seed: u64,
    interrupt: &Interrupt,
) -> Result<f64, String> {
    let count = subject.cell.connections;
    let ask = subject.question(seed);
    // What the first connections cost is not theirs alone: pools and tables are made.
    let mut lines = Vec::with_capacity(count);
    let mut before = 0;
    for number in 0..count {
        interrupt.check()?;
        if number == count / 100 {
            before = resident_memory_bytes(processes);
        }
        let mut connection = OpenConnection::open(subject.address, subject.cell.protocol)
            .map_err(|error| format!("connection {} of {count}: {error}", number + 1))?;
        connection
            .ask(&ask)
            .map_err(|error| format!("connection {} of {count}: {error}", number + 1))?;
        lines.push(connection);
    }
    let until = Instant::now() + IDLE_FOR;
    let mut block = vec![0; 64 * 1024];
    while Instant::now() < until {
        interrupt.check()?;
        for (number, line) in lines.iter_mut().enumerate() {
            line.acknowledge(&mut block)
                .map_err(|error| format!("idle connection {}: {error}", number + 1))?;
        }
        thread::sleep(LOOK_INTERVAL);
    }
    let after = resident_memory_bytes(processes);
    let mut random = Rng::with_seed(seed);
    for _ in 0..ASKED_AGAIN_COUNT.min(count) {
        let number = random.usize(..count);
        lines[number]
            .ask(&ask)
            .map_err(|error| format!("idle connection {} did not last: {error}", number + 1))?;
    }
    let held = count - count / 100;
    Ok((after as f64 - before as f64).max(0.0) / held.max(1) as f64)
}
