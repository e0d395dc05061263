//! The command line of `bolide measure`, and the plan that it stands for.

use std::path::PathBuf;
use std::time::Duration;

use bolide_probe::plan::ServerProcesses;
use bolide_probe::stop::Stop;
use bolide_probe::target::{connect_to, resolve};
use bolide_semantics::{Scheme, Url};
use bolide_units::{count, positive_seconds, rate, size, small_size};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::Method;

use crate::plan::{Amount, Connecting, Direction, Plan, Probing, Transfer, Trusted, Version};
use crate::responsiveness;
use crate::responsiveness::statistics::Parameters;
use crate::target;

/// How long a transfer takes whose URL and options say neither size nor time.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// When a download by ndt7 is given up that the server, after 10 s, should have ended.
const NDT7_DOWNLOAD_TIME: Duration = Duration::from_secs(15);

/// Size that is asked for when the time alone limits a download: the most that `/{size}` answers (1 TiB).
const ENDLESS_BYTES: u64 = 1 << 40;

/// More streams or connections than this are a mistake.
const COUNT_MAX: u64 = 10_000;

/// The least and greatest SETTINGS_MAX_FRAME_SIZE (RFC 9113 §6.5.2).
const FRAME_BYTES: std::ops::RangeInclusive<u32> = 16_384..=16_777_215;

/// The first window of a connection, which can't shrink (RFC 9113 §6.9.2).
const WINDOW_BYTES_MIN: u32 = 65_535;

/// Method with which the body of a transfer is asked for or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Verb {
    /// Download.
    #[value(name = "GET", alias = "get")]
    Get,
    /// Upload.
    #[value(name = "PUT", alias = "put")]
    Put,
    /// Upload.
    #[value(name = "POST", alias = "post")]
    Post,
}

/// Measure one transfer: its speed, what it cost both sides, and what limited it.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 fine; 1 the transfer failed, or Ctrl-C ended it; 2 usage or configuration."
)]
pub struct Arguments {
    /// http(s)://host:port/SIZE or any URL to download, ws(s)://host:port/ndt/v7/download or upload
    /// (ndt7), raw://host:port (TCP)
    pub url: String,
    /// Downloads are GET, uploads PUT or POST
    #[arg(short = 'X', long = "method", value_name = "METHOD", default_value = "GET")]
    pub verb: Verb,
    /// Bytes of each request, such as 1G; the path /SIZE says the same in digits alone
    #[arg(short = 'n', long = "bytes", value_name = "BYTES", value_parser = size)]
    pub bytes: Option<u64>,
    /// Duration of the transfer, in seconds or with a unit [default: 10 s when the URL has no size]
    #[arg(short = 't', long = "time", value_name = "TIME", value_parser = positive_seconds, conflicts_with = "bytes")]
    pub time: Option<Duration>,
    /// Concurrent requests on each connection (HTTP/2 and HTTP/3)
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub streams: u64,
    /// Connections; one thread serves them all, except raw TCP: one thread each
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub connections: u64,
    /// The version of HTTP.
    #[command(flatten)]
    pub versions: VersionArguments,
    /// Settings of connections.
    #[command(flatten)]
    pub dialing: DialingArguments,
    /// Measurements during the transfer.
    #[command(flatten)]
    pub probes: ProbeArguments,
    /// Write all figures as JSON; -: to the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress and no summary
    #[arg(short, long)]
    pub quiet: bool,
    /// The server's process on this machine [default: the process that listens on the port]
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
}

/// Measurements during the transfer.
#[derive(Debug, Clone, Args)]
pub struct ProbeArguments {
    /// Probe latency before and during the transfer: on its connection, on another one, at another
    /// origin
    #[arg(long)]
    pub latency: bool,
    /// Path that probes request
    #[arg(long, value_name = "PATH", default_value = "/ping")]
    pub probe_path: String,
    /// Other origin to probe, with a path
    #[arg(long, value_name = "URL")]
    pub probe_origin: Option<String>,
    /// Probes of each kind per second, in an open loop
    #[arg(long, value_name = "RATE", default_value = "20", value_parser = rate)]
    pub probe_rate: f64,
    /// Duration of the latency probes before the transfer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = positive_seconds)]
    pub probe_idle: Duration,
    /// Score responsiveness under load (draft-ietf-ippm-responsiveness-09) instead of one transfer; the
    /// URL names a server with /.well-known/nq
    #[arg(long, conflicts_with_all = ["bytes", "time", "latency", "streams", "connections", "h1"])]
    pub rpm: bool,
    /// Duration of an interval of --rpm; older clients use 1s
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive_seconds)]
    pub rpm_interval: Duration,
    /// Let the server of --rpm direct the load to another host, port or scheme than the URL's
    #[arg(long, requires = "rpm")]
    pub allow_other_hosts: bool,
}

/// Settings of connections.
#[derive(Debug, Clone, Args)]
pub struct DialingArguments {
    /// Accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Trust only these CA certificates (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub cacert: Option<PathBuf>,
    /// Connect to this HOST, HOST:PORT or unix:PATH instead of where the URL says
    #[arg(long, value_name = "WHERE")]
    pub connect_to: Option<String>,
    /// Largest HTTP/2 frame to accept and to send, in bytes [default: 16K]
    #[arg(long, value_name = "BYTES", value_parser = small_size)]
    pub max_frame: Option<u32>,
    /// Fixed receive windows of HTTP/2 streams and the connection, in bytes [default: they grow]
    #[arg(long, value_name = "BYTES", value_parser = small_size)]
    pub window: Option<u32>,
    /// Timeout for establishing a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_seconds)]
    pub connect_timeout: Duration,
}

/// The version of HTTP.
#[derive(Debug, Clone, Args)]
pub struct VersionArguments {
    /// HTTP/1.1 only
    #[arg(long)]
    pub h1: bool,
    /// HTTP/2 only (https)
    #[arg(long, conflicts_with = "h1")]
    pub h2: bool,
    /// HTTP/2 without TLS, by prior knowledge (http)
    #[arg(long, conflicts_with_all = ["h1", "h2"])]
    pub h2c: bool,
    /// HTTP/3 only (https)
    #[arg(long, alias = "http3", conflicts_with_all = ["h1", "h2", "h2c", "latency", "rpm"])]
    pub h3: bool,
}

impl Arguments {
    /// The plan: reads files and resolves names, but sends nothing.
    ///
    /// # Errors
    ///
    /// The first mistake, in a sentence that says what would be right.
    pub fn plan(&self) -> Result<Plan, String> {
        let target = target::parse(&self.url)?;
        let transfer = self.transfer(&target)?;
        let connecting = self.connecting(&target, self.dialing.connect_to.as_deref())?;
        let probing = if self.probes.latency { Some(self.probing(&target)?) } else { None };
        let server = match self.server_pid {
            Some(pid) => ServerProcesses::Pid(pid),
            None => ServerProcesses::ByPort,
        };
        Ok(Plan { target, connecting, transfer, probing, server, stop: Stop::default() })
    }

    /// The plan for `--rpm`.
    ///
    /// # Errors
    ///
    /// As [`Self::plan`].
    pub fn responsiveness(&self) -> Result<responsiveness::Plan, String> {
        let target = target::parse(&self.url)?;
        if !matches!(target.scheme, Scheme::Http | Scheme::Https) {
            return Err("--rpm needs an http:// or https:// URL".into());
        }
        if self.verb != Verb::Get {
            return Err("-X cannot be combined with --rpm, which measures both directions".into());
        }
        // Without TLS it is HTTP/2 by prior knowledge, said or not.
        let plain = Self {
            versions: VersionArguments {
                h2c: target.scheme == Scheme::Http,
                ..self.clone().versions
            },
            ..self.clone()
        };
        let config_path =
            if target.path == "/" { "/.well-known/nq".into() } else { target.path.clone() };
        Ok(responsiveness::Plan {
            url: target.to_string(),
            connecting: plain.connecting(&target, self.dialing.connect_to.as_deref())?,
            config_path,
            allows_other_hosts: self.probes.allow_other_hosts,
            interval: self.probes.rpm_interval,
            intervals_max: responsiveness::INTERVALS_MAX,
            parameters: Parameters::default(),
            stop: Stop::default(),
        })
    }

    /// Returns what is transferred.
    fn transfer(&self, target: &Url) -> Result<Transfer, String> {
        for (option, count) in [("--streams", self.streams), ("--connections", self.connections)] {
            if count > COUNT_MAX {
                return Err(format!("{option} {count}: must be at most {COUNT_MAX}"));
            }
        }
        let is_h2 = match target.scheme {
            Scheme::Http => self.versions.h2c,
            Scheme::Https => !self.versions.h1,
            _ => false,
        };
        if self.streams > 1 && !is_h2 {
            return Err(
                "--streams needs HTTP/2 (--h2c without TLS): use --connections over HTTP/1.1"
                    .into(),
            );
        }
        let (method, direction) = match self.verb {
            Verb::Get => (Method::GET, Direction::Download),
            Verb::Put => (Method::PUT, Direction::Upload),
            Verb::Post => (Method::POST, Direction::Upload),
        };
        if target.scheme.is_websocket() {
            return self.ndt7(target);
        }
        let (path, expected_bytes, amount) = self.amount(target, direction)?;
        Ok(Transfer {
            direction,
            method,
            path,
            expected_bytes,
            amount,
            is_ndt7: false,
            streams: self.streams as usize,
            connections: self.connections as usize,
        })
    }

    /// A subtest of ndt7: the path says which.
    fn ndt7(&self, target: &Url) -> Result<Transfer, String> {
        if self.bytes.is_some() {
            return Err("ndt7 transfers end by time: use -t instead of -n".into());
        }
        if self.verb != Verb::Get {
            return Err(
                "-X cannot be combined with ndt7: the direction is in the path, /ndt/v7/upload or \
                        /ndt/v7/download"
                    .into(),
            );
        }
        let path = target.path.clone();
        let direction = match path.split('?').next().and_then(|path| path.rsplit('/').next()) {
            Some("download") => Direction::Download,
            Some("upload") => Direction::Upload,
            _ => {
                return Err(format!(
                    "`{path}` is not an ndt7 test: use /ndt/v7/download or /ndt/v7/upload"
                ));
            }
        };
        let time = self.time.unwrap_or(match direction {
            Direction::Download => NDT7_DOWNLOAD_TIME,
            Direction::Upload => DEFAULT_TIME,
        });
        Ok(Transfer {
            direction,
            method: Method::GET,
            path,
            expected_bytes: None,
            amount: Amount::Time(time),
            is_ndt7: true,
            streams: 1,
            connections: self.connections as usize,
        })
    }

    /// The path that is asked for, how long its response must be, and how much is transferred.
    fn amount(
        &self,
        target: &Url,
        direction: Direction,
    ) -> Result<(String, Option<u64>, Amount), String> {
        let path = target.path.clone();
        if let (Some(named), Some(asked)) = (target::size(&target.path), self.bytes)
            && named != asked
        {
            return Err(format!("the URL names {named} bytes and -n {asked}: give one of them"));
        }
        let bytes = self.bytes.or_else(|| target::size(&target.path));
        let time = self.time.unwrap_or(DEFAULT_TIME);
        if target.scheme == Scheme::Raw {
            let amount = bytes.map_or(Amount::Time(time), Amount::Bytes);
            return Ok((path, None, amount));
        }
        let is_ours = target.path == "/" || target::size(&target.path).is_some();
        Ok(match (direction, bytes) {
            (Direction::Download, Some(_)) if !is_ours => {
                return Err(format!(
                    "-n needs http://host:port/ or /SIZE: the server decides how many bytes `{path}` has"
                ));
            }
            (Direction::Download, Some(bytes)) => {
                let amount = self.time.map_or(Amount::Whole, Amount::Time);
                (format!("/{bytes}"), Some(bytes), amount)
            }
            (Direction::Download, None) if is_ours => {
                (format!("/{ENDLESS_BYTES}"), Some(ENDLESS_BYTES), Amount::Time(time))
            }
            (Direction::Download, None) => {
                (path, None, self.time.map_or(Amount::Whole, Amount::Time))
            }
            (Direction::Upload, Some(bytes)) if self.time.is_none() => {
                let path = if is_ours { format!("/{bytes}") } else { path };
                (path, None, Amount::Bytes(bytes))
            }
            (Direction::Upload, Some(_)) => {
                return Err(
                    "an upload ends by size or by time (-t), not both: remove the size or -t"
                        .into(),
                );
            }
            (Direction::Upload, None) => {
                let path = if is_ours { format!("/{ENDLESS_BYTES}") } else { path };
                (path, None, Amount::Time(time))
            }
        })
    }

    /// How connections to a target are made.
    fn connecting(&self, target: &Url, elsewhere: Option<&str>) -> Result<Connecting, String> {
        self.check_protocol(target)?;
        let elsewhere = elsewhere.map(|text| {
            connect_to(text, target.port()).map_err(|why| format!("--connect-to: {why}"))
        });
        let elsewhere: Vec<_> = elsewhere.transpose()?.into_iter().collect();
        let origin = resolve(target, &elsewhere, self.dialing.connect_timeout)?;
        let trusted = match &self.dialing.cacert {
            _ if !target.scheme.is_tls() => Trusted::Any,
            Some(path) => {
                let pem = std::fs::read(path)
                    .map_err(|error| format!("--cacert {}: {error}", path.display()))?;
                Trusted::Roots(Bytes::from(pem))
            }
            None if self.dialing.insecure => Trusted::Any,
            None => Trusted::Platform,
        };
        let version = if self.versions.h1 || target.scheme.is_websocket() {
            Version::Http1
        } else if self.versions.h2 || self.versions.h2c {
            Version::Http2
        } else if self.versions.h3 {
            Version::Http3
        } else {
            Version::Negotiated
        };
        Ok(Connecting {
            origin,
            version,
            trusted,
            window_bytes: self.dialing.window,
            frame_bytes: self.dialing.max_frame,
            timeout: self.dialing.connect_timeout,
        })
    }

    /// Options that don't go with the URL.
    fn check_protocol(&self, target: &Url) -> Result<(), String> {
        let scheme = target.scheme;
        let given = |options: &[(&'static str, bool)]| {
            options.iter().find(|(_, is_set)| *is_set).map(|(option, _)| *option)
        };
        let url = format!("the URL begins with {}://", scheme.name());
        if let Some(option) = given(&[
            ("--insecure", self.dialing.insecure),
            ("--cacert", self.dialing.cacert.is_some()),
        ]) && !scheme.is_tls()
        {
            return Err(format!("{option} needs TLS, but {url}"));
        }
        if let Some(option) = given(&[
            ("--h2", self.versions.h2),
            ("--h2c", self.versions.h2c),
            ("--h3", self.versions.h3),
        ]) && scheme.is_websocket()
        {
            return Err(format!("{option}: ndt7 needs HTTP/1.1, and {url}"));
        }
        if self.versions.h2 && scheme != Scheme::Https {
            return Err(format!("--h2 is HTTP/2 over TLS, but {url}: use --h2c without TLS"));
        }
        if self.versions.h2c && scheme != Scheme::Http {
            return Err(format!("--h2c is HTTP/2 without TLS, but {url}: use --h2 with TLS"));
        }
        if self.versions.h3 && scheme != Scheme::Https {
            return Err(format!("--h3 is HTTP/3, which needs an https:// URL, but {url}"));
        }
        let speaks_h2 = self.versions.h2c
            || (scheme == Scheme::Https && !self.versions.h1 && !self.versions.h3);
        if let Some(option) = given(&[
            ("--window", self.dialing.window.is_some()),
            ("--max-frame", self.dialing.max_frame.is_some()),
        ]) && !speaks_h2
        {
            return Err(format!("{option} needs HTTP/2 (without TLS: --h2c)"));
        }
        if let Some(bytes) = self.dialing.window.filter(|bytes| *bytes < WINDOW_BYTES_MIN) {
            return Err(format!("--window {bytes}: must be at least {WINDOW_BYTES_MIN} bytes"));
        }
        if let Some(bytes) = self.dialing.max_frame.filter(|bytes| !FRAME_BYTES.contains(bytes)) {
            return Err(format!("--max-frame {bytes}: must be from 16384 to 16777215 bytes"));
        }
        Ok(())
    }

    /// How latency is probed.
    fn probing(&self, target: &Url) -> Result<Probing, String> {
        if !matches!(target.scheme, Scheme::Http | Scheme::Https) {
            return Err("--latency sends HTTP requests: it needs an http:// or https:// URL".into());
        }
        if !self.probes.probe_path.starts_with('/') {
            return Err(format!("--probe-path `{}`: must begin with `/`", self.probes.probe_path));
        }
        let other = match &self.probes.probe_origin {
            None => None,
            Some(url) => {
                let target = target::parse(url).map_err(|why| format!("--probe-origin: {why}"))?;
                if !matches!(target.scheme, Scheme::Http | Scheme::Https) {
                    return Err(format!(
                        "--probe-origin `{url}`: must be an http:// or https:// URL"
                    ));
                }
                let path = if target.path == "/" {
                    self.probes.probe_path.clone()
                } else {
                    target.path.clone()
                };
                let plain = Self {
                    versions: VersionArguments { h1: false, h2: false, h2c: false, h3: false },
                    dialing: DialingArguments {
                        window: None,
                        max_frame: None,
                        ..self.clone().dialing
                    },
                    ..self.clone()
                };
                let plain = match target.scheme {
                    Scheme::Http => Self {
                        dialing: DialingArguments {
                            insecure: false,
                            cacert: None,
                            ..plain.dialing
                        },
                        ..plain
                    },
                    _ => plain,
                };
                Some((plain.connecting(&target, None)?, path))
            }
        };
        Ok(Probing {
            path: self.probes.probe_path.clone(),
            other,
            rate: self.probes.probe_rate,
            idle: self.probes.probe_idle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let words = std::iter::once("measure").chain(line.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())?.arguments.plan()
    }

    fn amount(line: &str) -> (String, Option<u64>, Amount) {
        let Transfer { path, expected_bytes, amount, .. } = plan(line).unwrap().transfer;
        (path, expected_bytes, amount)
    }

    #[test]
    fn size_and_time_come_from_the_url_and_the_options() {
        let (ten, second) = (Amount::Time(DEFAULT_TIME), Amount::Time(Duration::from_secs(1)));
        let endless = format!("/{ENDLESS_BYTES}");
        let root = "http://127.0.0.1:1/";
        for (line, path, expected, much) in [
            ("http://127.0.0.1:1/1024", "/1024", Some(1024), Amount::Whole),
            ("http://127.0.0.1:1/1024 -n 1K", "/1024", Some(1024), Amount::Whole),
            ("http://127.0.0.1:1/1024 -t 1", "/1024", Some(1024), second),
            ("http://127.0.0.1:1 -n 1M", "/1048576", Some(1 << 20), Amount::Whole),
            (root, endless.as_str(), Some(ENDLESS_BYTES), ten),
            ("http://127.0.0.1:1/ -t 1s", endless.as_str(), Some(ENDLESS_BYTES), second),
            ("http://127.0.0.1:1/a/b?c", "/a/b?c", None, Amount::Whole),
            ("http://127.0.0.1:1/a -t 1", "/a", None, second),
            ("http://127.0.0.1:1/7 -X PUT", "/7", None, Amount::Bytes(7)),
            ("http://127.0.0.1:1/ -X PUT -n 7", "/7", None, Amount::Bytes(7)),
            ("http://127.0.0.1:1/up -X POST -n 7", "/up", None, Amount::Bytes(7)),
            ("http://127.0.0.1:1/up -X POST", "/up", None, ten),
            ("http://127.0.0.1:1/ -X PUT -t 1", endless.as_str(), None, second),
            ("raw://127.0.0.1:1 -n 7", "/", None, Amount::Bytes(7)),
            ("raw://127.0.0.1:1 -X PUT", "/", None, ten),
            ("ws://127.0.0.1:1/ndt/v7/upload", "/ndt/v7/upload", None, ten),
            ("ws://127.0.0.1:1/ndt/v7/download?a=b -t 1", "/ndt/v7/download?a=b", None, second),
        ] {
            assert_eq!(amount(line), (path.to_owned(), expected, much), "{line}");
        }
    }

    #[test]
    fn each_mistake_is_one_sentence() {
        for (line, why) in [
            ("http://127.0.0.1:1/5 -n 6", "give one of them"),
            ("http://127.0.0.1:1/a -n 6", "the server decides"),
            ("http://127.0.0.1:1/5 -X PUT -t 1", "by size or by time"),
            ("http://127.0.0.1:1/5 --streams 2", "use --connections"),
            ("https://127.0.0.1:1/5 --h1 --streams 2", "use --connections"),
            ("http://127.0.0.1:1/5 --connections 20k", "at most 10000"),
            ("http://127.0.0.1:1/5 --h2", "use --h2c without TLS"),
            ("https://127.0.0.1:1/5 --h2c", "use --h2 with TLS"),
            ("http://127.0.0.1:1/5 --h3", "needs an https:// URL, but the URL begins with http://"),
            ("https://127.0.0.1:1/5 --insecure --h3 --window 1M", "--window needs HTTP/2"),
            ("https://127.0.0.1:1/5 --insecure --h3 --latency", "cannot be used with"),
            ("ws://127.0.0.1:1/ndt/v7/upload --h3", "ndt7 needs HTTP/1.1"),
            ("ws://127.0.0.1:1/ndt/v7/upload --h2", "ndt7 needs HTTP/1.1"),
            ("wss://127.0.0.1:1/ndt/v7/upload --h2c", "ndt7 needs HTTP/1.1"),
            ("http://127.0.0.1:1/5 --insecure", "--insecure needs TLS"),
            ("http://127.0.0.1:1/5 --window 1M", "--window needs HTTP/2"),
            ("http://127.0.0.1:1/5 --h2c --window 1K", "at least 65535 bytes"),
            ("http://127.0.0.1:1/5 --h2c --max-frame 1K", "16384 to 16777215"),
            ("https://127.0.0.1:1/5 --cacert /nowhere", "--cacert /nowhere:"),
            ("ws://127.0.0.1:1/ndt/v7/download -n 1", "by time"),
            ("ws://127.0.0.1:1/ndt/v7/both", "/ndt/v7/upload"),
            ("ws://127.0.0.1:1/ndt/v7/download -X PUT", "-X cannot be combined with ndt7"),
            ("raw://127.0.0.1:1 --latency", "http:// or https://"),
            ("http://127.0.0.1:1/5 --latency --probe-path x", "must begin with `/`"),
            ("http://127.0.0.1:1/5 --latency --probe-origin raw://a:1", "--probe-origin `raw"),
            ("http://127.0.0.1:1/5 --connect-to a:b", "--connect-to: "),
            ("http://127.0.0.1:1/5 -n 1 -t 1", "cannot be used with"),
        ] {
            let said = plan(line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn versions_follow_the_options() {
        for (line, version) in [
            ("http://127.0.0.1:1/5", Version::Negotiated),
            ("http://127.0.0.1:1/5 --h2c", Version::Http2),
            ("https://127.0.0.1:1/5 --insecure --h1", Version::Http1),
            ("https://127.0.0.1:1/5 --insecure --h2", Version::Http2),
            ("https://127.0.0.1:1/5 --insecure --h3 --streams 2", Version::Http3),
            ("ws://127.0.0.1:1/ndt/v7/download", Version::Http1),
        ] {
            assert_eq!(plan(line).unwrap().connecting.version, version, "{line}");
        }
        let plan =
            plan("http://127.0.0.1:1/5 --latency --probe-origin http://127.0.0.1:2").unwrap();
        let probing = plan.probing.unwrap();
        let (other, path) = probing.other.unwrap();
        assert_eq!((other.origin.authority.as_str(), path.as_str()), ("127.0.0.1:2", "/ping"));
    }
}
