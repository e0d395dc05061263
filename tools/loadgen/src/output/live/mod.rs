//! View of a run while it goes on: a view that is redrawn in a terminal, else a line per second.

mod screen;

use std::io::{self, Write};
use std::time::Duration;

use bolide_probe::plan::Phase;
use bolide_probe::progress::Progress;
use bolide_units::figures::{duration, grouped, rate};

use super::text::model;
use screen::{History, View};

/// Characters of the progress bar.
const BAR: usize = 24;

/// How often a line is printed where nothing can be redrawn.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Draws to a terminal or prints lines.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    /// Columns and rows of the terminal. `None`: it is none, and lines are printed.
    size: fn() -> Option<(u16, u16)>,
    /// Without colours.
    is_plain: bool,
    phase: Option<Phase>,
    number: usize,
    of: usize,
    history: History,
    last_line: Duration,
    /// Looks since the last line, and the sum of their rates and the worst of their percentiles.
    looks: u32,
    rate_sum: f64,
    worst_p99_ns: u64,
    /// Rows that are drawn.
    drawn: usize,
}

impl<W: Write> Live<W> {
    /// Nothing shown yet. `of` phases are expected; 0: not known.
    pub fn new(out: W, size: fn() -> Option<(u16, u16)>, of: usize) -> Self {
        Self {
            out,
            size,
            // https://no-color.org
            is_plain: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            phase: None,
            number: 0,
            of,
            history: History::default(),
            last_line: Duration::ZERO,
            looks: 0,
            rate_sum: 0.0,
            worst_p99_ns: 0,
            drawn: 0,
        }
    }

    /// A phase begins.
    ///
    /// # Errors
    ///
    /// Those of the output, here and below.
    pub fn begin(&mut self, phase: &Phase) -> io::Result<()> {
        self.number += 1;
        self.history.clear();
        self.last_line = Duration::ZERO;
        self.start_line();
        self.phase = Some(phase.clone());
        if (self.size)().is_some() {
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
        if let Some(size) = (self.size)() {
            self.history.add(progress);
            return self.draw(progress, size);
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
            ..progress.clone()
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
        let drawn = std::mem::take(&mut self.drawn);
        if drawn > 0 {
            let up = format!("\x1b[{}A\r", drawn - 1);
            let up = if drawn > 1 { up.as_str() } else { "\r" };
            write!(self.out, "\r\x1b[2K{}{up}", "\n\x1b[2K".repeat(drawn - 1))?;
        }
        self.out.flush()
    }

    fn is_warming_up(&self, progress: &Progress) -> bool {
        self.phase.as_ref().is_some_and(|phase| progress.elapsed < phase.warm_up)
    }

    /// Draws over what was there, and puts the cursor back on the first line. Lines are cut, not wrapped, for wrapped ones
    /// would not be drawn over.
    fn draw(&mut self, progress: &Progress, size: (u16, u16)) -> io::Result<()> {
        let view = View {
            title: self.title(),
            is_warming_up: self.is_warming_up(progress),
            bar: self.bar(progress),
            history: &self.history,
            progress,
        };
        let rows = screen::rows(&screen::draw(&view, size), self.is_plain);
        if rows.len() != self.drawn {
            self.clear()?;
        }
        self.drawn = rows.len();
        let text = rows.join("\n\x1b[2K");
        write!(self.out, "\x1b[?7l\r\x1b[2K{text}\x1b[{}A\r\x1b[?7h", rows.len() - 1)?;
        self.out.flush()
    }

    fn bar(&self, progress: &Progress) -> String {
        let (done, said) = match &self.phase {
            Some(phase) => match (phase.until.requests, phase.until.time) {
                (Some(requests), _) => {
                    let done = progress.completed + progress.failed();
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
        grouped(progress.failed()),
        progress.generator_cores
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bolide_probe::plan::{Load, Until};
    use bolide_probe::report::Failure;

    use super::*;
    use crate::fabricated::{OPEN_1000, phase};

    fn look(ms: u64) -> Progress {
        Progress {
            elapsed: Duration::from_millis(ms),
            rate: 12_345.0,
            p50_ns: 66_000,
            p99_ns: 2_940_000,
            in_flight: 10,
            completed: 50,
            failures: BTreeMap::from([(Failure::Timeout, 2)]),
            generator_cores: 0.5,
            server_cores: Some(0.98),
            parts: None,
        }
    }

    fn shown(size: fn() -> Option<(u16, u16)>, phase: &Phase, looks: &[u64]) -> String {
        let mut live = Live::new(Vec::new(), size, 3);
        live.is_plain = true;
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
        assert_eq!(shown(|| None, &phase, &looks), expected);
    }

    #[test]
    fn a_line_speaks_for_all_looks_since_the_line_before() {
        let mut live = Live::new(Vec::new(), || None, 0);
        live.begin(&phase("a", Load::Closed)).unwrap();
        for (ms, rate, p99_ns) in [(500, 100.0, 9_000_000), (1_000, 300.0, 1_000_000)] {
            live.progress(&Progress { rate, p99_ns, ..look(ms) }).unwrap();
        }
        live.progress(&Progress { rate: 500.0, p99_ns: 1_000_000, ..look(2_000) }).unwrap();
        let text = String::from_utf8(live.out).unwrap();
        assert!(text.contains("1 s: 200 req/s, p50 66.0 µs, p99 9.00 ms"), "{text}");
        assert!(text.contains("2 s: 500 req/s, p50 66.0 µs, p99 1.00 ms"), "{text}");
    }

    const LARGE: fn() -> Option<(u16, u16)> = || Some((100, 40));
    const SMALL: fn() -> Option<(u16, u16)> = || Some((60, 12));

    /// The rows that a terminal shows after the last drawing.
    fn last(text: &str) -> Vec<&str> {
        let (_, drawing) = text.rsplit_once("\x1b[?7l\r").unwrap();
        let (drawing, _) = drawing.rsplit_once("\x1b[?7h").unwrap();
        drawing.split('\n').map(|row| row.trim_start_matches("\x1b[2K")).collect()
    }

    #[test]
    fn a_terminal_is_drawn_over_and_left_clean() {
        for (size, rows) in [(LARGE, 15), (SMALL, 5)] {
            let text = shown(size, &phase("capacity", Load::Closed), &[100, 500]);
            let up = format!("\x1b[{}A\r", rows - 1);
            assert!(text.ends_with(&format!("\n\x1b[2K{up}")), "{text:?}");
            // Each drawing goes as many lines down as up.
            assert_eq!(text.matches('\n').count(), (rows - 1) * text.matches(&up).count());
            assert_eq!(text.matches("\x1b[?7l").count(), text.matches("\x1b[?7h").count());
            assert_eq!(last(&text).len(), rows);
        }
    }

    #[test]
    fn a_small_terminal_has_figures_and_a_large_one_charts_too() {
        let text = shown(SMALL, &phase("capacity", Load::Closed), &[100, 500]);
        let rows = last(&text);
        assert_eq!(rows[0], "[1/3] capacity (closed loop)");
        assert_eq!(rows[1], "████████████░░░░░░░░░░░░ 0.5 of 1.0 s");
        assert_eq!(rows[2], "12,345 req/s, p50 66.0 µs, p99 2.94 ms, 10 in flight, 50 res");
        assert_eq!(rows[3], "failures: 2 timeout");
        assert!(rows[4].starts_with("cores: generator 0.50, server 0.98"), "{rows:?}");
        let text = shown(LARGE, &phase("capacity", Load::Closed), &[100, 500]);
        let rows = last(&text);
        let charts = rows[2..12].join("\n");
        assert!(rows[2].starts_with("requests per second"), "{charts}");
        for part in ["latency p50 p99", "13.6k", "3.70 ms", "52.4 µs"] {
            assert!(charts.contains(part), "{part}: {charts}");
        }
        // The lines themselves, in braille.
        assert!(charts.contains(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{charts}");
    }

    #[test]
    fn a_counted_phase_shows_its_requests() {
        let mut counted = phase("n", Load::Closed);
        counted.until = Until { requests: Some(104), time: None };
        let text = shown(SMALL, &counted, &[100]);
        assert!(text.contains("████████████░░░░░░░░░░░░ 52 of 104"), "{text:?}");
    }

    #[test]
    fn failures_by_class_parts_and_colours_are_shown() {
        let mut live = Live::new(Vec::new(), SMALL, 0);
        live.is_plain = false;
        live.begin(&phase("a", Load::Closed)).unwrap();
        let failures = BTreeMap::from([(Failure::Status, 1000), (Failure::Reset, 3)]);
        live.progress(&Progress { failures, parts: Some((3, 4)), ..look(100) }).unwrap();
        let text = String::from_utf8(live.out).unwrap();
        assert!(
            text.contains("\x1b[0;31mfailures: 3 reset, 1,000 wrong status\x1b[0m"),
            "{text:?}"
        );
        assert!(text.contains("server 0.98; parts: 3 of 4"), "{text:?}");
        assert!(text.contains("\x1b[0;1m[1] a (closed loop)\x1b[0m"), "{text:?}");
    }

    #[test]
    fn a_long_run_has_a_bounded_history() {
        let mut live = Live::new(Vec::new(), LARGE, 0);
        live.begin(&phase("long", Load::Closed)).unwrap();
        for step in 1..5000 {
            live.history.add(&look(step * 100));
        }
        live.progress(&look(500_000)).unwrap();
        let text = String::from_utf8(live.out).unwrap();
        assert!(text.contains("500 s"), "{text:?}");
    }
}
