//! From the arguments of `bolide load` to what is to be done.

mod arguments;
mod grpc;
mod load;
mod parts;
pub(crate) mod request;
fn timeouts(connection: &ConnectionArguments) -> Timeouts {
    Timeouts { connect_timeout: connection.connect_timeout, request_timeout: connection.timeout }
}

#[cfg(test)]
mod tests;
pub mod threshold;
mod websocket;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use bolide_probe::plan::{
    Http2Plan, Origin, Plan, RequestKind, ServerProcesses, Timeouts, TlsPlan, TlsTrust, Version,
};
use bolide_probe::scenario::Scenario;
use bolide_probe::target;
use bolide_semantics::{Scheme, Url};
use bytes::Bytes;
use http::HeaderValue;

pub use arguments::Arguments;
pub(crate) use arguments::{Action, CompareArguments};
pub(crate) use parts::PartsArguments;
pub use threshold::Threshold;

use crate::output::push::{Collector, Protocol};
use crate::schedule::Schedule;
use arguments::{ConnectionArguments, OutputArguments};

/// The connections of a run, by default.
const DEFAULT_CONNECTIONS: u64 = 10;

/// More connections than this don't fit into the ports of one address, four times over.
const MOST_CONNECTIONS: u64 = 250_000;

/// The users of a scenario at a time, by default.
const DEFAULT_USERS: u64 = 10;

/// More users than this at a time are a mistake.
const MOST_USERS: u64 = 10_000_000;

/// The connections of users who begin by the clock, by default.
const USERS_CONNECTIONS: u64 = 100;

/// The most connections that users get without being asked.
const MOST_USERS_CONNECTIONS: u64 = 1000;

/// More requests in flight on a connection than this, no server takes.
const MOST_DEPTH: u64 = 1_000_000;

/// More threads than this are a mistake.
const MOST_THREADS: u64 = 1024;

/// HTTP/2's least and greatest SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
const FRAME_BYTES: std::ops::RangeInclusive<u32> = 16_384..=16_777_215;

/// HTTP/2's first window of a connection, which can't shrink (RFC 9113, section 6.9.2).
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

/// All that a command line asks for.
#[derive(Debug)]
pub struct Job {
    /// The first URL.
    pub url: String,
    /// Whom to ask, and what.
    pub plan: Plan,
    /// How hard and how long.
    pub schedule: Schedule,
    /// Outputs and their places.
    pub outputs: Outputs,
    /// Thresholds that break the run.
    pub thresholds: Vec<Threshold>,
    /// Note about what is not sent of what was asked for, in a sentence.
    pub note: Option<String>,
}

/// Outputs and their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Everything, as JSON; `-`: the standard output.
    pub json: Option<PathBuf>,
    /// Series and percentiles.
    pub csv: Option<PathBuf>,
    /// Histograms.
    pub hdr: Option<PathBuf>,
    /// The page.
    pub html: Option<PathBuf>,
    /// Address at which metrics are served.
    pub metrics: Option<String>,
    /// Collectors to which metrics are sent.
    pub collectors: Vec<Collector>,
    /// A record of each request.
    pub records: Option<PathBuf>,
    /// Test cases, as JUnit XML.
    pub junit: Option<PathBuf>,
    /// No live view and no summary.
    pub quiet: bool,
}

impl Arguments {
    /// Puts everything together: reads files and resolves names, and sends nothing but what --grpc asks a server's
    /// reflection service.
    ///
    /// # Errors
    ///
    /// The first mistake, in a sentence that says what would be right.
    pub fn job(&self) -> Result<Job, String> {
        let seed = self.load.seed;
        let mut requests = request::requests(&self.url, &self.request, &self.expect, seed)?;
        let kind = self.kind(&mut requests)?;
        let target = requests.target;
        let (connection, output) = (&self.connection, &self.output);
        let version = self.version(&target)?;
        let servers = || std::iter::once(&target).chain(&requests.others);
        servers().try_for_each(|target| check_http3(connection, target))?;
        let tls = tls(connection, servers().any(|target| target.scheme.is_tls()))?;
        let servers_count = servers().count() as u64;
        let recorded = requests.scenario.as_ref().and_then(|of| of.recorded.as_ref());
        let replay = recorded.map(|recorded| self.load.replay(&recorded.times));
        let users = match &requests.scenario {
            Some(_) if replay.is_some() => Some(None),
            Some(_) => Some(self.users(servers_count)?),
            None => None,
        };
        let connections = self.connections(users, servers_count)?;
        let expect = request::expectations(&self.expect, &requests.plans)?;
        let schedule = match replay {
            Some(phase) => Schedule::Fixed(vec![phase]),
            None => self.load.schedule(connections, self.depth, users)?,
        };
        let cores = self.cores.as_deref().map(cores).transpose()?.unwrap_or_default();
        check("-c", connections, MOST_CONNECTIONS)?;
        check("-m", self.depth, MOST_DEPTH)?;
        let threads = self.threads(connections, servers_count)?;
        let mut others = self.origins(&target, &requests.others)?;
        let mut origin = others.remove(0);
        if let Some(authority) = requests.authority {
            origin.authority = authority;
        }
        if let Some(method) = &self.request.messages.grpc {
            let server = grpc::Server { target: &target, origin: &origin, tls: &tls };
            grpc::prepare(method, &self.request, &server, &mut requests.plans)?;
        }
        let plan = Plan {
            origin,
            version,
            tls,
            http2: http2(connection)?,
            requests: requests.plans,
            connections: as_size(connections),
            depth: as_size(self.depth),
            threads,
            cores,
            expect,
            kind,
            scenario: requests.scenario.map(|scenario| {
                let users = as_size(users.flatten().unwrap_or(connections));
                Arc::new(Scenario { users, others, ..scenario })
            }),
            recorded_share: output.records.as_ref().map(|_| output.sample_records.unwrap_or(1.0)),
            seed,
            server: server(connection),
            timeouts: timeouts(connection),
        };
        let outputs = Outputs::of(output)?;
        let is_of_events = |threshold: &&Threshold| threshold.is_of_events();
        if !matches!(plan.kind, RequestKind::Events(_))
            && let Some(one) = self.expect.fail_if.iter().find(is_of_events)
        {
            return Err(format!("--fail-if '{}' needs --events, --openai or --grpc", one.text));
        }
        let url = target.to_string();
        let (note, thresholds) = (requests.note, self.expect.fail_if.clone());
        Ok(Job { url, plan, schedule, outputs, thresholds, note })
    }

    /// Returns what requests and responses are.
    fn kind(&self, requests: &mut request::Requests) -> Result<RequestKind, String> {
        match self.websocket(requests)? {
            Some(of) => Ok(RequestKind::WebSocket(of)),
            None => {
                Ok(request::events(&self.request)
                    .map_or(RequestKind::Requests, RequestKind::Events))
            }
        }
    }

    /// The servers with their addresses: of their names, or of --connect-to.
    fn origins(&self, target: &Url, others: &[Url]) -> Result<Vec<Origin>, String> {
        let servers: Vec<&Url> = std::iter::once(target).chain(others).collect();
        let mut places = vec![Vec::new(); servers.len()];
        for text in &self.connection.connect_to {
            let wrong = |why: String| format!("--connect-to: {why}");
            let (server, place) = target::server_and_place(text, &servers).map_err(wrong)?;
            places[server].push(target::connect_to(place, servers[server].port()).map_err(wrong)?);
        }
        let timeout = self.connection.connect_timeout;
        let resolved = servers.into_iter().zip(&places);
        resolved.map(|(server, places)| target::resolve(server, places, timeout)).collect()
    }

    /// The version of HTTP: the one that what is sent needs, unless an option names one.
    fn version(&self, target: &Url) -> Result<Version, String> {
        Ok(match version(&self.connection, &self.load, self.depth)? {
            Version::Negotiated if self.request.messages.grpc.is_some() => Version::Http2,
            // A server may agree to h2 and take no WebSocket connections over it.
            Version::Negotiated if target.scheme.is_websocket() => Version::Http1,
            version => version,
        })
    }

    /// `users`: of a scenario, and how many at a time, if the clock does not make them begin.
    fn connections(&self, users: Option<Option<u64>>, servers: u64) -> Result<u64, String> {
        let requests = self.load.requests.unwrap_or(u64::MAX);
        let default = match users {
            None => DEFAULT_CONNECTIONS,
            Some(None) => USERS_CONNECTIONS,
            Some(Some(users)) => users.saturating_mul(servers).min(MOST_USERS_CONNECTIONS),
        };
        match self.connections {
            Some(given) if servers > 1 && given < servers => Err(format!(
                "-c {given}: each of the {servers} servers of the scenario needs a connection"
            )),
            Some(given) => Ok(given),
            None => Ok(default.min(requests.max(1)).max(servers)),
        }
    }

    /// Users of a scenario at a time; none: the clock makes them begin.
    fn users(&self, servers: u64) -> Result<Option<u64>, String> {
        let (load, users) = (&self.load, self.request.sources.users);
        if let Some(option) = load.rates() {
            return match users {
                Some(_) => Err(format!(
                    "--users and {option} contradict each other: so many at a time, or so many who begin per second"
                )),
                None => Ok(None),
            };
        }
        let users = users.unwrap_or_else(|| DEFAULT_USERS.min(load.requests.unwrap_or(u64::MAX)));
        check("--users", users, MOST_USERS)?;
        let most = users.saturating_mul(servers);
        if let Some(connections) = self.connections.filter(|connections| *connections > most) {
            return Err(format!(
                "-c {connections} connections, but --users {users}: some would have no user"
            ));
        }
        Ok(Some(users))
    }

    /// Each thread has a connection to each server.
    fn threads(&self, connections: u64, servers: u64) -> Result<usize, String> {
        let Some(threads) = self.threads else {
            return Ok(available_cores().min(as_size(connections / servers)));
        };
        check("-t", threads, MOST_THREADS)?;
        if threads.saturating_mul(servers) > connections {
            let each = match servers {
                1 => String::new(),
                _ => format!(" to each of {servers} servers"),
            };
            return Err(format!(
                "-t {threads} threads need at least as many connections{each}, but -c is {connections}"
            ));
        }
        Ok(as_size(threads))
    }
}

impl Outputs {
    fn of(output: &OutputArguments) -> Result<Self, String> {
        Ok(Self {
            json: output.json.clone(),
            csv: output.csv.clone(),
            hdr: output.hdr.clone(),
            html: output.html.clone(),
            metrics: output.metrics.clone(),
            collectors: collectors(output)?,
            records: output.records.clone(),
            junit: output.junit.clone(),
            quiet: output.quiet,
        })
    }
}

/// Returns where metrics are sent.
fn collectors(output: &OutputArguments) -> Result<Vec<Collector>, String> {
    let (fields, authority) = request::fields(output.push_header.iter().map(String::as_str))
        .map_err(|why| format!("--push-header: {why}"))?;
    if authority.is_some() {
        return Err("--push-header: `host` is that of the collector's URL".to_owned());
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let fields: Vec<(String, String)> =
        fields.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let given = [
        (Protocol::RemoteWrite, "--remote-write", &output.remote_write),
        (Protocol::Otlp, "--otlp", &output.otlp),
    ];
    let mut collectors = Vec::new();
    for (protocol, option, url) in given {
        let Some(url) = url else { continue };
        let target = Url::parse(url, &Scheme::HTTP).map_err(|why| format!("{option}: {why}"))?;
        let (url, every) = (target.to_string(), output.push_every);
        collectors.push(Collector { protocol, url, fields: fields.clone(), every });
    }
    if collectors.is_empty() && !fields.is_empty() {
        return Err("--push-header needs --remote-write or --otlp".to_owned());
    }
    Ok(collectors)
}

/// Which processes are the server's.
fn server(connection: &ConnectionArguments) -> ServerProcesses {
    match (connection.server_pid, &connection.server_group) {
        (Some(pid), Some(group)) => ServerProcesses::Group(pid, group.clone()),
        (Some(pid), None) => ServerProcesses::Pid(pid),
        (None, _) if connection.no_server_watch => ServerProcesses::Unwatched,
        (None, _) => ServerProcesses::ByPort,
    }
}

/// How many cores this process may use.
pub(crate) fn available_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn as_size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn check(option: &str, count: u64, most: u64) -> Result<(), String> {
    if count > most {
        return Err(format!("{option} {count}: must be at most {most}"));
    }
    Ok(())
}

fn version(
    connection: &ConnectionArguments,
    load: &arguments::LoadArguments,
    depth: u64,
) -> Result<Version, String> {
    let http2_only = [
        ("--stream-window", connection.windows.stream_window.is_some()),
        ("--connection-window", connection.windows.connection_window.is_some()),
        ("--max-frame", connection.windows.max_frame.is_some()),
        ("--header-table", connection.windows.header_table.is_some()),
    ];
    let other = if connection.http1 { "--http1" } else { "--http3" };
    if (connection.http1 || connection.http3)
        && let Some((option, _)) = http2_only.iter().find(|(_, is_set)| *is_set)
    {
        return Err(format!("{option} needs HTTP/2, but {other} is set"));
    }
    if load.new_connections && depth > 1 {
        return Err("--new-connections sends one request per connection: -m must be 1".into());
    }
    Ok(match (connection.http1, connection.http2, connection.http3) {
        (true, ..) => Version::Http1,
        (_, true, _) => Version::Http2,
        (.., true) => Version::Http3,
        _ => Version::Negotiated,
    })
}

/// Checks for what HTTP/3 can't do without.
fn check_http3(connection: &ConnectionArguments, target: &Url) -> Result<(), String> {
    if !connection.http3 {
        let early = "--early-data needs --http3";
        return if connection.tls.early_data { Err(early.to_owned()) } else { Ok(()) };
    }
    if !target.scheme.is_tls() {
        let scheme = target.scheme.name();
        return Err(format!("--http3 needs TLS, but the URL begins with {scheme}://"));
    }
    match connection.connect_to.iter().find(|place| place.starts_with("unix:")) {
        Some(place) => Err(format!("--connect-to {place}: HTTP/3 needs UDP, not a Unix socket")),
        None => Ok(()),
    }
}

fn http2(connection: &ConnectionArguments) -> Result<Http2Plan, String> {
    if let Some(bytes) = connection.windows.max_frame
        && !FRAME_BYTES.contains(&bytes)
    {
        return Err(format!("--max-frame {bytes}: must be from 16384 to 16777215 bytes"));
    }
    if let Some(bytes) = connection.windows.connection_window
        && bytes < LEAST_CONNECTION_WINDOW
    {
        return Err(format!("--connection-window {bytes}: must be at least 65535 bytes"));
    }
    Ok(Http2Plan {
        stream_window_bytes: connection.windows.stream_window,
        connection_window_bytes: connection.windows.connection_window,
        max_frame_bytes: connection.windows.max_frame,
        header_table_bytes: connection.windows.header_table,
    })
}

fn tls(connection: &ConnectionArguments, is_https: bool) -> Result<TlsPlan, String> {
    let given = [
        ("--sni", connection.sni.is_some()),
        ("--ca", connection.tls.ca.is_some()),
        ("--cert", connection.tls.cert.is_some()),
        ("--insecure", connection.tls.insecure),
        ("--resume", connection.tls.resume),
        ("--early-data", connection.tls.early_data),
    ];
    if !is_https && let Some((option, _)) = given.iter().find(|(_, is_set)| *is_set) {
        return Err(format!("{option} needs TLS, but the URL begins with http://"));
    }
    let read = |option: &str, path: &Path| {
        fs::read(path)
            .map(Bytes::from)
            .map_err(|error| format!("{option} {}: {error}", path.display()))
    };
    let trust = match &connection.tls.ca {
        Some(path) => TlsTrust::Roots(read("--ca", path)?),
        None if connection.tls.insecure => TlsTrust::Any,
        None => TlsTrust::Platform,
    };
    let identity = match (&connection.tls.cert, &connection.tls.key) {
        (Some(chain), Some(key)) => Some((read("--cert", chain)?, read("--key", key)?)),
        _ => None,
    };
    let (early_data, server_name) = (connection.tls.early_data, connection.sni.clone());
    Ok(TlsPlan {
        server_name,
        trust,
        identity,
        resume: connection.tls.resume || early_data,
        early_data,
    })
}

/// Reads `0,2-3`.
fn cores(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("--cores: `{text}` is not a list of cores, such as 0,2-3");
    let mut cores = Vec::new();
    for item in text.split(',') {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|core| *core < 4096);
        let (first, last) = match item.split_once('-') {
            Some((first, last)) => (number(first), number(last)),
            None => (number(item), number(item)),
        };
        let (first, last) =
            first.zip(last).filter(|(first, last)| first <= last).ok_or_else(wrong)?;
        cores.extend(first..=last);
    }
    Ok(cores)
}
