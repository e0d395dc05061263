//! The drawing.

use bolide_loadgen::output::in_one_line;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Widget};

use super::figures::Figures;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BAD: Style = Style::new().fg(Color::Red);

const ROUTE_COLUMNS: &[Column] = &[
    ("req/s", 9, 0),
    ("2xx", 8, 5),
    ("3xx", 8, 7),
    ("4xx", 8, 4),
    ("5xx", 8, 1),
    ("none", 8, 6),
    ("50 % <", 9, 3),
    ("99 % <", 9, 2),
];

const UPSTREAM_COLUMNS: &[Column] = &[
    ("state", 5, 0),
    ("req/s", 9, 1),
    ("failures", 10, 2),
    ("retries", 10, 4),
    ("ejections", 10, 3),
];

/// How many rows all of it takes.
pub(super) fn rows(figures: &Figures) -> u16 {
    let upstreams = if figures.upstreams.is_empty() { 0 } else { figures.upstreams.len() + 2 };
    let stages = usize::from(stage_rows(figures));
    let rows = head(figures, "", None).len() + 1 + figures.routes.len().max(1) + upstreams + stages;
    u16::try_from(rows).unwrap_or(u16::MAX).min(500)
}

/// How many rows the stages take.
fn stage_rows(figures: &Figures) -> u16 {
    if figures.stages.is_empty() { 0 } else { 4 }
}

/// A number of something, short: `12.3k`.
fn short(number: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if number >= size {
            return format!("{:.1}{unit}", number / size);
        }
    }
    if number > 0.0 && number < 10.0 && number.fract() != 0.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

/// A duration, short: the upper bound of a bucket.
fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds.is_infinite() => "> 60 s".to_owned(),
        Some(seconds) if seconds >= 1.0 => format!("{seconds} s"),
        Some(seconds) if seconds >= 1e-3 => format!("{} ms", rounded(seconds * 1e3)),
        Some(seconds) => format!("{} µs", rounded(seconds * 1e6)),
    }
}

/// Without the traces of binary fractions.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn uptime(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{days} d {hours:02}:{minutes:02}")
    } else {
        format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
    }
}

/// Returns what a server says as it can be shown: what a terminal obeys, and marks that go onto the character before, are
/// escaped.
fn plain(text: &str) -> String {
    let mut shown = String::new();
    for one in in_one_line(text).chars() {
        if Span::raw(one.to_string()).width() == 0 {
            shown.extend(one.escape_unicode());
        } else {
            shown.push(one);
        }
    }
    shown
}

/// The lines above the tables.
fn head(figures: &Figures, server: &str, trouble: Option<&str>) -> Vec<Line<'static>> {
    let state =
        if figures.ready { Span::styled("ready", BOLD) } else { Span::styled("not ready", BAD) };
    let of = |what: String| Span::raw(what);
    let mut lines = vec![
        Line::from(vec![
            Span::styled("bolide ", BOLD),
            of(format!("{server}  ")),
            state,
            of(format!("  up {}  workers {}", uptime(figures.uptime), figures.workers)),
        ]),
        Line::from(vec![
            of(format!("requests {}/s  in flight {}", short(figures.rate), figures.in_flight)),
            of(format!("  in {}B/s  out {}B/s", short(figures.received), short(figures.sent))),
        ]),
    ];
    let open: Vec<String> = figures
        .connections
        .iter()
        .map(|(protocol, open, active)| format!("{} {open} ({active} active)", plain(protocol)))
        .collect();
    lines.push(Line::from(format!(
        "connections {}",
        if open.is_empty() { "0".to_owned() } else { open.join(", ") },
    )));
    lines.push(Line::from(format!(
        "new connections {}/s  handshakes {}/s  99 % of loop turns below {}",
        short(figures.accepted),
        short(figures.handshakes),
        duration(figures.turn_p99),
    )));
    lines.extend(certificates(figures));
    let troubles: Vec<String> =
        figures.troubles.iter().map(|(what, n)| format!("{} {}", plain(what), short(*n))).collect();
    lines.push(if let Some(trouble) = trouble {
        Line::styled(plain(trouble), BAD)
    } else if troubles.is_empty() {
        Line::styled("no limit was hit, nothing failed", DIM)
    } else {
        Line::styled(troubles.join(", "), BAD)
    });
    lines.push(Line::default());
    lines
}

/// How the certificates from a CA are, where there are any.
fn certificates(figures: &Figures) -> Option<Line<'static>> {
    let first = figures.certificates.first()?;
    let left = match first.expires_in {
        None => "has none".to_owned(),
        Some(seconds) if seconds <= 0.0 => "has expired".to_owned(),
        Some(seconds) => format!("expires first, in {} d", rounded(seconds / 86_400.0)),
    };
    let failures: f64 = figures.certificates.iter().map(|one| one.failures).sum();
    let count = figures.certificates.len();
    let style = if first.expires_in.is_some_and(|left| left > 0.0) { DIM } else { BAD };
    let text = format!(
        "certificates by ACME {count}: {} {left}; failed orders {}",
        plain(&first.name),
        short(failures)
    );
    Some(Line::styled(text, style))
}

/// A row of right-aligned numbers behind a name.
fn row(name: &str, numbers: impl IntoIterator<Item = String>) -> Row<'static> {
    let numbers = numbers.into_iter().map(|number| Cell::from(Line::from(number).right_aligned()));
    Row::new([Cell::from(plain(name))].into_iter().chain(numbers))
}

/// A column of numbers: its title, its width, and its place among those that a narrow screen drops, the highest first.
type Column = (&'static str, u16, u8);

/// A table keeps this width for its names.
const NAME_COLUMNS: u16 = 20;

/// Draws a table of names and numbers, without the columns that leave no room for the names.
fn table(
    name: &str,
    columns: &[Column],
    rows: impl Iterator<Item = (String, Vec<String>)>,
    (area, above): (Rect, u16),
    buffer: &mut Buffer,
) {
    let mut by_importance: Vec<usize> = (0..columns.len()).collect();
    by_importance.sort_by_key(|at| columns[*at].2);
    let mut room = area.width.saturating_sub(NAME_COLUMNS);
    let mut shown = vec![false; columns.len()];
    for at in by_importance {
        // One more for the space between columns.
        let needed = columns[at].1 + 1;
        if needed > room {
            break;
        }
        room -= needed;
        shown[at] = true;
    }
    let kept = |at: &usize| shown[*at];
    let kept: Vec<usize> = (0..columns.len()).filter(kept).collect();
    let widths = kept.iter().map(|at| Constraint::Length(columns[*at].1));
    let widths: Vec<_> = [Constraint::Fill(1)].into_iter().chain(widths).collect();
    let names: Vec<&str> = [name].into_iter().chain(kept.iter().map(|at| columns[*at].0)).collect();
    let rows = rows
        .map(|(name, mut cells)| row(&name, kept.iter().map(|at| std::mem::take(&mut cells[*at]))));
    Table::new(rows, widths).header(titles(&names).top_margin(above)).render(area, buffer);
}

fn titles(names: &[&str]) -> Row<'static> {
    let (first, rest) = names.split_first().unwrap_or((&"", &[]));
    row(first, rest.iter().map(|name| plain(name))).style(BOLD)
}

/// Draws the figures.
pub(super) fn draw(
    figures: &Figures,
    server: &str,
    trouble: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let head = head(figures, server, trouble);
    let upstreams =
        if figures.upstreams.is_empty() { 0 } else { figures.upstreams.len() as u16 + 2 };
    let [top, routes, below, stages] = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Min(2),
        Constraint::Length(upstreams),
        Constraint::Length(stage_rows(figures)),
    ])
    .areas(area);
    Paragraph::new(head).render(top, buffer);
    let rows = figures.routes.iter().map(|route| {
        let rates = [route.rate].into_iter().chain(route.classes).map(short);
        let cells = rates.chain([duration(route.median), duration(route.p99)]).collect();
        (route.name.clone(), cells)
    });
    table("route", ROUTE_COLUMNS, rows, (routes, 0), buffer);
    if upstreams > 0 {
        let rows = figures.upstreams.iter().map(|upstream| {
            let state = upstream.is_up.map_or("-", |is_up| if is_up { "up" } else { "DOWN" });
            let numbers =
                [upstream.rate, upstream.failures, upstream.retries, upstream.ejections].map(short);
            (upstream.name.clone(), [state.to_owned()].into_iter().chain(numbers).collect())
        });
        table("upstream", UPSTREAM_COLUMNS, rows, (below, 1), buffer);
    }
    draw_stages(figures, stages, buffer);
}

/// Draws where the CPU time of a request goes, when that is measured.
fn draw_stages(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    if figures.stages.is_empty() {
        return;
    }
    let all: f64 = figures.stages.iter().map(|(_, spent)| spent).sum();
    let (names, spent): (Vec<&str>, Vec<f64>) =
        figures.stages.iter().map(|(name, spent)| (name.as_str(), *spent)).unzip();
    let times = spent.iter().chain([&all]).map(|spent| format!("{:.2}", spent * 1e6));
    let share = |spent: &f64| format!("{:.0} %", spent / all.max(1e-12) * 100.0);
    let rows = [row("µs", times), row("share", spent.iter().map(share))];
    let names: Vec<&str> = ["CPU/req"].into_iter().chain(names).chain(["sum"]).collect();
    let columns = vec![Constraint::Length(8); names.len() - 1];
    let widths: Vec<_> = [Constraint::Fill(1)].into_iter().chain(columns).collect();
    Table::new(rows, widths).header(titles(&names).top_margin(1)).render(area, buffer);
}

/// Returns what was drawn, as text.
pub(super) fn lines(buffer: &Buffer) -> impl Iterator<Item = String> + '_ {
    let width = usize::from(buffer.area.width);
    buffer.content.chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::figures::{Certificate, Route, Upstream};
    use super::*;

    fn figures() -> Figures {
        let route = |name: &str, rate: f64| Route {
            name: name.to_owned(),
            rate,
            classes: [rate - 2.0, 0.0, 1.5, 0.0, 0.5],
            median: Some(0.00025),
            p99: Some(0.0025),
        };
        Figures {
            ready: true,
            uptime: 3723.9,
            workers: 2.0,
            rate: 123_456.0,
            in_flight: 7.0,
            received: 1_500_000.0,
            sent: 2_500.0,
            connections: vec![("h2".to_owned(), 100.0, 60.0), ("http/1.1".to_owned(), 3.0, 0.0)],
            accepted: 0.5,
            handshakes: 0.0,
            turn_p99: Some(0.0001),
            troubles: vec![("head-timeout".to_owned(), 5.0)],
            routes: vec![route("/ping", 123_400.0), route("/users/{id}", 56.0)],
            upstreams: vec![Upstream {
                name: "http://127.0.0.1:9000".to_owned(),
                is_up: Some(false),
                rate: 12.0,
                failures: 1.0,
                retries: 0.0,
                ejections: 0.0,
            }],
            certificates: vec![Certificate {
                name: "example.org".to_owned(),
                expires_in: Some(61.04 * 86_400.0),
                failures: 2.0,
            }],
            stages: [("receive", 1.25e-6), ("parse", 0.25e-6), ("handler", 0.0), ("send", 2.5e-6)]
                .map(|(name, spent)| (name.to_owned(), spent))
                .to_vec(),
        }
    }

    #[test]
    fn what_is_drawn() {
        let figures = figures();
        let mut terminal = Terminal::new(TestBackend::new(100, rows(&figures))).unwrap();
        terminal
            .draw(|frame| {
                let area = frame.area();
                draw(&figures, "http://127.0.0.1:9090", None, area, frame.buffer_mut());
            })
            .unwrap();
        let drawn: Vec<String> = lines(terminal.backend().buffer()).collect();
        assert_eq!(drawn.join("\n"), include_str!("expected.txt").trim_end());
    }

    #[test]
    fn a_narrow_screen_keeps_the_names_and_drops_columns() {
        let figures = figures();
        let at = |columns| {
            let area = Rect::new(0, 0, columns, rows(&figures));
            let mut buffer = Buffer::empty(area);
            draw(&figures, "http://a:1", None, area, &mut buffer);
            let drawn = lines(&buffer).collect::<Vec<_>>();
            drawn.into_iter().find(|line| line.starts_with("route")).expect("the titles")
        };
        let titles = |columns| at(columns).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(titles(60), "route req/s 5xx 50 % < 99 % <");
        assert_eq!(titles(40), "route req/s 5xx");
        assert_eq!(titles(20), "route");
    }

    #[test]
    fn trouble_takes_the_place_of_troubles() {
        let figures = Figures::default();
        let area = Rect::new(0, 0, 60, rows(&figures));
        let mut buffer = Buffer::empty(area);
        draw(&figures, "http://a:1", Some("it can't be asked"), area, &mut buffer);
        let drawn: Vec<String> = lines(&buffer).collect();
        assert!(drawn[0].contains("not ready"), "{drawn:?}");
        assert_eq!(drawn[4], "it can't be asked");
    }

    #[test]
    fn names_are_no_orders_to_the_terminal() {
        let mut figures = figures();
        let odd = "a\u{202e}b\u{9b}31m\x1b[2J\nc\u{301}\u{200d}";
        figures.routes[0].name = odd.to_owned();
        figures.connections[0].0 = odd.to_owned();
        figures.troubles[0].0 = odd.to_owned();
        figures.stages[0].0 = odd.to_owned();
        let area = Rect::new(0, 0, 300, rows(&figures));
        for trouble in [None, Some(odd)] {
            let mut buffer = Buffer::empty(area);
            draw(&figures, "http://a:1", trouble, area, &mut buffer);
            let drawn = lines(&buffer).collect::<Vec<_>>().join("\n");
            let escaped = "a\\u{202e}b\\u{9b}31m\\u{1b}[2J\\u{a}c\\u{301}\\u{200d}";
            assert_eq!(drawn.matches(escaped).count(), 3, "{drawn}");
            assert!(drawn.lines().all(|line| in_one_line(line) == line), "{drawn}");
            assert!(!drawn.contains(['\u{301}', '\u{200d}']), "{drawn}");
        }
    }

    #[test]
    fn a_small_terminal_is_no_panic() {
        for (columns, rows) in [(1, 1), (10, 3), (40, 6)] {
            let area = Rect::new(0, 0, columns, rows);
            draw(&figures(), "http://a:1", None, area, &mut Buffer::empty(area));
        }
    }
}
