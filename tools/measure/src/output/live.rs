//! View of a transfer while it goes on: a line that is redrawn in a terminal, else one each time.

use std::io::{self, Write};

use super::speed;
use crate::transfer::Progress;

/// Characters of the progress bar.
const BAR: usize = 24;

/// Draws to a terminal or prints lines.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    is_terminal: bool,
}

impl<W: Write> Live<W> {
    /// Nothing shown yet.
    pub fn new(out: W, is_terminal: bool) -> Self {
        Self { out, is_terminal }
    }

    /// A look at it.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn show(&mut self, progress: &Progress) -> io::Result<()> {
        let text = line(progress);
        if self.is_terminal {
            write!(self.out, "\r\x1b[K{text}")?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        self.out.flush()
    }

    /// Takes the line away, so that others can follow.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.is_terminal {
            write!(self.out, "\r\x1b[K")?;
        }
        self.out.flush()
    }
}

fn line(progress: &Progress) -> String {
    match *progress {
        Progress::Idle => "latency before the transfer …".into(),
        Progress::Moving { elapsed, instant, average, share, .. } => {
            let bar = share.map_or_else(String::new, |share| {
                let full = (share * BAR as f64).round() as usize;
                format!("[{}{}] ", "#".repeat(full), ".".repeat(BAR - full.min(BAR)))
            });
            format!(
                "{bar}{:.2} s  now {}  average {}",
                elapsed.as_secs_f64(),
                speed(instant),
                speed(average)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn half() -> Progress {
        Progress::Moving {
            elapsed: Duration::from_millis(500),
            bytes: 1,
            instant: 2e9,
            average: 1e9,
            share: Some(0.5),
        }
    }

    #[test]
    fn a_line_has_the_speed_of_now_and_of_all() {
        let mut shown = Vec::new();
        Live::new(&mut shown, false).show(&half()).unwrap();
        let text = String::from_utf8(shown).unwrap();
        assert_eq!(
            text,
            "[############............] 0.50 s  now 2.00 Gbit/s  average 1.00 Gbit/s\n"
        );
    }

    #[test]
    fn a_terminal_has_one_line_that_goes_away() {
        let mut shown = Vec::new();
        let mut live = Live::new(&mut shown, true);
        live.show(&half()).unwrap();
        live.clear().unwrap();
        let text = String::from_utf8(shown).unwrap();
        assert!(text.starts_with("\r\x1b[K[###") && text.ends_with("\r\x1b[K"));
        assert!(!text.contains('\n'));
    }
}
