//! Treatment of packets by a direction of the lab.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::QUEUE_MIN_BYTES;
use crate::quantity::{shown_rate, shown_share, shown_time};

/// The largest IP packet on the lab's links, in bytes.
pub const PACKET_BYTES: u64 = 1500;

/// Treatment of packets by a direction. The default does nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// Bits per second of IP packets, headers included; `None`: as fast as the machine.
    pub rate: Option<u64>,
    /// Size of the queue in front of the rate. Without a rate there is no queue.
    pub queue: Queue,
    /// Discipline of the queue.
    pub discipline: Discipline,
    /// From the end of the queue to the other side.
    pub delay: Duration,
    /// The delay varies by up to so much to both sides, evenly; packets stay in order.
    pub jitter: Duration,
    /// Probability that a packet is lost, from 0 to 1.
    pub loss: f64,
    /// Probability that a packet skips the delay, and so overtakes others, from 0 to 1.
    pub reorder: f64,
}

/// The bound of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// As many bytes as leave in this time, and at least [`QUEUE_MIN_BYTES`].
    Time(Duration),
    /// So many packets.
    Packets(u32),
}

impl Default for Queue {
    /// 50 ms.
    fn default() -> Self {
        Self::Time(Duration::from_millis(50))
    }
}

impl Queue {
    /// Reads `50ms` or `100p`.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a queue: use a time or packets, such as 50ms or 100p");
        if let Some(packets) = text.trim().strip_suffix('p') {
            return match packets.parse() {
                Ok(count @ 1..=1_000_000) => Ok(Self::Packets(count)),
                _ => Err(wrong()),
            };
        }
        crate::quantity::time(text).map(Self::Time).map_err(|_| wrong())
    }

    /// How many bytes that is at `rate` bits per second.
    pub fn bytes(self, rate: u64) -> u64 {
        match self {
            Self::Time(time) => {
                let bytes = u128::from(rate) * time.as_nanos() / 8_000_000_000;
                u64::try_from(bytes).unwrap_or(u64::MAX).max(QUEUE_MIN_BYTES)
            }
            Self::Packets(count) => u64::from(count) * PACKET_BYTES,
        }
    }
}

/// Discipline of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; what finds it full is dropped.
    #[default]
    Fifo,
    /// CoDel (RFC 8289): what has waited for more than 5 ms for 100 ms is dropped now and then.
    Codel,
}

impl Discipline {
    /// Reads `fifo` or `codel`.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "fifo" => Ok(Self::Fifo),
            "codel" => Ok(Self::Codel),
            _ => Err(format!("`{text}` is not a discipline: use fifo or codel")),
        }
    }
}

impl Shape {
    /// Returns whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.rate.is_none() && !self.delays()
    }

    /// Returns whether it does more than limit a rate.
    pub fn delays(&self) -> bool {
        !self.delay.is_zero() || !self.jitter.is_zero() || self.loss > 0.0 || self.reorder > 0.0
    }

    /// Returns what it does, in a few words.
    pub fn shown(&self) -> String {
        let mut words = Vec::new();
        if let Some(rate) = self.rate {
            words.push(shown_rate(rate as f64));
            words.push(match self.queue {
                Queue::Time(time) => format!("queue {}", shown_time(time)),
                Queue::Packets(count) => format!("queue {count} packets"),
            });
            if self.discipline == Discipline::Codel {
                words.push("CoDel".to_owned());
            }
        }
        if !self.delay.is_zero() {
            words.push(format!("delay {}", shown_time(self.delay)));
        }
        if !self.jitter.is_zero() {
            words.push(format!("± {}", shown_time(self.jitter)));
        }
        if self.loss > 0.0 {
            words.push(format!("loss {}", shown_share(self.loss)));
        }
        if self.reorder > 0.0 {
            words.push(format!("reorder {}", shown_share(self.reorder)));
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    /// Checks what single values can't tell.
    ///
    /// # Errors
    ///
    /// One sentence.
    pub fn check(&self, direction: &str) -> Result<(), String> {
        if self.reorder > 0.0 && self.delay.is_zero() {
            return Err(format!(
                "{direction}: without a delay no packet can overtake another; give --delay or --rtt \
                 with --reorder"
            ));
        }
        if self.jitter > self.delay {
            return Err(format!(
                "{direction}: the jitter of {} is more than the delay of {}; no packet arrives \
                 before it is sent",
                shown_time(self.jitter),
                shown_time(self.delay)
            ));
        }
        if self.discipline == Discipline::Codel && self.rate.is_none() {
            return Err(format!("{direction}: CoDel needs a queue, and so a --rate"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_time_or_packets() {
        assert_eq!(Queue::parse("50ms"), Ok(Queue::default()));
        assert_eq!(Queue::parse("100p"), Ok(Queue::Packets(100)));
        assert_eq!(Queue::default().bytes(100_000_000), 625_000);
        assert_eq!(Queue::default().bytes(50_000), QUEUE_MIN_BYTES);
        for wrong in ["", "p", "0p", "-1p", "50", "x"] {
            assert!(Queue::parse(wrong).unwrap_err().contains("100p"), "{wrong}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_one_sentence() {
        let delay = Duration::from_millis(5);
        for (shape, expected) in [
            (Shape { reorder: 0.1, ..Shape::default() }, "give --delay"),
            (Shape { jitter: delay, ..Shape::default() }, "is more than the delay"),
            (Shape { discipline: Discipline::Codel, delay, ..Shape::default() }, "a --rate"),
        ] {
            let error = shape.check("download").unwrap_err();
            assert!(error.starts_with("download: ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_shape_says_what_it_does() {
        let shape = Shape {
            rate: Some(30_000_000),
            delay: Duration::from_millis(50),
            loss: 0.01,
            ..Shape::default()
        };
        assert_eq!(shape.shown(), "30 Mbit/s, queue 50 ms, delay 50 ms, loss 1 %");
        assert_eq!(Shape::default().shown(), "nothing");
    }
}
