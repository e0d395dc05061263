//! wrk: its command line and its output.
//!
//! Like wrk this verifies no certificate. Unlike wrk it loses no connection when threads don't divide
//! them, and its latencies are those that were measured: nothing is added to them afterwards.

mod script;
mod text;

use std::path::Path;
use std::time::Duration;

use bolide_probe::plan::{
    Expectations, Http2Plan, Load, Phase, Plan, RequestKind, RequestPlan, ServerProcesses,
    Timeouts, TlsPlan, TlsTrust, Until, Version,
};
use bolide_probe::target;
use bolide_semantics::{Scheme, Url};
use bytes::Bytes;
use http::Method;

pub use text::Text;

use super::getopt::{self, Known};
use super::{Foreign, Voice};
use crate::given;
use crate::options::request;
use script::Script;

/// Usage of wrk.
pub const USAGE: &str = "\
Usage: wrk <options> <url>                            
  Options:                                            
    -c, --connections <N>  Connections to keep open   
    -d, --duration    <T>  Duration of test           
    -t, --threads     <N>  Number of threads to use   
                                                      
    -s, --script      <S>  Load Lua script file       
    -H, --header      <H>  Add header to request      
        --latency          Print latency statistics   
        --timeout     <T>  Socket/request timeout     
    -v, --version          Print version details      
                                                      
  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (2s, 2m, 2h)";

const KNOWN: &[Known] = &[
    Known { short: Some('c'), long: "connections", takes_value: true },
    Known { short: Some('d'), long: "duration", takes_value: true },
    Known { short: Some('t'), long: "threads", takes_value: true },
    Known { short: Some('s'), long: "script", takes_value: true },
    Known { short: Some('H'), long: "header", takes_value: true },
    Known { short: Some('L'), long: "latency", takes_value: false },
    Known { short: Some('T'), long: "timeout", takes_value: true },
    Known { short: Some('R'), long: "rate", takes_value: true },
    Known { short: Some('v'), long: "version", takes_value: false },
    Known { short: Some('h'), long: "help", takes_value: false },
];

/// More of anything than this is a mistake.
const MOST: u64 = 250_000;

struct Settings {
    connections: u64,
    duration: Duration,
    threads: u64,
    timeout: Duration,
    shows_distribution: bool,
    headers: Vec<String>,
    script: Script,
}

/// Reads a command line of wrk.
///
/// # Errors
///
/// A sentence, and wrk's usage where wrk shows it. wrk exits with 1 then.
pub fn parse(words: &[String]) -> Result<Foreign, String> {
    let with_usage =
        |why: String| if why.is_empty() { USAGE.to_owned() } else { format!("{why}\n{USAGE}") };
    let read = getopt::read(KNOWN, words).map_err(with_usage)?;
    let settings = settings(&read).map_err(with_usage)?;
    let [url] = &read.rest[..] else {
        let why = match read.rest.get(1) {
            Some(_) => "arguments for a script are not supported: its functions are not run",
            None => "",
        };
        return Err(with_usage(why.to_owned()));
    };
    let target =
        Url::parse(url, &Scheme::HTTP).map_err(|_| with_usage(format!("invalid URL: {url}")))?;
    let script = settings.script;
    // A field of the command line comes after one of the script, and overrides it.
    let lines = script.headers.values().filter(|line| {
        let name = |line: &str| line.split(':').next().unwrap_or("").to_ascii_lowercase();
        !settings.headers.iter().any(|other| name(other) == name(line))
    });
    let (fields, authority) = request::fields(lines.chain(&settings.headers).map(String::as_str))?;
    let method = match &script.method {
        Some(name) => given::method(name)?,
        None => Method::GET,
    };
    let mut origin = target::resolve(&target, &[], settings.timeout)?;
    if let Some(authority) = authority {
        origin.authority = authority;
    }
    let plan = Plan {
        origin,
        version: Version::Http1,
        tls: TlsPlan { trust: TlsTrust::Any, ..TlsPlan::default() },
        http2: Http2Plan::default(),
        requests: vec![RequestPlan {
            fields,
            body: script.body.map(Bytes::from).unwrap_or_default(),
            ..RequestPlan::new(method, target.path.clone())
        }],
        connections: usize::try_from(settings.connections).unwrap_or(usize::MAX),
        depth: 1,
        threads: usize::try_from(settings.threads).unwrap_or(usize::MAX),
        cores: Vec::new(),
        expect: Expectations::default(),
        kind: RequestKind::default(),
        scenario: None,
        recorded_share: None,
        seed: 1,
        server: ServerProcesses::Unwatched,
        timeouts: Timeouts { connect_timeout: settings.timeout, request_timeout: settings.timeout },
    };
    let phase = Phase {
        name: "wrk".into(),
        load: Load::Closed,
        warm_up: Duration::ZERO,
        until: Until { requests: None, time: Some(settings.duration) },
    };
    let text = Text {
        url: url.clone(),
        duration: settings.duration,
        threads: settings.threads,
        connections: settings.connections,
        shows_distribution: settings.shows_distribution,
    };
    Ok(Foreign { url: url.clone(), plan, phase, voice: Voice::Wrk(text) })
}

fn settings(read: &getopt::Read) -> Result<Settings, String> {
    let mut settings = Settings {
        connections: 10,
        duration: Duration::from_secs(10),
        threads: 2,
        timeout: Duration::from_secs(2),
        shows_distribution: false,
        headers: Vec::new(),
        script: Script::default(),
    };
    for (name, value) in &read.options {
        let wrong = || format!("--{name}: `{value}` is not a number that wrk accepts");
        match *name {
            "connections" => settings.connections = metric(value).ok_or_else(wrong)?,
            "threads" => settings.threads = metric(value).ok_or_else(wrong)?,
            "duration" => settings.duration = time(value).ok_or_else(wrong)?,
            "timeout" => settings.timeout = time(value).ok_or_else(wrong)?,
            "latency" => settings.shows_distribution = true,
            "header" => settings.headers.push(value.clone()),
            "script" => settings.script = Script::read(Path::new(value))?,
            "rate" => return Err("-R is an option of wrk2: `bolide load --rate` does it".into()),
            "version" => {
                return Err(concat!("bolide load --wrk ", env!("CARGO_PKG_VERSION")).into());
            }
            _ => return Err(String::new()),
        }
    }
    if settings.threads == 0 || settings.threads > 1024 || settings.duration.is_zero() {
        return Err(String::new());
    }
    if settings.connections < settings.threads {
        return Err("number of connections must be >= threads".into());
    }
    if settings.connections > MOST || settings.timeout.is_zero() {
        return Err(String::new());
    }
    Ok(settings)
}

/// A number with k, M or G.
fn metric(text: &str) -> Option<u64> {
    scaled(text, &[("", 1), ("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])
}

/// A time with s, m or h; none: seconds.
fn time(text: &str) -> Option<Duration> {
    scaled(text, &[("", 1), ("s", 1), ("m", 60), ("h", 3600)])
        .filter(|seconds| *seconds <= 315_576_000)
        .map(Duration::from_secs)
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(line: &str) -> Result<Foreign, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn the_seeds_command_is_taken_as_it_is() {
        let run = foreign("-t4 -c100 -d10s http://127.0.0.1:8080/echo?size=64").unwrap();
        assert_eq!((run.plan.threads, run.plan.connections, run.plan.depth), (4, 100, 1));
        assert_eq!(run.phase.until.time, Some(Duration::from_secs(10)));
        assert_eq!(run.plan.requests[0].target, "/echo?size=64");
        assert_eq!(run.plan.timeouts.request_timeout, Duration::from_secs(2));
        assert!(matches!(run.plan.tls.trust, TlsTrust::Any));
    }

    #[test]
    fn fields_come_from_the_script_and_the_command_line() {
        let file = std::env::temp_dir().join(format!("bolide-wrk-{}.lua", std::process::id()));
        std::fs::write(
            &file,
            "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"a\"\nwrk.headers[\"X\"] = \
             \"b\"\nwrk.body = string.rep(\"x\", 4)",
        )
        .unwrap();
        let line = format!("-t1 -c1k -H x:c -s {} http://127.0.0.1/", file.display());
        let run = foreign(&line);
        std::fs::remove_file(&file).unwrap();
        let plan = run.unwrap().plan;
        let request = &plan.requests[0];
        assert_eq!((request.method.as_str(), &request.body[..]), ("POST", &b"xxxx"[..]));
        let fields: Vec<_> =
            request.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(fields, [("content-type", &b"a"[..]), ("x", b"c")]);
        assert_eq!(plan.connections, 1000);
    }

    #[test]
    fn mistakes_show_the_usage_as_wrk_does() {
        for (line, said) in [
            ("", "Usage: wrk"),
            ("-t4 -c2 http://127.0.0.1/", "number of connections must be >= threads\nUsage"),
            ("nonsense", "invalid URL: nonsense\nUsage"),
            ("-x http://a/", "no option -x\nUsage"),
            ("-c1x http://a/", "`1x`"),
            ("-d0 http://127.0.0.1/", "Usage"),
            ("-R 100 http://127.0.0.1/", "wrk2"),
            ("http://127.0.0.1/ -- a", "not supported"),
            ("-s absent.lua http://127.0.0.1/", "absent.lua: cannot open"),
        ] {
            let mistake = foreign(line).unwrap_err();
            assert!(mistake.contains(said), "{line}: {mistake}");
        }
    }
}
