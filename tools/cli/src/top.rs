//! `bolide top`: what a server counts, live in a terminal.

mod figures;
mod scrape;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bolide::client::Client;
use bolide_eventloop::{Signal, Signals};
use bolide_loadgen::output::in_one_line;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Modifier;
use ratatui::text::Line;

use figures::Figures;
use scrape::{Endpoint, PATIENCE, Scrape};

/// How long the terminal is waited for before there is a look at what was scraped.
const GLANCE: Duration = Duration::from_millis(100);

/// How wide the table of `--once` is, in columns.
const ONCE_COLUMNS: u16 = 100;

/// The arguments of `bolide top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// URL of a server's admin listener: http://HOST:PORT of its --admin.
    #[arg(default_value = "http://127.0.0.1:9090", value_parser = Endpoint::parse)]
    url: Endpoint,

    /// Print a table of one interval, and exit.
    #[arg(long)]
    once: bool,

    /// Seconds between scrapes.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=3600))]
    interval: u16,
}

impl Arguments {
    fn interval(&self) -> Duration {
        Duration::from_secs(self.interval.into())
    }
}

/// Shows the figures until it is ended.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if !arguments.once && !io::stdout().is_terminal() {
        eprintln!("bolide: standard output is not a terminal: use --once");
        return ExitCode::from(2);
    }
    let result = if arguments.once { once(arguments) } else { live(arguments) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("bolide: {}", in_one_line(&what));
            ExitCode::FAILURE
        }
    }
}

fn once(arguments: &Arguments) -> Result<(), String> {
    let client = client()?;
    let before = arguments.url.scrape(&client, PATIENCE)?;
    thread::sleep(arguments.interval());
    let figures = Figures::between(&before, &arguments.url.scrape(&client, PATIENCE)?);
    let area = Rect::new(0, 0, ONCE_COLUMNS, screen::rows(&figures));
    let mut table = Buffer::empty(area);
    screen::draw(&figures, &arguments.url.to_string(), None, area, &mut table);
    let mut out = io::stdout().lock();
    for line in screen::lines(&table) {
        writeln!(out, "{line}").map_err(|error| format!("the table can't be printed: {error}"))?;
    }
    Ok(())
}

fn client() -> Result<Client, String> {
    Client::new().map_err(|error| error.to_string())
}

fn live(arguments: &Arguments) -> Result<(), String> {
    let client = client()?;
    // Nothing is drawn before there is something to draw: a mistyped address is a plain sentence.
    let first = arguments.url.scrape(&client, PATIENCE)?;
    let (sender, news) = channel();
    watch_signals(sender.clone()).map_err(|error| format!("signals: {error}"))?;
    let (url, interval) = (arguments.url.clone(), arguments.interval());
    thread::spawn(move || scrape_on(&url, &client, interval, &sender));
    let server = arguments.url.to_string();
    let mut terminal = ratatui::try_init().map_err(|error| format!("the terminal: {error}"))?;
    let mut draw = |figures: &Figures, trouble: Option<&str>| {
        let drawn = terminal.draw(|frame| {
            let [figures_area, keys] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
            screen::draw(figures, &server, trouble, figures_area, frame.buffer_mut());
            frame.render_widget(Line::from("q: quit").style(Modifier::DIM), keys);
        });
        drawn.map(drop)
    };
    let shown = show(first, &news, &mut next_event, &mut draw);
    ratatui::restore();
    shown.map_err(|error| format!("the terminal: {error}"))
}

/// News of the threads around the picture.
enum News {
    Scraped(Result<Scrape, String>),
    /// A signal asks for the end: the terminal is given back first.
    End,
}

/// SIGTERM ends it, and Ctrl-C as long as that is a signal.
fn watch_signals(news: Sender<News>) -> io::Result<()> {
    let mut signals = Signals::new(&[Signal::Interrupt, Signal::Terminate])?;
    thread::spawn(move || {
        if signals.wait().is_some() {
            // The view may have ended.
            let _ = news.send(News::End);
        }
    });
    Ok(())
}

/// Scrapes until it is no longer wanted.
fn scrape_on(url: &Endpoint, client: &Client, interval: Duration, news: &Sender<News>) {
    let mut due = Instant::now() + interval;
    loop {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if news.send(News::Scraped(url.scrape(client, PATIENCE))).is_err() {
            return;
        }
        due = (due + interval).max(Instant::now());
    }
}

/// Returns what the terminal has to say, if it says something in time.
fn next_event(wait: Duration) -> io::Result<Option<Event>> {
    if event::poll(wait)? { event::read().map(Some) } else { Ok(None) }
}

/// Draws what is new until a key or a signal ends it; keys wait for no scrape.
fn show(
    mut before: Scrape,
    news: &Receiver<News>,
    next_event: &mut dyn FnMut(Duration) -> io::Result<Option<Event>>,
    draw: &mut dyn FnMut(&Figures, Option<&str>) -> io::Result<()>,
) -> io::Result<()> {
    let mut figures = Figures::between(&before, &before);
    let mut trouble = None;
    loop {
        draw(&figures, trouble.as_deref())?;
        let mut is_new = false;
        while !is_new {
            match next_event(GLANCE)? {
                Some(Event::Key(key)) if ends(&key) => return Ok(()),
                Some(_) => is_new = true,
                None => {}
            }
            while let Ok(news) = news.try_recv() {
                is_new = true;
                match news {
                    News::Scraped(Ok(now)) => {
                        figures = Figures::between(&before, &now);
                        (before, trouble) = (now, None);
                    }
                    News::Scraped(Err(what)) => trouble = Some(what),
                    News::End => return Ok(()),
                }
            }
        }
    }
}

fn ends(key: &KeyEvent) -> bool {
    let interrupts =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    interrupts || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Scrape {
        scrape::parse_all(Instant::now(), "bolide_ready 1")
    }

    #[test]
    fn keys_wait_for_no_scrape() {
        for key in [
            KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE),
            KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        ] {
            // The user goes on asking a server that says nothing.
            let (_asking, news) = channel();
            let mut pictures = 0;
            let mut draw = |_: &Figures, _: Option<&str>| {
                pictures += 1;
                Ok(())
            };
            show(nothing(), &news, &mut |_| Ok(Some(Event::Key(key))), &mut draw).unwrap();
            assert_eq!(pictures, 1);
        }
    }

    #[test]
    fn a_signal_ends_it_orderly_and_trouble_is_shown() {
        let (sender, news) = channel();
        sender.send(News::Scraped(Err("it says nothing".to_owned()))).unwrap();
        let mut troubles = Vec::new();
        let mut draw = |_: &Figures, trouble: Option<&str>| {
            troubles.extend(trouble.map(str::to_owned));
            if trouble.is_some() {
                sender.send(News::End).unwrap();
            }
            Ok(())
        };
        show(nothing(), &news, &mut |_| Ok(None), &mut draw).unwrap();
        assert_eq!(troubles, ["it says nothing"]);
    }
}
