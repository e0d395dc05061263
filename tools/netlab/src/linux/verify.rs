//! Behavior of a lab, measured after set-up: round trip and rates, compared with what was asked.

mod rate;

use std::io;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Mistake;
use crate::linux::carrier::Direction;
use crate::linux::namespace::inside;
use crate::linux::shaping::Shaper;
use crate::quantity::{shown_rate, shown_time};
use crate::raw;
use crate::shape::Shape;
use crate::spec::{Node, Spec};

/// Share that may differ from what was asked.
const TOLERANCE: f64 = 0.05;

/// Below that a difference of round trips is the machine's own.
const RTT_GRAIN: Duration = Duration::from_micros(300);

/// How often a rate is measured that is not as asked at once; an odd number.
const RATES_COUNT: usize = 3;

/// Round trips that are measured, at most.
const PINGS_COUNT: usize = 30;

/// How long round trips are measured, at most, after the first five.
const PINGS_TIME: Duration = Duration::from_secs(2);

/// How long an unlimited direction is measured.
const FREE_TIME: Duration = Duration::from_millis(300);

/// How long a connection through a fresh lab may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// IP and UDP headers.
const HEADERS_BYTES: u64 = 28;

/// Results of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The round trip: the lower quartile without jitter, the median with it.
    pub rtt: Duration,
    /// Sum of the shapes.
    pub rtt_asked: Duration,
    /// Server to client.
    pub down: Rate,
    /// Client to server.
    pub up: Rate,
}

/// One direction of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Its shaper.
    pub shaper: Shaper,
    /// Measured bits per second of IP packets; of TCP's payload where no rate was asked for.
    pub measured: f64,
    /// Asked bits per second.
    pub asked: Option<u64>,
    /// Rate that the delay line carries at most as it is set up for this direction (whole bursts, or single
    /// packets), in bits per second of TCP's payload; `None` if it isn't used.
    pub line_at_most: Option<f64>,
}

impl Report {
    /// Returns what is off by more than 5 %, one sentence each.
    pub fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (rtt, asked) = (self.rtt, self.rtt_asked);
        if rtt.abs_diff(asked) > asked.mul_f64(TOLERANCE).max(RTT_GRAIN) {
            found.push(format!(
                "the round trip is {}, but {} was requested",
                shown_time(rtt),
                shown_time(asked)
            ));
        }
        for (name, rate) in [("download", &self.down), ("upload", &self.up)] {
            let Some(asked) = rate.asked.map(|asked| asked as f64) else { continue };
            if (rate.measured - asked).abs() > asked * TOLERANCE {
                let mut sentence = format!(
                    "{name} carries {}, but {} was requested",
                    shown_rate(rate.measured),
                    shown_rate(asked)
                );
                if let Some(most) = rate.line_at_most.filter(|most| *most < asked * 1.1) {
                    sentence +=
                        &format!(" (the delay line carries at most {} here)", shown_rate(most));
                }
                found.push(sentence);
            }
        }
        found
    }
}

/// The round trip that the shapes add up to, for packets of `bytes`.
pub(crate) fn asked_rtt(spec: &Spec, bytes: u64) -> Duration {
    let sending = |shape: &Shape| {
        shape.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64)
        })
    };
    spec.down.delay + spec.up.delay + sending(&spec.down) + sending(&spec.up)
}

/// Measures a lab that is not used yet.
pub(crate) fn measure(
    spec: &Spec,
    shapers: [Shaper; 2],
    line_at_most: [Option<f64>; 2],
) -> Result<Report, Mistake> {
    let rtt = round_trip(spec)?;
    let rate = |direction, shape: &Shape, shaper, line_at_most| {
        let measured = match shape.rate {
            Some(asked) => {
                confirmed(asked as f64, || rate::limited(spec, direction, shape, asked, shaper))?
            }
            None => free(spec, direction, FREE_TIME)?,
        };
        Ok::<_, Mistake>(Rate { shaper, measured, asked: shape.rate, line_at_most })
    };
    Ok(Report {
        rtt,
        rtt_asked: asked_rtt(spec, PING_BYTES as u64 + HEADERS_BYTES),
        down: rate(Direction::Down, &spec.down, shapers[0], line_at_most[0])?,
        up: rate(Direction::Up, &spec.up, shapers[1], line_at_most[1])?,
    })
}

/// A rate that is as asked at once, else the median of several measurements: one of them may have been made
/// while the machine was busy elsewhere, but none is chosen for what it says.
fn confirmed(
    asked: f64,
    mut measure: impl FnMut() -> Result<f64, Mistake>,
) -> Result<f64, Mistake> {
    let first = measure()?;
    if (first - asked).abs() <= asked * TOLERANCE {
        return Ok(first);
    }
    let mut all = vec![first];
    for _ in 1..RATES_COUNT {
        all.push(measure()?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[RATES_COUNT / 2])
}

const PING_BYTES: usize = 16;

/// Sockets of the client and the server, connected with each other.
fn pair(spec: &Spec) -> Result<(UdpSocket, UdpSocket), Mistake> {
    let open = |node, address: Ipv4Addr| {
        inside(&spec.namespace(node), || UdpSocket::bind((address, 0)))?
            .map_err(Mistake::io(format_args!("no socket of the {}", node.name())))
    };
    let client = open(Node::Client, spec.left.host())?;
    let server = open(Node::Server, spec.right.host())?;
    let connect = || {
        client.connect(server.local_addr()?)?;
        server.connect(client.local_addr()?)
    };
    connect().map_err(Mistake::io("sockets of the lab"))?;
    Ok((client, server))
}

/// The round trip of small packets through the lab.
fn round_trip(spec: &Spec) -> Result<Duration, Mistake> {
    let (client, server) = pair(spec)?;
    let jitter = !spec.down.jitter.is_zero() || !spec.up.jitter.is_zero();
    let patience = asked_rtt(spec, 1500) * 2
        + (spec.down.jitter + spec.up.jitter) * 2
        + Duration::from_millis(500);
    let ends = AtomicBool::new(false);
    let times = thread::scope(|scope| {
        scope.spawn(|| echo(&server, &ends));
        let times = pings(&client, patience);
        ends.store(true, Ordering::Relaxed);
        times
    })
    .map_err(Mistake::io("round trips can't be measured"))?;
    let place = if jitter { times.len() / 2 } else { times.len() / 4 };
    times
        .get(place)
        .copied()
        .ok_or_else(|| Mistake::Failed("no packet of 10 came back through the lab".to_owned()))
}

fn pings(client: &UdpSocket, patience: Duration) -> io::Result<Vec<Duration>> {
    client.set_read_timeout(Some(patience))?;
    let began = Instant::now();
    let mut times = Vec::new();
    for number in 0..PINGS_COUNT as u64 {
        let sent = Instant::now();
        let mut packet = [0; PING_BYTES];
        packet[..8].copy_from_slice(&number.to_be_bytes());
        client.send(&packet)?;
        let mut response = [0; PING_BYTES];
        // What a lossy line has eaten isn't waited for again, and late ones don't count.
        while client.recv(&mut response).is_ok() {
            if response == packet {
                times.push(sent.elapsed());
                break;
            }
        }
        if (times.len() >= 5 && began.elapsed() > PINGS_TIME) || (number >= 9 && times.is_empty()) {
            break;
        }
    }
    times.sort_unstable();
    Ok(times)
}

fn echo(server: &UdpSocket, ends: &AtomicBool) {
    // So that the flag is looked at.
    let _ = server.set_read_timeout(Some(Duration::from_millis(20)));
    let mut packet = [0; 2048];
    while !ends.load(Ordering::Relaxed) {
        if let Ok(length) = server.recv(&mut packet) {
            let _ = server.send(&packet[..length]);
        }
    }
}

/// How fast TCP gets within `time` in one direction, in bits of payload per second.
pub(crate) fn free(spec: &Spec, direction: Direction, time: Duration) -> Result<f64, Mistake> {
    let address = (spec.right.host(), 0).into();
    let listener = inside(&spec.namespace(Node::Server), || raw::listen(address, None))?
        .map_err(Mistake::io("no socket of the server"))?;
    let address = listener.address().map_err(Mistake::io("no address of the server"))?;
    let transfer = thread::scope(|scope| {
        let served = scope.spawn(|| listener.serve_one(CONNECT_TIMEOUT));
        let stream = inside(&spec.namespace(Node::Client), || {
            TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
        })?
        .map_err(Mistake::io("the client can't reach the server"))?;
        let failed = Mistake::io("a transfer through the lab");
        let took = match direction {
            Direction::Down => raw::get(stream, raw::ENDLESS, Some(time), None),
            Direction::Up => raw::put(stream, raw::ENDLESS, Some(time), None),
        }
        .map_err(failed)?;
        let served = served.join().ok().and_then(Result::ok);
        Ok::<_, Mistake>(match (direction, served) {
            (Direction::Up, Some((_, taken))) => taken,
            _ => took,
        })
    })?;
    Ok(transfer.bits_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is reported of these measurements where 100 was asked for, and how many there were.
    fn reported(measured: &[f64]) -> (f64, usize) {
        let mut count = 0;
        let rate = confirmed(100.0, || {
            count += 1;
            Ok(measured[count - 1])
        });
        (rate.unwrap(), count)
    }

    #[test]
    fn a_rate_is_measured_again_when_the_machine_was_busy_and_a_wrong_one_stays_wrong() {
        assert_eq!(reported(&[104.0]), (104.0, 1));
        assert_eq!(reported(&[94.8, 99.0, 97.0]), (97.0, 3));
        assert_eq!(reported(&[80.0, 100.0, 81.0]), (81.0, 3));
    }
}
