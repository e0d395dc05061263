//! Structured events: what the server reports of itself, on the standard error.

use std::str::FromStr;

use clap::ValueEnum;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The arguments about events.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Which events are reported on the standard error: a level (off, error, warn, info, debug), or levels by
    /// target, such as info,bolide::tls=debug. Targets: bolide::server, bolide::accept, bolide::tls,
    /// bolide::limits, bolide::handler, bolide::watchdog, bolide::access_log.
    #[arg(long, value_name = "LEVELS", default_value = "warn", value_parser = levels)]
    log_level: Targets,

    /// What an event looks like.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: EventFormat,
}

/// The format of events.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum EventFormat {
    /// A line for people.
    Text,
    /// One JSON object in a line.
    Json,
}

/// Reports events until it is dropped.
pub(crate) struct Events(#[allow(dead_code, reason = "it works by being dropped")] WorkerGuard);

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Events")
    }
}

fn levels(given: &str) -> Result<Targets, String> {
    let mistake = |what: &str| {
        format!(
            "{what}: give a level (off, error, warn, info, debug), or TARGET=LEVEL, in a list with commas"
        )
    };
    for part in given.split(',') {
        let level = part.rsplit('=').next().unwrap_or_default();
        let is_level = ["off", "error", "warn", "info", "debug", "trace"].contains(&level);
        if !is_level {
            return Err(mistake(&format!("`{part}` names no level")));
        }
    }
    Targets::from_str(given).map_err(|error| mistake(&error.to_string()))
}

impl Arguments {
    /// From here on events are reported, by a thread of their own: a slow terminal stops no worker.
    pub(crate) fn start(&self) -> Result<Events, String> {
        let (writer, guard) = NonBlockingBuilder::default().finish(std::io::stderr());
        let events = tracing_subscriber::registry().with(self.log_level.clone());
        let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
        let started = match self.log_format {
            EventFormat::Text => events.with(layer).try_init(),
            EventFormat::Json => events.with(layer.json().flatten_event(true)).try_init(),
        };
        started.map_err(|error| format!("--log-level: {error}"))?;
        Ok(Events(guard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_target() {
        for good in ["info", "off", "info,bolide::tls=debug", "bolide::limits=info"] {
            assert!(levels(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "bolide::tls", "info,,warn", "bolide::tls=loud"] {
            let said = levels(bad).unwrap_err();
            assert!(said.contains("give a level"), "{bad}: {said}");
        }
    }
}
