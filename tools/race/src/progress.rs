//! Progress while something takes its time: one line on a terminal, one line for each step elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use bolide_semantics::in_one_line;

/// Tells people how far it is.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    started: Instant,
    /// Time of all steps, by estimate.
    total: Duration,
    done: Duration,
    step: String,
}

impl Progress {
    /// `total` is what all steps take by estimate.
    pub(crate) fn new(total: Duration) -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            started: Instant::now(),
            total,
            done: Duration::ZERO,
            step: String::new(),
        }
    }

    /// A step begins.
    pub(crate) fn begin(&mut self, number: usize, count: usize, title: &str) {
        let left = text(self.left());
        self.step = format!("[{number}/{count}, about {left} left] {title}");
        if !self.is_terminal {
            eprintln!("{}", self.step);
        }
    }

    /// Something happens in it.
    pub(crate) fn say(&self, what: &str) {
        if self.is_terminal {
            // A terminal that is gone is no reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[2K{}: {}", self.step, in_one_line(what));
            let _ = io::stderr().flush();
        }
    }

    /// It has ended; `estimate` is what it was thought to take.
    pub(crate) fn end(&mut self, estimate: Duration) {
        self.done += estimate;
        self.clear();
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    /// Returns what is left, by how the estimates have held so far.
    fn left(&self) -> Duration {
        let left = self.total.saturating_sub(self.done);
        if self.done.is_zero() {
            return left;
        }
        left.mul_f64(self.started.elapsed().as_secs_f64() / self.done.as_secs_f64())
    }
}

/// `45 s`, `12 min`, `3 h 05 min`.
pub(crate) fn text(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(text(Duration::from_secs(45)), "45 s");
        assert_eq!(text(Duration::from_secs(600)), "10 min");
        assert_eq!(text(Duration::from_secs(11_100)), "3 h 05 min");
    }
}
