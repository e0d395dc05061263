//! Shapers of a direction: the kernel's disciplines where it has them, else the delay line.

use serde::{Deserialize, Serialize};

use crate::Mistake;
use crate::linux::namespace::batch;
use crate::linux::topology::{LEFT, RIGHT};
use crate::shape::{Discipline, Queue, Shape};
use crate::spec::{Node, Spec};

/// Bytes of the Ethernet header, which the kernel's disciplines count with each packet.
pub(crate) const ETHERNET_BYTES: u64 = 14;

/// Shaper of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shaper {
    /// Not limited: it is as fast as the machine.
    None,
    /// The kernel's token bucket.
    Tbf,
    /// The kernel's netem, with a token bucket below it if there is a rate.
    Netem,
    /// The delay line of this program.
    Line,
}

impl Shaper {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "unshaped",
            Self::Tbf => "kernel: tbf",
            Self::Netem => "kernel: netem",
            Self::Line => "delay line",
        }
    }
}

/// Disciplines that this kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) tbf: bool,
    pub(crate) netem: bool,
}

impl Kernel {
    /// Tries each on the router's loopback device.
    pub(crate) fn probe(router: &str) -> Self {
        let has = |discipline: &str| {
            let lines =
                [format!("qdisc add dev lo root {discipline}"), "qdisc del dev lo root".into()];
            batch("tc", Some(router), &lines).is_ok()
        };
        Self { tbf: has("tbf rate 1mbit burst 32kb latency 10ms"), netem: has("netem delay 1ms") }
    }
}

/// Returns who shapes a direction of this shape on this kernel.
pub(crate) fn shaper(shape: &Shape, kernel: Kernel, only_line: bool) -> Shaper {
    // The kernel's CoDel can't stand below a token bucket everywhere, and the line's is seeded. netem's
    // jitter changes the order of packets.
    let line = only_line || shape.discipline == Discipline::Codel || !shape.jitter.is_zero();
    match shape {
        shape if shape.is_empty() => Shaper::None,
        _ if line => Shaper::Line,
        shape if !shape.delays() && kernel.tbf => Shaper::Tbf,
        shape if kernel.netem && (shape.rate.is_none() || kernel.tbf) => Shaper::Netem,
        _ => Shaper::Line,
    }
}

/// The bytes that a token bucket lets pass at once: what leaves in 10 ms, and at least 32 KiB.
pub(crate) fn burst(rate: u64) -> u64 {
    (rate / 8 / 100).max(32 * 1024)
}

/// The lines for `tc` that shape what leaves `device`.
fn disciplines(device: &str, shape: &Shape, shaper: Shaper) -> Vec<String> {
    let bucket = |rate: u64| {
        // The bound of the queue holds the burst too.
        let limit = shape.queue.bytes(rate) + burst(rate);
        format!("tbf rate {rate}bit burst {} limit {limit}", burst(rate))
    };
    match (shaper, shape.rate) {
        (Shaper::Tbf, Some(rate)) => vec![format!("qdisc add dev {device} root {}", bucket(rate))],
        (Shaper::Netem, rate) => {
            let us = |time: std::time::Duration| time.as_micros();
            let mut netem = format!("qdisc add dev {device} root handle 1: netem limit 1000000");
            netem += &format!(" delay {}us", us(shape.delay));
            if !shape.jitter.is_zero() {
                netem += &format!(" {}us", us(shape.jitter));
            }
            if shape.loss > 0.0 {
                netem += &format!(" loss random {}%", shape.loss * 100.0);
            }
            if shape.reorder > 0.0 {
                netem += &format!(" reorder {}%", shape.reorder * 100.0);
            }
            let mut lines = vec![netem];
            if let Some(rate) = rate {
                lines
                    .push(format!("qdisc add dev {device} parent 1:1 handle 10: {}", bucket(rate)));
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// Sets the kernel's part of both directions up.
pub(crate) fn apply(spec: &Spec, down: Shaper, up: Shaper) -> Result<(), Mistake> {
    let mut lines = disciplines(LEFT, &spec.down, down);
    lines.extend(disciplines(RIGHT, &spec.up, up));
    if lines.is_empty() {
        return Ok(());
    }
    batch("tc", Some(&spec.namespace(Node::Router)), &lines)
}

/// Returns whether whole bursts of a sender, up to 64 KiB, may pass the line in one piece. Where a rate, loss
/// or reordering is asked for they are split first, since each concerns single packets.
pub(crate) fn in_bursts(shape: &Shape) -> bool {
    shape.rate.is_none()
        && shape.loss == 0.0
        && shape.reorder == 0.0
        && matches!(shape.queue, Queue::Time(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ALL: Kernel = Kernel { tbf: true, netem: true };
    const NO_NETEM: Kernel = Kernel { tbf: true, netem: false };

    fn shape(rate: Option<u64>, ms: u64) -> Shape {
        Shape { rate, delay: Duration::from_millis(ms), ..Shape::default() }
    }

    #[test]
    fn the_kernel_shapes_what_it_can() {
        for (shape, kernel, only_line, expected) in [
            (shape(None, 0), ALL, true, Shaper::None),
            (shape(Some(1_000_000), 0), NO_NETEM, false, Shaper::Tbf),
            (shape(Some(1_000_000), 0), NO_NETEM, true, Shaper::Line),
            (shape(Some(1_000_000), 5), NO_NETEM, false, Shaper::Line),
            (shape(Some(1_000_000), 5), ALL, false, Shaper::Netem),
            (shape(None, 5), ALL, false, Shaper::Netem),
            (shape(None, 5), NO_NETEM, false, Shaper::Line),
        ] {
            assert_eq!(shaper(&shape, kernel, only_line), expected, "{shape:?} {kernel:?}");
        }
        let codel = Shape { discipline: Discipline::Codel, ..shape(Some(1_000_000), 0) };
        assert_eq!(shaper(&codel, ALL, false), Shaper::Line);
    }

    #[test]
    fn the_lines_for_tc_hold_every_part() {
        let mut full = shape(Some(30_000_000), 50);
        full.jitter = Duration::from_millis(2);
        full.loss = 0.01;
        full.reorder = 0.05;
        let lines = disciplines("left", &full, Shaper::Netem);
        assert_eq!(
            lines,
            [
                "qdisc add dev left root handle 1: netem limit 1000000 delay 50000us 2000us \
                 loss random 1% reorder 5%",
                "qdisc add dev left parent 1:1 handle 10: tbf rate 30000000bit burst 37500 \
                 limit 225000",
            ]
        );
        let lines = disciplines("right", &shape(Some(50_000), 0), Shaper::Tbf);
        assert_eq!(lines, ["qdisc add dev right root tbf rate 50000bit burst 32768 limit 65536"]);
        assert!(disciplines("left", &full, Shaper::Line).is_empty());
    }
}
