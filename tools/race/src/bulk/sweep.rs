//! Sweeps: streams, frame size and window, round trip.

use std::str::FromStr;

use super::outcome::Point;
use super::stack::{Direction, Stack, Way};

/// Quantities that can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    Streams,
    Windows,
    Rtt,
}

/// Streams on one connection.
const STREAMS: [u32; 5] = [1, 2, 4, 8, 16];

/// The client's largest frames, in bytes.
const FRAMES: [u32; 4] = [16_384, 65_536, 262_144, 1_048_576];

/// The client's receive windows, in bytes.
const WINDOWS: [u32; 4] = [65_535, 1_048_576, 16_777_216, 1_073_741_823];

/// Round trips, in milliseconds.
pub(super) const RTTS_MS: [u64; 4] = [0, 20, 50, 100];

/// The rate at which round trips are swept.
pub(super) const RTT_RATE_BITS_PER_SECOND: u64 = 500_000_000;

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "streams" => Ok(Self::Streams),
            "windows" => Ok(Self::Windows),
            "rtt" => Ok(Self::Rtt),
            _ => Err(format!("no sweep `{text}`; there are streams, windows and rtt")),
        }
    }
}

impl Sweep {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Windows => "windows",
            Self::Rtt => "rtt",
        }
    }

    /// The points of a stack, with the options of `bolide measure` for each.
    pub(super) fn points(self, stack: &Stack) -> Vec<(Point, Vec<String>)> {
        let point = |direction, x: f64, y: Option<f64>| Point {
            sweep: self.name().to_owned(),
            stack: stack.clone(),
            direction,
            x,
            y,
            sample: None,
            failed: None,
        };
        if stack.way != Way::Direct {
            return Vec::new();
        }
        let is_h2 = stack.protocol.is_some_and(crate::catalogue::Protocol::is_http2);
        let directions = Direction::ALL.into_iter().filter(|direction| stack.goes(*direction));
        match self {
            Self::Streams if is_h2 => directions
                .flat_map(|direction| {
                    STREAMS.map(|streams| {
                        let options = vec!["--streams".to_owned(), streams.to_string()];
                        (point(direction, f64::from(streams), None), options)
                    })
                })
                .collect(),
            // Of the client: they concern what it receives.
            Self::Windows if is_h2 => WINDOWS
                .into_iter()
                .flat_map(|window| FRAMES.map(|frame| (frame, window)))
                .map(|(frame, window)| {
                    let options =
                        ["--max-frame", &frame.to_string(), "--window", &window.to_string()];
                    let options = options.map(str::to_owned).to_vec();
                    let place =
                        point(Direction::Download, f64::from(frame), Some(f64::from(window)));
                    (place, options)
                })
                .collect(),
            Self::Rtt => directions
                .flat_map(|direction| {
                    RTTS_MS.map(|rtt| (point(direction, rtt as f64, None), Vec::new()))
                })
                .collect(),
            Self::Streams | Self::Windows => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Protocol;

    #[test]
    fn sweeps_have_the_points_that_a_protocol_can_have() {
        let stack = |protocol| Stack {
            name: "bolide".to_owned(),
            title: "Bolide".to_owned(),
            protocol: Some(protocol),
            uploads: true,
            way: Way::Direct,
        };
        assert_eq!(Sweep::Streams.points(&stack(Protocol::H2)).len(), 10);
        let windows = Sweep::Windows.points(&stack(Protocol::H2c));
        assert_eq!(windows.len(), 16);
        assert_eq!(windows[0].1, ["--max-frame", "16384", "--window", "65535"]);
        assert!(Sweep::Windows.points(&stack(Protocol::H1)).is_empty());
        assert_eq!(Sweep::Rtt.points(&stack(Protocol::H1)).len(), 8);
        assert!("loss".parse::<Sweep>().unwrap_err().contains("streams, windows and rtt"));
    }
}
