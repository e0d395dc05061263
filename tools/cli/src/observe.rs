//! `bolide serve`: the arguments about logs, metrics and the operator's listener.

mod admin;
mod events;
mod profile;
mod upstreams;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide::{AccessLog, Listener, LogFormat, LogTarget, ProxySettings, Server};
use bolide_eventloop::{Signal, Signals};
use clap::ValueEnum;

use admin::Admin;
use events::Events;
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

    /// Write a line for each request to this file (`-`: the standard output). SIGUSR1 opens the file again,
    /// after it was moved away.
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,

    /// What a line looks like.
    #[arg(long, value_name = "FORMAT", value_enum, requires = "access_log")]
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
    /// One JSON object in a line.
    Json,
}

/// What observes the server, from before it starts until after it has ended.
#[derive(Debug)]
pub(crate) struct Observation {
    admin: Option<Admin>,
    upstreams: Upstreams,
    access_log: Option<AccessLog>,
    profiling: Option<Profiling>,
    server_timing: bool,
    /// Held until the end, so that the last events are written.
    _events: Events,
}

impl Arguments {
    /// Whether what was asked for may be.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.admin.check()
    }

    /// Whether there is to be an operator's listener.
    pub(crate) fn has_admin(&self) -> bool {
        self.admin.is_given()
    }

    /// Opens the log, starts the operator's listener, and from here on events are reported.
    /// `admin`: sockets in the place of the listener's address.
    pub(crate) fn start(
        &self,
        proxies: &[ProxySettings],
        admin: Option<Listener>,
    ) -> Result<Observation, String> {
        let events = self.events.start()?;
        let access_log = self.access_log.as_ref().map(|path| self.open(path)).transpose()?;
        let upstreams = Upstreams::default();
        upstreams.replace(proxies);
        let admin = self.admin.start(&upstreams, admin)?;
        let profiling = self.profile.start(admin.is_some());
        let server_timing = self.profile.server_timing();
        Ok(Observation {
            admin,
            upstreams,
            access_log,
            profiling,
            server_timing,
            _events: events,
        })
    }

    fn open(&self, path: &Path) -> Result<AccessLog, String> {
        let format = match self.access_log_format {
            None | Some(LineFormat::Combined) => LogFormat::Combined,
            Some(LineFormat::Common) => LogFormat::Common,
            Some(LineFormat::Json) => LogFormat::Json,
        };
        let target = match path.to_str() {
            Some("-") => LogTarget::Stdout,
            _ => LogTarget::File(path.to_path_buf()),
        };
        let failed = |what: std::io::Error| {
            format!("--access-log {}: can't be opened for appending: {what}", path.display())
        };
        let log = AccessLog::open(target, format).map_err(failed)?;
        reopen_by_signal(log.clone()).map_err(|error| format!("--access-log: {error}"))?;
        Ok(log)
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

impl Observation {
    /// The server is observed.
    pub(crate) fn watch(&self, mut server: Server) -> Server {
        if let Some(admin) = &self.admin {
            server = server.metrics(admin.metrics());
        }
        if let Some(log) = &self.access_log {
            server = server.access_log(log);
        }
        if let Some(profiling) = &self.profiling {
            server = profiling.watch(server);
        }
        server.server_timing(self.server_timing)
    }

    /// What is shown of upstreams.
    pub(crate) fn upstreams(&self) -> Upstreams {
        self.upstreams.clone()
    }

    /// What the start says of it: a line, or nothing.
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

    /// The server has ended: writes what is left.
    pub(crate) fn finish(self) {
        if let Some(log) = self.access_log
            && !log.flush(FLUSH_PATIENCE)
        {
            eprintln!("bolide: the last lines of the access log could not be written in time");
        }
        if let Some(profiling) = self.profiling {
            profiling.finish();
        }
        if let Some(admin) = self.admin {
            admin.stop();
        }
    }
}
