//! A line between two places in virtual time: rate, queue, delay, jitter, loss, reordering. No
//! socket, no clock: packets and the time go in, packets and the next deadline come out.

mod codel;

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;

use crate::limits::LINE_HELD_BYTES;
use crate::shape::{Discipline, PACKET_BYTES, Queue, Shape};
use codel::Codel;

/// Nanoseconds since any fixed moment.
pub type Nanos = u64;

/// Fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at that time.
    Due(Nanos),
    /// It was lost, as asked.
    Lost,
    /// It found the queue full.
    QueueFull,
    /// CoDel dropped it.
    Codel,
    /// The line held [`LINE_HELD_BYTES`] already.
    Memory,
}

/// How many packets have had which fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Came out, or will.
    pub carried: u64,
    /// Bytes of those.
    pub carried_bytes: u64,
    /// Lost, as asked.
    pub lost: u64,
    /// Dropped by the full queue.
    pub queue_full: u64,
    /// Dropped by CoDel.
    pub codel: u64,
    /// Dropped because the line held too much.
    pub memory: u64,
}

/// One direction.
#[derive(Debug)]
pub struct Line<P> {
    shape: Shape,
    random: Rng,
    codel: Codel,
    /// When the last packet that was taken will have left the queue.
    free_at: Nanos,
    /// When each packet that waits for the rate, or is being sent, will have left; for a queue that
    /// counts packets.
    leaving: VecDeque<Nanos>,
    /// When the last packet in order comes out.
    last_due: Nanos,
    /// Packets on the way, by due time.
    held: VecDeque<Held<P>>,
    held_bytes: usize,
    counts: Counts,
}

#[derive(Debug)]
struct Held<P> {
    due: Nanos,
    bytes: usize,
    packet: P,
}

impl<P> Line<P> {
    /// An empty line; the same seed loses and delays the same packets.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let codel = Codel::new(shape.rate.map_or(0, |rate| sending_time(PACKET_BYTES, rate)));
        Self {
            shape,
            random: Rng::with_seed(seed),
            codel,
            free_at: 0,
            leaving: VecDeque::new(),
            last_due: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            counts: Counts::default(),
        }
    }

    /// Takes a packet of `bytes` (an IP packet with its headers) at `now`, which never goes back.
    pub fn push(&mut self, now: Nanos, packet: P, bytes: usize) -> Fate {
        let fate = self.fate(now, bytes);
        match fate {
            Fate::Due(due) => {
                self.counts.carried += 1;
                self.counts.carried_bytes += bytes as u64;
                self.held_bytes += bytes;
                let place = match self.held.back() {
                    Some(last) if last.due > due => self.held.partition_point(|h| h.due <= due),
                    _ => self.held.len(),
                };
                self.held.insert(place, Held { due, bytes, packet });
            }
            Fate::Lost => self.counts.lost += 1,
            Fate::QueueFull => self.counts.queue_full += 1,
            Fate::Codel => self.counts.codel += 1,
            Fate::Memory => self.counts.memory += 1,
        }
        fate
    }

    /// A packet that is due at `now`, with the time at which it was.
    pub fn pop(&mut self, now: Nanos) -> Option<(Nanos, P)> {
        let due = self.held.front().map(|held| held.due)?;
        if due > now {
            return None;
        }
        let held = self.held.pop_front()?;
        self.held_bytes -= held.bytes;
        Some((due, held.packet))
    }

    /// When the next packet is due; `None` if there is none.
    pub fn deadline(&self) -> Option<Nanos> {
        self.held.front().map(|held| held.due)
    }

    /// Bytes on the way.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns what has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns whether something of this probability happens now.
    fn happens(&mut self, probability: f64) -> bool {
        // Without it nothing is drawn, so that one setting doesn't move what another draws.
        probability > 0.0 && self.random.f64() < probability
    }

    fn fate(&mut self, now: Nanos, bytes: usize) -> Fate {
        if self.happens(self.shape.loss) {
            return Fate::Lost;
        }
        if self.held_bytes + bytes > LINE_HELD_BYTES {
            return Fate::Memory;
        }
        let left = match self.shape.rate {
            None => now,
            Some(rate) => match self.queue(now, bytes as u64, rate) {
                Ok(left) => left,
                Err(fate) => return fate,
            },
        };
        if self.happens(self.shape.reorder) {
            return Fate::Due(left);
        }
        let jitter = nanos(self.shape.jitter);
        let shift =
            if jitter == 0 { 0 } else { (self.random.f64() * 2.0 * jitter as f64) as Nanos };
        let due = left + (nanos(self.shape.delay) + shift).saturating_sub(jitter);
        // In order: what varies is the delay, not the order.
        self.last_due = self.last_due.max(due);
        Fate::Due(self.last_due)
    }

    /// Passes the queue: the time at which the last bit has left, or why it has not. The queue is
    /// first in, first out, so all of that is known when a packet comes.
    fn queue(&mut self, now: Nanos, bytes: u64, rate: u64) -> Result<Nanos, Fate> {
        let start = self.free_at.max(now);
        let waits = start - now;
        let full = match self.shape.queue {
            _ if waits == 0 => false,
            Queue::Packets(most) => {
                while self.leaving.front().is_some_and(|left| *left <= now) {
                    self.leaving.pop_front();
                }
                self.leaving.len() as u64 > u64::from(most)
            }
            queue @ Queue::Time(_) => {
                let waiting = u128::from(waits) * u128::from(rate) / 8_000_000_000;
                waiting + u128::from(bytes) > u128::from(queue.bytes(rate))
            }
        };
        if full {
            return Err(Fate::QueueFull);
        }
        if self.shape.discipline == Discipline::Codel && self.codel.drops(waits, start) {
            return Err(Fate::Codel);
        }
        self.free_at = start + sending_time(bytes, rate);
        if matches!(self.shape.queue, Queue::Packets(_)) {
            self.leaving.push_back(self.free_at);
        }
        Ok(self.free_at)
    }
}

/// How long `bytes` take at `rate` bits per second.
fn sending_time(bytes: u64, rate: u64) -> Nanos {
    Nanos::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1)))
        .unwrap_or(Nanos::MAX / 4)
}

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX / 4)
}

#[cfg(test)]
mod tests;
