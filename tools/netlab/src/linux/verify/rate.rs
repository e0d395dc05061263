//! The rate of a limited direction, measured with packets of UDP: TCP would have to find it first.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use super::{HEADERS_BYTES, pair};
use crate::Mistake;
use crate::linux::carrier::Direction;
use crate::linux::shaping::{ETHERNET_BYTES, Shaper, burst};
use crate::shape::Shape;
use crate::spec::Spec;

/// So much more than the rate is offered.
const OFFERED: f64 = 1.25;

/// Packets per second that are enough for slow lines.
const PACKETS_PER_SECOND: f64 = 50.0;

/// How long packets are offered, beyond what fills a token bucket.
const OFFER_TIME: Duration = Duration::from_millis(1500);

/// Packets that come first and aren't counted: the line was idle before them.
const SKIPPED_COUNT: usize = 5;

/// Bits per second of IP packets that come out of a direction limited to `asked`.
pub(super) fn limited(
    spec: &Spec,
    direction: Direction,
    shape: &Shape,
    asked: u64,
    shaper: Shaper,
) -> Result<f64, Mistake> {
    let (client, server) = pair(spec)?;
    let (from, to) = match direction {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    let in_kernel = matches!(shaper, Shaper::Tbf | Shaper::Netem);
    let plan = Plan::new(asked, shape, in_kernel);
    let silence = shape.delay + shape.jitter + Duration::from_millis(400);
    let arrivals = thread::scope(|scope| {
        let arriving = scope.spawn(|| arrivals(&to, silence, shape.delay));
        let offered = plan.offer(&from);
        let arrived = arriving.join().map_err(|_| io::Error::other("the receiver panicked"))?;
        offered.and(arrived)
    })
    .map_err(Mistake::io("the rate can't be measured"))?;
    let header = HEADERS_BYTES + if in_kernel { ETHERNET_BYTES } else { 0 };
    rate_of(&arrivals, plan.head_bytes, header).ok_or_else(|| {
        Mistake::Failed(format!("only {} packets came through the lab", arrivals.len()))
    })
}

/// Load that is offered.
#[derive(Debug, PartialEq)]
struct Plan {
    /// Payload of a packet.
    payload: usize,
    /// Offered at once, to empty a token bucket.
    head_bytes: u64,
    /// Then so many bytes of payload per second.
    per_second: f64,
    time: Duration,
}

impl Plan {
    fn new(asked: u64, shape: &Shape, in_kernel: bool) -> Self {
        let bytes = asked as f64 / 8.0;
        // At least some packets in the time, however slow the line.
        let payload = (bytes / PACKETS_PER_SECOND).clamp(72.0, 1472.0);
        let share = payload / (payload + HEADERS_BYTES as f64);
        let survive = (1.0 - shape.loss).max(0.05);
        Self {
            payload: payload as usize,
            head_bytes: if in_kernel { burst(asked) } else { 0 },
            per_second: bytes * share * OFFERED / survive,
            time: OFFER_TIME,
        }
    }

    fn offer(&self, from: &UdpSocket) -> io::Result<()> {
        let packet = vec![0; self.payload];
        let began = Instant::now();
        let mut sent = 0_u64;
        while began.elapsed() < self.time {
            let due = self.head_bytes as f64 + began.elapsed().as_secs_f64() * self.per_second;
            while (sent as f64) < due {
                match from.send(&packet) {
                    Ok(bytes) => sent += bytes as u64,
                    // The queue of the device is full, which is what is wanted.
                    Err(error) if error.raw_os_error() == Some(105) => sent += self.payload as u64,
                    Err(error) => return Err(error),
                }
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

/// Returns what came, and when, until nothing has come for `silence` after the first (`delay` later).
fn arrivals(
    to: &UdpSocket,
    silence: Duration,
    delay: Duration,
) -> io::Result<Vec<(Instant, usize)>> {
    let mut arrived = Vec::new();
    let mut packet = [0; 2048];
    to.set_read_timeout(Some(silence + delay + OFFER_TIME))?;
    while let Ok(bytes) = to.recv(&mut packet) {
        if arrived.is_empty() {
            to.set_read_timeout(Some(silence))?;
        }
        arrived.push((Instant::now(), bytes));
    }
    Ok(arrived)
}

/// Bits per second, headers included, without the head of `head_bytes` that a token bucket lets pass
/// at once.
fn rate_of(arrivals: &[(Instant, usize)], head_bytes: u64, header: u64) -> Option<f64> {
    let mut passed = 0;
    let bucket = arrivals
        .iter()
        .take_while(|(_, bytes)| {
            passed += *bytes as u64;
            passed <= head_bytes
        })
        .count();
    let counted = arrivals.get(bucket + SKIPPED_COUNT..)?;
    // The best third: what else the machine does meanwhile only takes away.
    let third = (counted.len() / 3).max(2);
    counted
        .windows(third)
        .step_by((third / 8).max(1))
        .filter_map(|window| {
            let ((first, _), (last, _)) = (window.first()?, window.last()?);
            let bytes: u64 = window[1..].iter().map(|(_, bytes)| *bytes as u64 + header).sum();
            let seconds = last.duration_since(*first).as_secs_f64();
            (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
        })
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_what_comes_after_the_head() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        // Ten packets at once, then one of 1,000 bytes with its headers each 10 ms.
        let mut arrived: Vec<_> = (0..10).map(|_| (at(0), 972)).collect();
        arrived.extend((1..=50).map(|number| (at(number * 10), 972)));
        let rate = rate_of(&arrived, 9720, HEADERS_BYTES).unwrap();
        assert!((rate - 800_000.0).abs() < 1.0, "{rate}");
        assert_eq!(rate_of(&arrived[..3], 0, HEADERS_BYTES), None);
    }

    #[test]
    fn slow_lines_get_small_packets_and_lossy_ones_more_of_them() {
        let plain = Plan::new(50_000, &Shape::default(), false);
        assert_eq!((plain.payload, plain.head_bytes), (125, 0));
        let lossy = Plan::new(50_000, &Shape { loss: 0.5, ..Shape::default() }, false);
        assert!((lossy.per_second / plain.per_second - 2.0).abs() < 1e-9);
        let fast = Plan::new(1_000_000_000, &Shape::default(), true);
        assert_eq!((fast.payload, fast.head_bytes), (1472, 1_250_000));
    }
}
