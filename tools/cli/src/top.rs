//! `bolide top`: what a server counts, live in a terminal.

mod figures;
mod scrape;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::Rect;

use figures::Figures;
use scrape::{Endpoint, Scrape};

/// How wide the table of `--once` is, in columns.
const ONCE_COLUMNS: u16 = 100;

/// The arguments of `bolide top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The operator's listener of a server: http://HOST:PORT, as --admin opened it.
    #[arg(default_value = "http://127.0.0.1:9090", value_parser = Endpoint::parse)]
    url: Endpoint,

    /// Print the figures of one interval as a table, and end.
    #[arg(long)]
    once: bool,

    /// How often the server is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=3600))]
    interval: u16,
}

/// Shows the figures until somebody ends it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if !arguments.once && !io::stdout().is_terminal() {
        eprintln!("bolide: the standard output is no terminal: give --once for a table");
        return ExitCode::from(2);
    }
    let result = if arguments.once { once(arguments) } else { live(arguments) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("bolide: {what}");
            ExitCode::FAILURE
        }
    }
}

fn once(arguments: &Arguments) -> Result<(), String> {
    let before = arguments.url.scrape()?;
    std::thread::sleep(Duration::from_secs(arguments.interval.into()));
    let figures = Figures::between(&before, &arguments.url.scrape()?);
    let area = Rect::new(0, 0, ONCE_COLUMNS, screen::rows(&figures));
    let mut table = Buffer::empty(area);
    screen::draw(&figures, &arguments.url.to_string(), None, area, &mut table);
    let mut out = io::stdout().lock();
    for line in screen::lines(&table) {
        writeln!(out, "{line}").map_err(|error| format!("the table can't be printed: {error}"))?;
    }
    Ok(())
}

fn live(arguments: &Arguments) -> Result<(), String> {
    // Nothing is drawn before there is something to draw: a mistyped address is a plain sentence.
    let before = arguments.url.scrape()?;
    let mut terminal = ratatui::try_init().map_err(|error| format!("the terminal: {error}"))?;
    let shown = show(arguments, before, &mut terminal);
    ratatui::restore();
    shown.map_err(|error| format!("the terminal: {error}"))
}

fn show(
    arguments: &Arguments,
    mut before: Scrape,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<()> {
    let interval = Duration::from_secs(arguments.interval.into());
    let server = arguments.url.to_string();
    let mut figures = Figures::between(&before, &before);
    let mut trouble = None;
    let mut due = Instant::now();
    loop {
        if Instant::now() >= due {
            due += interval;
            match arguments.url.scrape() {
                Ok(now) => {
                    figures = Figures::between(&before, &now);
                    (before, trouble) = (now, None);
                }
                Err(what) => trouble = Some(what),
            }
        }
        terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(&figures, &server, trouble.as_deref(), area, frame.buffer_mut());
        })?;
        if event::poll(due.saturating_duration_since(Instant::now()))?
            && let Event::Key(key) = event::read()?
        {
            let interrupted =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(());
            }
        }
    }
}
