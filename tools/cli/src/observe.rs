//! `bolide serve`: logs, metrics and the operator's listener, as flags and file ask for them.

mod admin;
mod events;
mod profile;
mod upstreams;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use bolide::Server;
use bolide::metrics::MetricSource;
use bolide::proxy::ProxySettings;
use bolide::server::{AccessLog, Listener, LogFormat, LogLimits, LogTarget, Running};
use bolide_eventloop::{Signal, Signals};
use clap::ValueEnum;

use crate::place::Place;
use crate::writable;
use admin::Admin;
pub(crate) use admin::AdminSettings;
use events::Events;
pub(crate) use events::{EventFormat, LEVELS, Levels, TARGETS};
pub(crate) use profile::PROFILE_RANGE;
use profile::Profiling;
pub(crate) use upstreams::Upstreams;

/// How long the access log may take to write what is left at the end.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

/// The arguments about what is observed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Observation")]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    admin: admin::Arguments,

    /// Write a line for each request to this file (`-`: the standard output). SIGUSR1 reopens the file after
    /// it was moved.
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,

    /// Format of the access log.
    #[arg(long, value_name = "FORMAT", value_enum)]
    access_log_format: Option<LineFormat>,

    #[command(flatten)]
    events: events::Arguments,

    #[command(flatten)]
    profile: profile::Arguments,
}

/// The format of the access log.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LineFormat {
    /// The common log format.
    Common,
    /// The same, with referer and user agent (the default).
    Combined,
    /// One JSON object per line.
    Json,
}

/// Settings of what is to be observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) admin: Option<AdminSettings>,
    pub(crate) access_log: Option<AccessLogSettings>,
    pub(crate) levels: Levels,
    pub(crate) event_format: EventFormat,
    /// Number of turns in one of which CPU time is measured.
    pub(crate) profile_one_in: Option<u32>,
    /// Clients are told the time that their responses took.
    pub(crate) server_timing: bool,
}

/// An access log that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccessLogSettings {
    pub(crate) target: LogTarget,
    pub(crate) format: LogFormat,
    pub(crate) limits: LogLimits,
    /// The share of the lines that is written, and whether errors are sampled, too.
    pub(crate) sample: (f64, bool),
    /// Place where the file is named, if that is in a configuration.
    pub(crate) place: Option<Place>,
}

impl AccessLogSettings {
    /// With the default limits, and every line.
    pub(crate) fn new(target: LogTarget, format: LogFormat) -> Self {
        Self { target, format, limits: LogLimits::default(), sample: (1.0, false), place: None }
    }

    /// Returns what was wrong with the file.
    fn failed(&self, error: &std::io::Error) -> String {
        let file = match &self.target {
            LogTarget::Stdout => "-".to_owned(),
            LogTarget::File(path) => path.display().to_string(),
        };
        let what = format!("{file}: can't be opened for appending: {error}");
        match &self.place {
            Some(place) => place.mistake(format!("`file` {what}")),
            None => format!("--access-log {what}"),
        }
    }

    /// Checks whether its file can be written.
    fn check(&self) -> Result<(), String> {
        let LogTarget::File(path) = &self.target else { return Ok(()) };
        writable::check(path).map_err(|error| self.failed(&error))
    }

    fn open(&self) -> Result<AccessLog, String> {
        let log = AccessLog::with_limits(self.target.clone(), self.format.clone(), self.limits)
            .map_err(|error| self.failed(&error))?;
        reopen_by_signal(log.clone()).map_err(|error| format!("the access log: {error}"))?;
        Ok(log.sampled(self.sample.0, self.sample.1))
    }
}

/// Opens the log again whenever SIGUSR1 comes.
fn reopen_by_signal(log: AccessLog) -> std::io::Result<()> {
    let mut signals = Signals::new(&[Signal::User1])?;
    // The thread waits for signals until the process ends.
    std::thread::Builder::new().name("reopen-log".to_owned()).spawn(move || {
        while signals.wait().is_some() {
            log.reopen();
        }
    })?;
    Ok(())
}

impl Settings {
    /// Finds what can be found to be wrong without starting anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.access_log.as_ref().map_or(Ok(()), AccessLogSettings::check)
    }
}

impl Arguments {
    /// Finds what can be found to be wrong with what only flags say, without starting anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.profile.check()
    }

    /// Returns what is to be observed: the flags over the file.
    pub(crate) fn over(&self, file: Settings) -> Result<Settings, String> {
        let mut settings = file;
        if let Some(admin) = self.admin.settings()? {
            settings.admin = Some(admin);
        }
        if let Some(path) = &self.access_log {
            let target = match path.to_str() {
                Some("-") => LogTarget::Stdout,
                _ => LogTarget::File(path.clone()),
            };
            let log = settings.access_log.get_or_insert_with(|| {
                AccessLogSettings::new(LogTarget::Stdout, LogFormat::default())
            });
            (log.target, log.place) = (target, None);
        }
        if let Some(format) = self.access_log_format {
            let Some(log) = &mut settings.access_log else {
                let what = "--access-log-format needs --access-log FILE";
                return Err(what.to_owned());
            };
            log.format = match format {
                LineFormat::Common => LogFormat::Common,
                LineFormat::Combined => LogFormat::Combined,
                LineFormat::Json => LogFormat::Json,
            };
        }
        if let Some(levels) = &self.events.log_level {
            settings.levels = levels.clone();
        }
        if let Some(format) = self.events.log_format {
            settings.event_format = format;
        }
        settings.profile_one_in = self.profile.one_in().or(settings.profile_one_in);
        if self.profile.has_file() && settings.profile_one_in.is_none() {
            return Err("--profile-json needs --profile".to_owned());
        }
        settings.server_timing |= self.profile.server_timing();
        Ok(settings)
    }
}

/// Observation of the server, from before it starts until after it has ended.
#[derive(Debug)]
pub(crate) struct Observation {
    settings: Settings,
    admin: Option<Admin>,
    upstreams: Upstreams,
    access_log: Option<AccessLog>,
    profiling: Profiling,
    /// Held until the end, so that the last events are written.
    events: Events,
}

impl Observation {
    /// Opens the log, starts the operator's listener, and from here on events are reported.
    /// `other`: what is shown next to the server and its upstreams; `admin`: sockets in the place of the listener's address.
    pub(crate) fn start(
        settings: Settings,
        arguments: &Arguments,
        proxies: &[ProxySettings],
        other: MetricSource,
        admin: Option<Listener>,
    ) -> Result<Self, String> {
        let events = Events::start(&settings.levels, settings.event_format)?;
        let access_log = settings.access_log.as_ref().map(AccessLogSettings::open).transpose()?;
        let upstreams = Upstreams::default();
        upstreams.replace(proxies);
        let started = settings
            .admin
            .clone()
            .map(|asked| Admin::start(asked, [upstreams.source(), other], admin));
        let admin = started.transpose()?;
        let profiling = arguments.profile.start(settings.profile_one_in);
        Ok(Self { settings, admin, upstreams, access_log, profiling, events })
    }

    /// The server is observed.
    pub(crate) fn watch(&self, mut server: Server) -> Server {
        if let Some(admin) = &self.admin {
            server = server.metrics(admin.metrics());
        }
        if let Some(log) = &self.access_log {
            server = server.access_log(log);
        }
        self.profiling.watch(server).server_timing(self.settings.server_timing)
    }

    /// The proxies that respond.
    pub(crate) fn proxies(&self) -> Vec<ProxySettings> {
        self.upstreams.in_force()
    }

    /// Other proxies answer from now on.
    pub(crate) fn replace_proxies(&self, proxies: &[ProxySettings]) {
        self.upstreams.replace(proxies);
    }

    /// Takes over what can change while the server runs: levels, where the access log goes, the profile, and what
    /// clients are told. Returns the sections of which something has changed that can't.
    ///
    /// What can be wrong is tried first: then nothing has changed.
    pub(crate) fn change(
        &mut self,
        to: &Settings,
        running: &Running,
    ) -> Result<Vec<&'static str>, String> {
        let mut left = Vec::new();
        let now = &mut self.settings;
        match (&mut now.access_log, &to.access_log, &self.access_log) {
            (Some(now), Some(to), Some(log)) => {
                if now.target != to.target {
                    log.redirect(to.target.clone()).map_err(|error| to.failed(&error))?;
                    now.target.clone_from(&to.target);
                }
                let of = |log: &AccessLogSettings| (log.format.clone(), log.limits, log.sample);
                if of(now) != of(to) {
                    left.push("[access-log] format, sample and limits");
                }
            }
            (None, None, _) => {}
            _ => left.push("[access-log]"),
        }
        if now.levels != to.levels {
            self.events.set(&to.levels);
            now.levels.clone_from(&to.levels);
        }
        if now.event_format != to.event_format {
            left.push("[log] format");
        }
        if now.admin != to.admin {
            left.push("[admin]");
        }
        // What /profile was told stays in force where the file says the same as before.
        if now.profile_one_in != to.profile_one_in {
            self.profiling.change(to.profile_one_in);
            now.profile_one_in = to.profile_one_in;
        }
        if now.server_timing != to.server_timing {
            running.set_server_timing(to.server_timing);
            now.server_timing = to.server_timing;
        }
        Ok(left)
    }

    /// Returns what the start says of it: a line, or nothing.
    pub(crate) fn announcement(&self) -> Option<String> {
        let address = self.admin.as_ref()?.address()?;
        Some(format!(
            "Admin: http://{address}/metrics, /healthz, /readyz; bolide top http://{address}"
        ))
    }

    /// The operator's listener: the address that was asked for, and its sockets for a process that takes over.
    pub(crate) fn take_sockets(&mut self) -> Option<(SocketAddr, Vec<OwnedFd>)> {
        self.admin.as_mut().map(Admin::take_sockets)
    }

    /// Another process has taken over: what an operator asks is its to answer.
    pub(crate) fn hand_over(&mut self) {
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
    }

    /// The server has ended: writes what is left. What could not be written is a failure.
    pub(crate) fn finish(self) -> Result<(), String> {
        if let Some(log) = self.access_log
            && !log.flush(FLUSH_PATIENCE)
        {
            eprintln!("bolide: the last lines of the access log could not be written in time");
        }
        let profile = self.profiling.finish();
        if let Some(admin) = self.admin {
            admin.stop();
        }
        profile
    }
}
