//! The view of a terminal: a title, how far it is, rate and latency over time, failures, and cores.

use std::fmt::Write;
use std::time::Duration;

use bolide_probe::progress::Progress;
use bolide_units::figures::{duration, grouped, rate};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Widget};

use super::super::text::failure;

/// Rows of the charts.
const CHARTS_ROWS: u16 = 10;

/// Rows of all else: the title, the bar, figures, failures, cores.
const TEXT_ROWS: u16 = 5;

/// Below these columns there is no room for two charts.
const CHARTS_COLUMNS: u16 = 70;

/// More columns than these are not used.
const COLUMNS_MAX: u16 = 132;

/// Points of a chart; then every other one goes.
const POINTS_COUNT: usize = 2000;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const RATE: Style = Style::new().fg(Color::Cyan);
const P50: Style = Style::new().fg(Color::Green);
const P99: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);

/// Data of the charts: seconds, and a value.
#[derive(Debug, Default)]
pub(super) struct History {
    rate: Vec<(f64, f64)>,
    /// Logarithms of nanoseconds.
    p50: Vec<(f64, f64)>,
    p99: Vec<(f64, f64)>,
}

impl History {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn add(&mut self, progress: &Progress) {
        let at_s = progress.elapsed.as_secs_f64();
        self.rate.push((at_s, progress.rate));
        // Where nothing was responded to there is no latency.
        if progress.rate > 0.0 {
            self.p50.push((at_s, (progress.p50_ns.max(1) as f64).log10()));
            self.p99.push((at_s, (progress.p99_ns.max(1) as f64).log10()));
        }
        for points in [&mut self.rate, &mut self.p50, &mut self.p99] {
            if points.len() > POINTS_COUNT {
                let mut is_kept = false;
                points.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
        }
    }
}

/// Data that is drawn.
pub(super) struct View<'a> {
    pub(super) title: String,
    pub(super) is_warming_up: bool,
    pub(super) bar: String,
    pub(super) history: &'a History,
    pub(super) progress: &'a Progress,
}

/// Draws it for a terminal of so many columns and rows: without the charts if it is small.
pub(super) fn draw(view: &View<'_>, (columns, rows): (u16, u16)) -> Buffer {
    let has_charts = columns >= CHARTS_COLUMNS && rows > CHARTS_ROWS + TEXT_ROWS;
    let charts_rows = if has_charts { CHARTS_ROWS } else { 0 };
    let area = Rect::new(0, 0, columns.clamp(1, COLUMNS_MAX), charts_rows + TEXT_ROWS);
    let mut buffer = Buffer::empty(area);
    let lengths = [1, 1, charts_rows, 1, 1, 1].map(Constraint::Length);
    let [title, bar, charts, figures, failures, cores] = Layout::vertical(lengths).areas(area);
    let warming = if view.is_warming_up { "  warm-up" } else { "" };
    let spans = [Span::styled(view.title.as_str(), BOLD), Span::styled(warming, DIM)];
    Line::from_iter(spans).render(title, &mut buffer);
    Paragraph::new(view.bar.as_str()).render(bar, &mut buffer);
    if has_charts {
        draw_charts(view, charts, &mut buffer);
    }
    Paragraph::new(figures_of(view.progress)).render(figures, &mut buffer);
    failures_of(view.progress).render(failures, &mut buffer);
    Paragraph::new(cores_of(view.progress)).render(cores, &mut buffer);
    buffer
}

fn draw_charts(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let History { rate: rates, p50, p99 } = view.history;
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(area);
    let until = view.progress.elapsed.max(Duration::from_millis(100)).as_secs_f64();
    let highest = rates.iter().map(|(_, rate)| *rate).fold(1.0, f64::max) * 1.1;
    let labels = [0.0, highest / 2.0, highest].map(short);
    let line = |points, style: Style| {
        let dataset = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        dataset.style(style).data(points)
    };
    let times = || {
        let labels = ["0".to_owned(), format!("{until:.0} s")];
        Axis::default().style(DIM).bounds([0.0, until]).labels(labels)
    };
    let title = Line::from(vec![Span::styled("requests per second", RATE)]);
    Chart::new(vec![line(rates, RATE)])
        .block(Block::new().title(title))
        .x_axis(times())
        .y_axis(Axis::default().style(DIM).bounds([0.0, highest]).labels(labels))
        .render(left, buffer);
    let all = || p50.iter().chain(p99).map(|(_, value)| *value);
    let (least, most) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let bounds = if least <= most { [least - 0.1, most + 0.1] } else { [3.0, 9.0] };
    let labels = [bounds[0], f64::midpoint(bounds[0], bounds[1]), bounds[1]];
    let title =
        [Span::raw("latency "), Span::styled("p50", P50), Span::raw(" "), Span::styled("p99", P99)];
    Chart::new(vec![line(p50, P50), line(p99, P99)])
        .block(Block::new().title(Line::from_iter(title)))
        .x_axis(times())
        .y_axis(
            Axis::default()
                .style(DIM)
                .bounds(bounds)
                .labels(labels.map(|value| duration(10f64.powf(value) as u64))),
        )
        .render(right, buffer);
}

/// `12.3k`.
fn short(number: f64) -> String {
    for (unit, size) in [("M", 1e6), ("k", 1e3)] {
        if number >= size {
            return format!("{:.1}{unit}", number / size);
        }
    }
    format!("{number:.0}")
}

/// The figures of a look.
fn figures_of(progress: &Progress) -> String {
    format!(
        "{} req/s, p50 {}, p99 {}, {} in flight, {} responses",
        rate(progress.rate),
        duration(progress.p50_ns),
        duration(progress.p99_ns),
        grouped(progress.in_flight),
        grouped(progress.completed),
    )
}

fn failures_of(progress: &Progress) -> Line<'static> {
    if progress.failures.is_empty() {
        return Line::styled("no failures", DIM);
    }
    let kinds = progress.failures.iter();
    let kinds: Vec<String> =
        kinds.map(|(kind, count)| format!("{} {}", grouped(*count), failure(*kind))).collect();
    Line::styled(format!("failures: {}", kinds.join(", ")), BAD)
}

fn cores_of(progress: &Progress) -> String {
    let mut text = format!("cores: generator {:.2}", progress.generator_cores);
    if let Some(cores) = progress.server_cores {
        let _ = write!(text, ", server {cores:.2}");
    }
    if let Some((present, all)) = progress.parts {
        let _ = write!(text, "; parts: {present} of {all}");
    }
    text
}

/// Its rows with the codes of a terminal, without spaces at their ends.
pub(super) fn rows(buffer: &Buffer, is_plain: bool) -> Vec<String> {
    let Rect { width, height, .. } = buffer.area;
    (0..height)
        .map(|y| {
            let cells: Vec<_> = (0..width).filter_map(|x| buffer.cell((x, y))).collect();
            let length = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |at| at + 1);
            let (mut row, mut style) = (String::new(), String::new());
            for cell in &cells[..length] {
                let wanted = if is_plain { String::new() } else { codes(cell.style()) };
                if wanted != style {
                    let _ = write!(row, "\x1b[0{wanted}m");
                    style = wanted;
                }
                row.push_str(cell.symbol());
            }
            if !style.is_empty() {
                row.push_str("\x1b[0m");
            }
            row
        })
        .collect()
}

/// ECMA-48 §8.3.117, for what is used here.
fn codes(style: Style) -> String {
    let mut codes = String::new();
    for (modifier, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
        if style.add_modifier.contains(modifier) {
            codes += code;
        }
    }
    codes += match style.fg {
        Some(Color::Red) => ";31",
        Some(Color::Green) => ";32",
        Some(Color::Yellow) => ";33",
        Some(Color::Cyan) => ";36",
        _ => "",
    };
    codes
}
