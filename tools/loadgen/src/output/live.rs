//! What is seen while a run goes on: a view that is redrawn in a terminal, else a line per second.

use std::io::{self, Write};
use std::time::Duration;

use super::figures::{duration, grouped, rate};
use super::text::model;
use crate::plan::Phase;
use crate::progress::Progress;

/// How many looks the rate's history shows.
const HISTORY: usize = 40;

/// Characters of the progress bar.
const BAR: usize = 24;

/// How often a line is printed where nothing can be redrawn.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Draws to a terminal or prints lines.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    is_terminal: bool,
    phase: Option<Phase>,
    number: usize,
    of: usize,
    rates: Vec<f64>,
    last_line: Duration,
    /// Looks since the last line, and the sum of their rates and the worst of their percentiles.
    looks: u32,
    rate_sum: f64,
    worst_p99_ns: u64,
    is_drawn: bool,
}

impl<W: Write> Live<W> {
    /// Nothing shown yet. `of` phases are expected; 0: not known.
    pub fn new(out: W, is_terminal: bool, of: usize) -> Self {
        Self {
            out,
            is_terminal,
            phase: None,
            number: 0,
            of,
            rates: Vec::new(),
            last_line: Duration::ZERO,
            looks: 0,
            rate_sum: 0.0,
            worst_p99_ns: 0,
            is_drawn: false,
        }
    }

    /// A phase begins.
    ///
    /// # Errors
    ///
    /// Those of the output, here and below.
    pub fn begin(&mut self, phase: &Phase) -> io::Result<()> {
        self.number += 1;
        self.rates.clear();
        self.last_line = Duration::ZERO;
        self.start_line();
        self.phase = Some(phase.clone());
        if self.is_terminal {
            return Ok(());
        }
        writeln!(self.out, "{}", self.title())?;
        self.out.flush()
    }

    fn title(&self) -> String {
        let Some(phase) = &self.phase else { return String::new() };
        let of = if self.of > 0 { format!("/{}", self.of) } else { String::new() };
        format!("[{}{of}] {} ({})", self.number, phase.name, model(&phase.load))
    }

    /// A look at it. A line has the mean rate and the worst p99 of the looks since the line before,
    /// and all else of the last look.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        self.rates.push(progress.rate);
        if self.rates.len() > HISTORY {
            self.rates.remove(0);
        }
        if self.is_terminal {
            return self.draw(progress);
        }
        self.looks += 1;
        self.rate_sum += progress.rate;
        self.worst_p99_ns = self.worst_p99_ns.max(progress.p99_ns);
        if progress.elapsed < self.last_line + LINE_EVERY {
            return Ok(());
        }
        self.last_line = progress.elapsed;
        let whole = Progress {
            rate: self.rate_sum / f64::from(self.looks),
            p99_ns: self.worst_p99_ns,
            ..*progress
        };
        self.start_line();
        writeln!(
            self.out,
            "  {:.0} s{}: {}",
            progress.elapsed.as_secs_f64(),
            if self.is_warming_up(progress) { ", warm-up" } else { "" },
            figures(&whole)
        )?;
        self.out.flush()
    }

    fn start_line(&mut self) {
        (self.looks, self.rate_sum, self.worst_p99_ns) = (0, 0.0, 0);
    }

    /// Takes the view away, so that other lines can follow.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_drawn) {
            write!(self.out, "\r\x1b[2K\n\x1b[2K\n\x1b[2K\x1b[2A\r")?;
        }
        self.out.flush()
    }

    fn is_warming_up(&self, progress: &Progress) -> bool {
        self.phase.as_ref().is_some_and(|phase| progress.elapsed < phase.warm_up)
    }

    /// Three lines, and the cursor back on the first. Lines are cut, not wrapped, for wrapped ones
    /// would not be drawn over.
    fn draw(&mut self, progress: &Progress) -> io::Result<()> {
        self.is_drawn = true;
        let warming = if self.is_warming_up(progress) { "  warm-up" } else { "" };
        let title = self.title();
        write!(
            self.out,
            "\x1b[?7l\r\x1b[2K{title}{warming}\n\x1b[2K{}  {}\n\x1b[2K{}\x1b[2A\r\x1b[?7h",
            self.bar(progress),
            history(&self.rates),
            figures(progress)
        )?;
        self.out.flush()
    }

    fn bar(&self, progress: &Progress) -> String {
        let (done, said) = match &self.phase {
            Some(phase) => match (phase.until.requests, phase.until.time) {
                (Some(requests), _) => {
                    let done = progress.completed + progress.failed;
                    let said = format!("{} of {}", grouped(done), grouped(requests));
                    (done as f64 / requests.max(1) as f64, said)
                }
                (None, Some(time)) => {
                    let whole = (phase.warm_up + time).as_secs_f64();
                    let now = progress.elapsed.as_secs_f64();
                    (now / whole, format!("{now:.1} of {whole:.1} s"))
                }
                (None, None) => (0.0, String::new()),
            },
            None => (0.0, String::new()),
        };
        let full = ((done.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
        format!("{}{} {said}", "█".repeat(full), "░".repeat(BAR - full))
    }
}

/// The figures of a look.
fn figures(progress: &Progress) -> String {
    let server =
        progress.server_cores.map_or_else(String::new, |cores| format!(", server {cores:.2}"));
    format!(
        "{} req/s, p50 {}, p99 {}, {} in flight, {} failed, cores: generator {:.2}{server}",
        rate(progress.rate),
        duration(progress.p50_ns),
        duration(progress.p99_ns),
        grouped(progress.in_flight),
        grouped(progress.failed),
        progress.generator_cores
    )
}

/// Rates as bars, the highest of them full.
fn history(rates: &[f64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = rates.iter().copied().fold(0.0, f64::max);
    rates
        .iter()
        .map(|rate| {
            let level = if highest > 0.0 { (rate / highest * 7.0).round() } else { 0.0 };
            LEVELS[(level.max(0.0) as usize).min(7)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricated::{OPEN_1000, phase};
    use crate::plan::{Load, Until};

    fn look(ms: u64) -> Progress {
        Progress {
            elapsed: Duration::from_millis(ms),
            rate: 12_345.0,
            p50_ns: 66_000,
            p99_ns: 2_940_000,
            in_flight: 10,
            completed: 50,
            failed: 2,
            generator_cores: 0.5,
            server_cores: Some(0.98),
        }
    }

    fn shown(is_terminal: bool, phase: &Phase, looks: &[u64]) -> String {
        let mut live = Live::new(Vec::new(), is_terminal, 3);
        live.begin(phase).unwrap();
        for ms in looks {
            live.progress(&look(*ms)).unwrap();
        }
        live.clear().unwrap();
        String::from_utf8(live.out).unwrap()
    }

    #[test]
    fn without_a_terminal_there_is_a_line_each_second() {
        let looks: Vec<u64> = (1..=25).map(|step| step * 100).collect();
        let mut phase = phase("50 % of capacity", OPEN_1000);
        phase.warm_up = Duration::from_millis(1_500);
        let expected = "\
[1/3] 50 % of capacity (open loop)
  1 s, warm-up: 12,345 req/s, p50 66.0 µs, p99 2.94 ms, 10 in flight, 2 failed, cores: \
                        generator 0.50, server 0.98
  2 s: 12,345 req/s, p50 66.0 µs, p99 2.94 ms, 10 in flight, 2 failed, cores: generator \
                        0.50, server 0.98
";
        assert_eq!(shown(false, &phase, &looks), expected);
    }

    #[test]
    fn a_line_speaks_for_all_looks_since_the_line_before() {
        let mut live = Live::new(Vec::new(), false, 0);
        live.begin(&phase("a", Load::Closed)).unwrap();
        for (ms, rate, p99_ns) in [(500, 100.0, 9_000_000), (1_000, 300.0, 1_000_000)] {
            live.progress(&Progress { rate, p99_ns, ..look(ms) }).unwrap();
        }
        live.progress(&Progress { rate: 500.0, p99_ns: 1_000_000, ..look(2_000) }).unwrap();
        let text = String::from_utf8(live.out).unwrap();
        assert!(text.contains("1 s: 200 req/s, p50 66.0 µs, p99 9.00 ms"), "{text}");
        assert!(text.contains("2 s: 500 req/s, p50 66.0 µs, p99 1.00 ms"), "{text}");
    }

    #[test]
    fn a_terminal_is_drawn_over_and_left_clean() {
        let text = shown(true, &phase("capacity", Load::Closed), &[100, 500]);
        assert!(text.contains("[1/3] capacity (closed loop)"), "{text:?}");
        assert!(text.contains("████████████░░░░░░░░░░░░ 0.5 of 1.0 s  ██"), "{text:?}");
        assert!(text.ends_with("\r\x1b[2K\n\x1b[2K\n\x1b[2K\x1b[2A\r"), "{text:?}");
        // Each drawing goes two lines down and two up.
        assert_eq!(text.matches('\n').count(), 2 * text.matches("\x1b[2A").count());
        assert_eq!(text.matches("\x1b[?7l").count(), text.matches("\x1b[?7h").count());
    }

    #[test]
    fn a_counted_phase_shows_its_requests() {
        let mut counted = phase("n", Load::Closed);
        counted.until = Until { requests: Some(104), time: None };
        let text = shown(true, &counted, &[100]);
        assert!(text.contains("████████████░░░░░░░░░░░░ 52 of 104"), "{text:?}");
    }

    #[test]
    fn the_history_is_relative_to_its_highest() {
        assert_eq!(history(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(history(&[0.0]), "▁");
        assert_eq!(history(&[f64::NAN, 1.0]), "▁█");
    }
}
