//! h2load: its command line and its output.
//!
//! Like h2load this verifies no certificate, speaks HTTP/2 by prior knowledge over http:// and exits
//! with 0 whatever the responses were. `--rps` is an open loop here: its latencies count from the
//! intended times.

mod text;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use bolide_probe::plan::{
    Arrivals, Expectations, Http2Plan, Load, Phase, Plan, RequestKind, RequestPlan,
    ServerProcesses, Timeouts, TlsPlan, TlsTrust, Until, Version,
};
use bolide_probe::target::{self, ConnectTo};
use bolide_semantics::{Scheme, Url, check_path};
use bytes::Bytes;
use http::Method;

pub use text::Text;

use super::getopt::{self, Known};
use super::{Foreign, Voice};
use crate::given;
use crate::options::request;

const fn value(short: char, long: &'static str) -> Known {
    Known { short: Some(short), long, takes_value: true }
}

const fn long_value(long: &'static str) -> Known {
    Known { short: None, long, takes_value: true }
}

const fn flag(short: Option<char>, long: &'static str) -> Known {
    Known { short, long, takes_value: false }
}

const KNOWN: &[Known] = &[
    value('n', "requests"),
    value('c', "clients"),
    value('t', "threads"),
    value('i', "input-file"),
    value('m', "max-concurrent-streams"),
    value('f', "max-frame-size"),
    value('w', "window-bits"),
    value('W', "connection-window-bits"),
    value('H', "header"),
    value('p', "no-tls-proto"),
    value('d', "data"),
    value('r', "rate"),
    value('D', "duration"),
    value('T', "connection-active-timeout"),
    value('N', "connection-inactivity-timeout"),
    value('B', "base-uri"),
    long_value("rate-period"),
    long_value("warm-up-time"),
    long_value("timing-script-file"),
    long_value("npn-list"),
    long_value("alpn-list"),
    long_value("header-table-size"),
    long_value("encoder-header-table-size"),
    long_value("log-file"),
    long_value("qlog-file-base"),
    long_value("connect-to"),
    long_value("rps"),
    long_value("sni"),
    long_value("ciphers"),
    long_value("tls13-ciphers"),
    long_value("groups"),
    long_value("max-udp-payload-size"),
    long_value("output-file"),
    long_value("tls-session-file"),
    flag(None, "h1"),
    flag(None, "h3"),
    flag(None, "no-udp-gso"),
    flag(None, "ktls"),
    flag(None, "histogram"),
    flag(Some('v'), "verbose"),
    flag(None, "version"),
    flag(Some('h'), "help"),
];

/// Options that are known and do something that this engine doesn't.
const UNSUPPORTED: &[&str] = &[
    "rate",
    "rate-period",
    "connection-active-timeout",
    "timing-script-file",
    "encoder-header-table-size",
    "log-file",
    "qlog-file-base",
    "ciphers",
    "tls13-ciphers",
    "groups",
    "max-udp-payload-size",
    "output-file",
    "tls-session-file",
    "no-udp-gso",
    "ktls",
    "histogram",
];

/// Without a limit h2load waits for a response for ever; a day is as good.
const FOREVER: Duration = Duration::from_secs(86_400);

/// How long connections may take; h2load leaves that to the system.
const CONNECT: Duration = Duration::from_secs(30);

/// More connections than this don't fit into the ports of one address, four times over.
const MOST_CLIENTS: u64 = 250_000;

/// More requests in flight on a connection than this, no server takes.
const MOST_STREAMS: u64 = 1_000_000;

/// More requests per second for each client than this, no clock can pace.
const MOST_PER_SECOND: u64 = 1_000_000;

struct Settings {
    requests: u64,
    clients: u64,
    threads: u64,
    streams: u64,
    /// Settings of HTTP/2.
    http2: Http2Settings,
    headers: Vec<String>,
    data: Option<Bytes>,
    cleartext_is_http1: bool,
    tls_version: Version,
    duration: Option<Duration>,
    warm_up: Duration,
    inactivity: Option<Duration>,
    rps: Option<u64>,
    /// Targets, and the servers that have them.
    targets: Targets,
}

/// Targets, and the servers that have them.
struct Targets {
    sni: Option<String>,
    base: Option<String>,
    connect_to: Option<String>,
    uris: Vec<String>,
}

/// Settings of HTTP/2.
struct Http2Settings {
    frame: Option<u32>,
    stream_bits: u32,
    connection_bits: u32,
    table: Option<u32>,
}

/// Reads a command line of h2load.
///
/// # Errors
///
/// A sentence. h2load exits with 1 then.
pub fn parse(words: &[String]) -> Result<Foreign, String> {
    let read = getopt::read(KNOWN, words)?;
    let settings = settings(read)?;
    check(&settings)?;
    let (target, elsewhere, requests, authority) = requests(&settings)?;
    let mut origin = target::resolve(&target, &elsewhere, CONNECT)?;
    if let Some(authority) = authority {
        origin.authority = authority;
    }
    let is_http1 = if target.scheme.is_tls() {
        settings.tls_version == Version::Http1
    } else {
        settings.cleartext_is_http1
    };
    if settings.tls_version == Version::Http3 && !target.scheme.is_tls() {
        return Err(format!("HTTP/3 needs an https URI, not {target}"));
    }
    let version = match (target.scheme.is_tls(), is_http1) {
        (true, _) => settings.tls_version,
        (false, true) => Version::Http1,
        (false, false) => Version::Http2,
    };
    // A body would have to be sent whole before the next request.
    let depth = if is_http1 && settings.data.is_some() { 1 } else { settings.streams };
    let url = target.to_string();
    let text = Text::new(&settings);
    let phase = phase(&settings);
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let plan = Plan {
        origin,
        version,
        tls: TlsPlan {
            server_name: settings.targets.sni,
            trust: TlsTrust::Any,
            ..TlsPlan::default()
        },
        http2: Http2Plan {
            stream_window_bytes: Some((1 << settings.http2.stream_bits) - 1),
            // A connection's window can't be made smaller than it begins.
            connection_window_bytes: Some(((1 << settings.http2.connection_bits) - 1).max(65_535)),
            max_frame_bytes: settings.http2.frame,
            header_table_bytes: settings.http2.table,
        },
        requests,
        connections: size(settings.clients),
        depth: size(depth),
        threads: size(settings.threads),
        cores: Vec::new(),
        expect: Expectations::default(),
        kind: RequestKind::default(),
        scenario: None,
        recorded_share: None,
        seed: 1,
        server: ServerProcesses::Unwatched,
        timeouts: Timeouts {
            connect_timeout: CONNECT,
            request_timeout: settings.inactivity.unwrap_or(FOREVER),
        },
    };
    Ok(Foreign { url, plan, phase, voice: Voice::H2load(text) })
}

fn phase(settings: &Settings) -> Phase {
    let load = match settings.rps {
        Some(rps) => {
            Load::Open { rate: rps as f64 * settings.clients as f64, arrivals: Arrivals::Constant }
        }
        None => Load::Closed,
    };
    let until = match settings.duration {
        Some(duration) => Until { requests: None, time: Some(duration) },
        None => Until { requests: Some(settings.requests), time: None },
    };
    Phase { name: "h2load".into(), load, warm_up: settings.warm_up, until }
}

fn settings(read: getopt::Read) -> Result<Settings, String> {
    let mut settings = Settings {
        requests: 1,
        clients: 1,
        threads: 1,
        streams: 1,
        headers: Vec::new(),
        data: None,
        cleartext_is_http1: false,
        tls_version: Version::Negotiated,
        duration: None,
        warm_up: Duration::ZERO,
        inactivity: None,
        rps: None,
        http2: Http2Settings { frame: None, stream_bits: 30, connection_bits: 30, table: None },
        targets: Targets { sni: None, base: None, connect_to: None, uris: read.rest },
    };
    for (name, value) in &read.options {
        set(&mut settings, name, value)?;
    }
    if settings.duration.is_none() {
        settings.warm_up = Duration::ZERO;
    }
    Ok(settings)
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
    let wrong = || format!("--{name}: value error {value}");
    match name {
        "requests" => settings.requests = number(value).ok_or_else(wrong)?,
        "clients" => settings.clients = number(value).ok_or_else(wrong)?,
        "threads" => settings.threads = number(value).ok_or_else(wrong)?,
        "max-concurrent-streams" => settings.streams = number(value).ok_or_else(wrong)?,
        "max-frame-size" => settings.http2.frame = Some(size(value).ok_or_else(wrong)?),
        "header-table-size" => settings.http2.table = Some(size(value).ok_or_else(wrong)?),
        "window-bits" => settings.http2.stream_bits = bits("-w", value)?,
        "connection-window-bits" => settings.http2.connection_bits = bits("-W", value)?,
        "header" => settings.headers.push(value.to_owned()),
        "data" => {
            let body = given::body_file("-d", Path::new(value));
            settings.data = Some(body.map_err(|_| format!("-d: Could not open file {value}"))?);
        }
        "no-tls-proto" => {
            settings.cleartext_is_http1 = match value {
                "http/1.1" => true,
                "h2c" => false,
                _ => return Err(format!("-p: unsupported protocol {value}")),
            }
        }
        "npn-list" | "alpn-list" => settings.tls_version = offered(value)?,
        "h1" => {
            settings.cleartext_is_http1 = true;
            settings.tls_version = Version::Http1;
        }
        "h3" => settings.tls_version = Version::Http3,
        "duration" => settings.duration = Some(time(value).ok_or_else(wrong)?),
        "warm-up-time" => settings.warm_up = time(value).ok_or_else(wrong)?,
        "connection-inactivity-timeout" => {
            settings.inactivity =
                Some(time(value).filter(|time| !time.is_zero()).ok_or_else(wrong)?);
        }
        "rps" => {
            let rps = number(value).filter(|rps| (1..=MOST_PER_SECOND).contains(rps));
            settings.rps = Some(rps.ok_or_else(wrong)?);
        }
        "sni" => settings.targets.sni = Some(value.to_owned()),
        "base-uri" => settings.targets.base = Some(value.to_owned()),
        "connect-to" => settings.targets.connect_to = Some(value.to_owned()),
        "input-file" => {
            let text = if value == "-" {
                io::read_to_string(io::stdin())
            } else {
                fs::read_to_string(value)
            };
            let text =
                text.map_err(|error| format!("-i: cannot read input file {value}: {error}"))?;
            settings.targets.uris = text.lines().map(str::trim).map(str::to_owned).collect();
            settings.targets.uris.retain(|line| !line.is_empty());
        }
        "verbose" => {}
        "version" => return Err(concat!("bolide load --h2load ", env!("CARGO_PKG_VERSION")).into()),
        "help" => {
            return Err("h2load --help describes the options; `bolide load --help` ours".into());
        }
        name if UNSUPPORTED.contains(&name) => {
            return Err(format!("--{name} of h2load is not supported by bolide load"));
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

fn check(settings: &Settings) -> Result<(), String> {
    for (option, what, count) in [
        ("-t", "threads", settings.threads),
        ("-m", "max concurrent streams", settings.streams),
        ("-c", "clients", settings.clients),
    ] {
        if count == 0 {
            return Err(format!("{option}: the number of {what} must be strictly greater than 0."));
        }
    }
    for (option, count, most) in [
        ("-c", settings.clients, MOST_CLIENTS),
        ("-t", settings.threads, 1024),
        ("-m", settings.streams, MOST_STREAMS),
    ] {
        if count > most {
            return Err(format!("{option}: must be at most {most}."));
        }
    }
    match settings.duration {
        Some(duration) if duration.is_zero() => {
            return Err("-D: the main duration must be greater than 0.".into());
        }
        None if settings.requests == 0 => {
            return Err("-n: the number of requests must be strictly greater than 0 if \
                        timing-based test is not being run."
                .into());
        }
        None if settings.requests < settings.clients => {
            return Err("-n, -c: the number of requests must be greater than or equal to the \
                        clients."
                .into());
        }
        _ => {}
    }
    if settings.clients < settings.threads {
        return Err(
            "-c, -t: the number of clients must be greater than or equal to the number of \
                    threads."
                .into(),
        );
    }
    Ok(())
}

type Asked = (Url, Vec<ConnectTo>, Vec<RequestPlan>, Option<String>);

/// The server, and what is asked of it.
fn requests(settings: &Settings) -> Result<Asked, String> {
    let first = settings.targets.uris.first().ok_or("no URI or input file given")?;
    let invalid = |uri: &str| format!("invalid URI: {uri}");
    let mut target = Url::parse(first, &Scheme::HTTP).map_err(|_| invalid(first))?;
    let mut elsewhere = Vec::new();
    match settings.targets.base.as_deref().map(|base| (base, base.strip_prefix("unix:"))) {
        Some((_, Some(path))) => elsewhere.push(ConnectTo::Unix(path.into())),
        Some((base, None)) => {
            let base = Url::parse(base, &Scheme::HTTP).map_err(|_| invalid(base))?;
            target = Url { path: target.path, ..base };
        }
        None => {}
    }
    if let Some(place) = &settings.targets.connect_to {
        elsewhere = vec![target::connect_to(place, target.port())?];
    }
    let (pseudo, lines): (Vec<&str>, Vec<&str>) =
        settings.headers.iter().map(String::as_str).partition(|line| line.starts_with(':'));
    let (fields, mut authority) =
        request::fields(lines).map_err(|why| format!("-H: invalid header: {why}"))?;
    let mut method = if settings.data.is_some() { Method::POST } else { Method::GET };
    for line in pseudo {
        let wrong = || format!("-H: invalid header: {line}");
        let (name, value) = line[1..].split_once(':').ok_or_else(wrong)?;
        match name {
            "method" => method = given::method(value.trim())?,
            "authority" => authority = Some(value.trim().to_owned()),
            _ => return Err(wrong()),
        }
    }
    let plans = settings
        .targets
        .uris
        .iter()
        .map(|uri| {
            // Of all but the first, only the path counts.
            let path = if uri.starts_with('/') {
                check_path(uri).map_err(|_| invalid(uri))?;
                uri.clone()
            } else {
                Url::parse(uri, &Scheme::HTTP).map_err(|_| invalid(uri))?.path
            };
            Ok(RequestPlan {
                fields: fields.clone(),
                body: settings.data.clone().unwrap_or_default(),
                ..RequestPlan::new(method.clone(), path)
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok((target, elsewhere, plans, authority))
}

/// Returns what a list of ALPN names leaves to choose from.
fn offered(list: &str) -> Result<Version, String> {
    let has = |name: &str| list.split(',').any(|offered| offered == name);
    // As there, what comes first decides between UDP and TCP.
    if list.split(',').next() == Some("h3") {
        return Ok(Version::Http3);
    }
    match (has("h2"), has("http/1.1")) {
        (true, true) => Ok(Version::Negotiated),
        (true, false) => Ok(Version::Http2),
        (false, true) => Ok(Version::Http1),
        (false, false) => Err(format!(
            "the ALPN list {list} has neither h2 nor http/1.1, and does not begin with h3"
        )),
    }
}

fn bits(option: &str, value: &str) -> Result<u32, String> {
    number(value)
        .filter(|bits| *bits <= 30)
        .and_then(|bits| u32::try_from(bits).ok())
        .ok_or_else(|| format!("{option}: specify the integer in the range [0, 30], inclusive"))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= 1_000_000_000_000_000)
}

/// A number and K, M or G, as powers of 1024.
fn size(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1024,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    u32::try_from(number(digits)?.checked_mul(factor)?).ok().filter(|size| *size < 1 << 31)
}

/// A number and h, m, s or ms; none: seconds.
fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor_ms = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let ms = number(digits)?.checked_mul(factor_ms)?;
    Some(Duration::from_millis(ms)).filter(|time| *time <= 3650 * FOREVER)
}

#[cfg(test)]
mod tests;
