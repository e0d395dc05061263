//! Structured events: what the server reports of itself, on the standard error.

use std::fmt;
use std::str::FromStr;

use bolide_probe::nearest::nearest;
use clap::ValueEnum;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

/// Targets of events.
pub(crate) const TARGETS: [&str; 9] = [
    "bolide::server",
    "bolide::accept",
    "bolide::tls",
    "bolide::limits",
    "bolide::handler",
    "bolide::proxy",
    "bolide::tower",
    "bolide::watchdog",
    "bolide::access_log",
];

/// How much is reported, from nothing to everything.
pub(crate) const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The arguments about events.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Events to report on the standard error: a level (off, error, warn, info, debug), or levels by
    /// target, such as info,bolide::tls=debug. Targets: bolide::server, bolide::accept, bolide::tls,
    /// bolide::limits, bolide::handler, bolide::proxy, bolide::tower, bolide::watchdog, bolide::access_log.
    /// Default: warn.
    #[arg(long, value_name = "LEVELS", value_parser = Levels::from_str)]
    pub(super) log_level: Option<Levels>,

    /// Format of events. Default: text.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) log_format: Option<EventFormat>,
}

/// The format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum EventFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Which events are reported: a level for all, and others for some targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    default: String,
    by_target: Vec<(String, String)>,
}

impl Default for Levels {
    fn default() -> Self {
        Self { default: "warn".to_owned(), by_target: Vec::new() }
    }
}

impl Levels {
    /// The level of targets that have none of their own.
    pub(crate) fn set_default(&mut self, level: &str) {
        level.clone_into(&mut self.default);
    }

    /// The level of one target.
    pub(crate) fn set(&mut self, target: &str, level: &str) {
        self.by_target.push((target.to_owned(), level.to_owned()));
    }

    /// As `--log-level` takes it.
    fn filter(&self) -> Targets {
        Targets::from_str(&self.to_string()).expect("targets and levels were checked")
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.default)?;
        self.by_target.iter().try_for_each(|(target, level)| write!(formatter, ",{target}={level}"))
    }
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let mistake = |what: &str| {
            format!(
                "{what}: give levels (off, error, warn, info, debug) or TARGET=LEVEL, separated by commas"
            )
        };
        // Without a level for all, the targets that are not named report nothing.
        let mut levels = Self { default: "off".to_owned(), by_target: Vec::new() };
        for part in given.split(',') {
            let (target, level) = match part.split_once('=') {
                None => (None, part),
                Some((target, level)) => (Some(target), level),
            };
            if !LEVELS.contains(&level) {
                return Err(mistake(&format!("`{part}` is not a level")));
            }
            match target {
                None => levels.set_default(level),
                Some(target) if !TARGETS.contains(&target) => {
                    let near = nearest(target, TARGETS);
                    let near = near.map_or(String::new(), |near| format!(" (`{near}`?)"));
                    return Err(mistake(&format!("`{part}` is not a target{near}")));
                }
                Some(target) => levels.set(target, level),
            }
        }
        Ok(levels)
    }
}

/// Reports events until it is dropped.
pub(crate) struct Events {
    filter: Handle<Targets, Registry>,
    /// It writes what is left when it is dropped.
    _guard: WorkerGuard,
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Events")
    }
}

impl Events {
    /// From here on events are reported, by a thread of their own: a slow terminal stops no worker.
    pub(super) fn start(levels: &Levels, format: EventFormat) -> Result<Self, String> {
        let (writer, guard) = NonBlockingBuilder::default().finish(std::io::stderr());
        let (filtered, filter) = reload::Layer::new(levels.filter());
        let events = tracing_subscriber::registry().with(filtered);
        let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
        let started = match format {
            EventFormat::Text => events.with(layer).try_init(),
            EventFormat::Json => events.with(layer.json().flatten_event(true)).try_init(),
        };
        started.map_err(|error| format!("can't report events: {error}"))?;
        Ok(Self { filter, _guard: guard })
    }

    /// Other events are reported from here on.
    pub(super) fn set(&self, levels: &Levels) {
        // It fails only when no sender is left.
        let _ = self.filter.reload(levels.filter());
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn levels_by_target() {
        for (good, tls, server) in [
            ("info", LevelFilter::INFO, LevelFilter::INFO),
            ("warn,bolide::tls=debug", LevelFilter::DEBUG, LevelFilter::WARN),
            ("bolide::tls=info", LevelFilter::INFO, LevelFilter::OFF),
            ("off", LevelFilter::OFF, LevelFilter::OFF),
        ] {
            let filter = Levels::from_str(good).unwrap().filter();
            let all =
                [LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG];
            for level in all.iter().filter_map(|level| level.into_level()) {
                assert_eq!(
                    filter.would_enable("bolide::tls", &level),
                    level <= tls,
                    "{good} {level}"
                );
                let wanted = level <= server;
                assert_eq!(filter.would_enable("bolide::server", &level), wanted, "{good} {level}");
            }
        }
        for bad in
            ["", "loud", "bolide::tls", "info,,warn", "bolide::tls=loud", "=info", "a=b=info"]
        {
            let said = Levels::from_str(bad).unwrap_err();
            assert!(said.contains("give levels"), "{bad}: {said}");
        }
        let said = Levels::from_str("info,bolide::tsl=debug").unwrap_err();
        assert!(
            said.starts_with("`bolide::tsl=debug` is not a target (`bolide::tls`?): "),
            "{said}"
        );
    }

    /// Every `target: "…"` in the crates that report events.
    fn reported() -> Vec<String> {
        fn look(directory: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, found);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let parts = text.split("target: \"bolide::").skip(1);
                    found.extend(
                        parts.filter_map(|part| {
                            Some(format!("bolide::{}", part.split_once('"')?.0))
                        }),
                    );
                }
            }
        }
        let mut found = Vec::new();
        for directory in ["service", "eventloop/src", "protocol"] {
            look(
                &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory),
                &mut found,
            );
        }
        found
    }

    #[test]
    fn every_target_is_listed_and_documented() {
        let page = include_str!("../../../../docs/operate.md");
        let reported = reported();
        for target in &reported {
            assert!(TARGETS.contains(&target.as_str()), "TARGETS lacks {target}");
        }
        for target in TARGETS {
            assert!(reported.iter().any(|other| other == target), "nobody reports {target}");
            assert!(
                page.contains(&format!("| `{target}` |")),
                "docs/operate.md has no row {target}"
            );
        }
    }
}
