//! `bolide serve`: from arguments to a server that runs.

mod live;
mod plan;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use bolide::{Running, Server};
use bolide_eventloop::{FileLimit, Signal, Signals};

use crate::configuration::{self, ClientCertificate, check_address};
use crate::observe::{self, Observation};
use crate::routes;
use live::{Live, Secured, Stamps};
use plan::Plan;

const EXAMPLES: &str = "Examples:
  bolide serve
      HTTP on 127.0.0.1:8080 and HTTPS on 127.0.0.1:8443, with a certificate made for this run
  bolide serve --http 0.0.0.0:80 --https 0.0.0.0:443 --cert chain.pem --key key.pem
  bolide serve --http 127.0.0.1:8080 --workers 1
      one thread: what to compare with single-threaded servers
  bolide serve --root site --cache-control '/assets/*=max-age=31536000'
      the files of a folder, with ranges, conditional requests and compressed siblings
  bolide serve --proxy http://127.0.0.1:9000 --proxy http://127.0.0.1:9001
      what these servers say, in turns
  bolide serve --root site --proxy http://127.0.0.1:9000
      files first, and what has none is asked upstream
  bolide serve --config bolide.toml --check
      whether a configuration is fine; --print-config shows all there is to configure
  bolide serve --admin 127.0.0.1:9090 --access-log access.log
      with metrics at http://127.0.0.1:9090/metrics, for `bolide top` too, and a line for each request

Routes:
  GET /             what this connection is, and what else there is
  GET /ping         pong
  GET /echo?size=N  N bytes (64 if not given, 1 GiB at most)
  POST /echo        the request's body, as it arrives, of any size
  /ws               WebSocket, over HTTP/1.1 and HTTP/2: messages come back
  /ndt/v7/download  and /ndt/v7/upload: speed tests by ndt7 (ndt7-client -scheme ws -server HOST:PORT)
  /.well-known/nq   responsiveness, with /small, /large and /slurp
With --root: the files and /ping, and the others but the first with --builtin. With --proxy: what the
upstreams say, and these with --builtin.

SIGTERM and SIGINT stop accepting, let open exchanges finish for up to 30 s, and exit with 0. SIGHUP reads
the configuration and the certificates again; no connection ends. Certificates that change are read again
within two seconds.";

/// The arguments of `bolide serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Read the configuration from this file (TOML). Flags win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Only say whether the configuration is fine: nothing is started.
    #[arg(long)]
    check: bool,

    /// Print all defaults as a configuration file, and what each limit is for.
    #[arg(long, exclusive = true)]
    print_config: bool,

    /// Listen here for HTTP/1.1 and HTTP/2 over cleartext: an IP address and a port (0: any that is
    /// free), or unix:/path. May be repeated. Naming --http or --https drops the listeners of the file and
    /// the defaults, which are 127.0.0.1:8080 and 127.0.0.1:8443.
    #[arg(long, value_name = "ADDR:PORT", value_parser = check_address)]
    http: Vec<String>,

    /// Listen here for HTTPS: HTTP/2 and HTTP/1.1 by ALPN. May be repeated.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "no_https", value_parser = check_address)]
    https: Vec<String>,

    /// No HTTPS.
    #[arg(long)]
    no_https: bool,

    /// The certificate chain for HTTPS, in PEM, the server's own certificate first. May be repeated with
    /// its key: each client gets the one for the name that it asks for, else the first. Without it, a
    /// self-signed certificate is made at each start.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Vec<PathBuf>,

    /// The private key that belongs to the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Vec<PathBuf>,

    /// Ask clients for a certificate that those in this file (PEM) vouch for.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Whether they have to show one. Default: required.
    #[arg(long, value_name = "WHETHER", value_enum, requires = "client_ca")]
    client_certificate: Option<ClientCertificate>,

    /// How long open exchanges may go on after SIGTERM or SIGINT, such as 30s or 5min. Default: 30s.
    #[arg(long, value_name = "TIME", value_parser = time)]
    drain: Option<Duration>,

    /// How many workers: threads, each with an event loop of its own. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    #[command(flatten)]
    routes: routes::Arguments,

    #[command(flatten)]
    observe: observe::Arguments,
}

fn time(text: &str) -> Result<Duration, String> {
    configuration::duration(text)
        .ok_or_else(|| "give a time with its unit (ms, s, min or h), such as 30s".to_owned())
}

/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until a signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    // A closed standard output is no reason to fail.
    let say = |text: &str| drop(io::stdout().lock().write_all(text.as_bytes()));
    if arguments.print_config {
        say(&configuration::print());
        return Ok(());
    }
    let plan = Plan::make(arguments)?;
    let materials = plan.materials()?;
    if arguments.check {
        plan.observe.check()?;
        let (routes, upstreams) = plan.routes.counts();
        let listeners = counted(plan.listen.len(), "listener");
        let (routes, upstreams) = (counted(routes, "route"), counted(upstreams, "upstream"));
        say(&format!("fine: {listeners}, {routes}, {upstreams}\n"));
        return Ok(());
    }
    let mut server = Server::new().limits(plan.limits.clone()).drain(plan.drain);
    if let Some(workers) = plan.workers {
        server = server.workers(usize::from(workers));
    }
    let (groups, of) = plan.groups();
    let mut secured = Vec::new();
    for (group, material) in groups.into_iter().zip(materials) {
        let tls = material.tls().map_err(|error| error.to_string())?;
        secured.push(Secured { group, material, tls });
    }
    for (listen, group) in plan.listen.iter().zip(&of) {
        server = match group {
            Some(group) => server.https(&listen.address, &secured[*group].tls),
            None => server.http(&listen.address),
        };
    }
    let observation = Observation::start(plan.observe.clone(), plan.routes.proxies().to_vec())?;
    server = observation.watch(server);
    // Whatever the limit is, the server can run within it.
    let files = bolide_eventloop::raise_file_limit().ok();
    let signals = listen_to_signals().map_err(|error| error.to_string())?;
    let workers = server.worker_count();
    let routes = plan.routes.clone();
    let running = server.start(move || routes.router()).map_err(|error| error.to_string())?;
    // Nobody may want to read it.
    let _ = announce(&running, &plan, &secured, workers, files, observation.announcement());
    let addresses = plan.listen.iter().map(|listen| listen.address.clone()).zip(of).collect();
    let stamps = Stamps::of(&secured);
    let live = Live {
        arguments,
        running,
        observation,
        fixed: plan.fixed(),
        addresses,
        groups: secured,
        https_addresses: plan.https_addresses(),
        stamps,
    };
    let (running, observation) = watch(live, &signals);
    eprintln!("bolide: shutting down: open exchanges may finish");
    running.shut_down();
    let joined = running.join().map(drop);
    observation.finish();
    joined.map_err(|error| format!("a worker failed: {error}"))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Signals from here on, one by one.
fn listen_to_signals() -> io::Result<Receiver<Signal>> {
    let mut signals = Signals::new(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup])?;
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while let Some(signal) = signals.wait() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// Does what signals and files ask for, until one asks for the end.
fn watch(mut live: Live<'_>, signals: &Receiver<Signal>) -> (Running, Observation) {
    loop {
        let heard = if live.stamps.is_empty() {
            signals.recv().map_err(RecvTimeoutError::from)
        } else {
            signals.recv_timeout(LOOK)
        };
        match heard {
            Ok(Signal::Hangup) => live.reload(),
            // The access log listens for it.
            Ok(Signal::User1) => {}
            Err(RecvTimeoutError::Timeout) => live.look_at_files(),
            Ok(Signal::Terminate | Signal::Interrupt) | Err(RecvTimeoutError::Disconnected) => {
                return (live.running, live.observation);
            }
        }
    }
}

/// Prints what listens where, and the command to try it.
fn announce(
    running: &Running,
    plan: &Plan,
    secured: &[Secured],
    workers: usize,
    files: Option<FileLimit>,
    admin: Option<String>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let insecure =
        if secured.iter().any(|one| one.material.self_signed) { " --insecure" } else { "" };
    for (address, listen) in running.addresses().into_iter().zip(&plan.listen) {
        match (address, &listen.tls) {
            (Some(address), None) => writeln!(
                out,
                "http://{address}   HTTP/1.1 and h2c        curl http://{address}/ping"
            )?,
            (Some(address), Some(_)) => {
                let command = format!("curl{insecure} https://{address}/ping");
                writeln!(out, "https://{address}  HTTP/2 and HTTP/1.1     {command}")?;
            }
            (None, tls) => {
                let path = listen.address.trim_start_matches("unix:");
                let scheme = if tls.is_some() { "https" } else { "http" };
                let command = format!("curl --unix-socket {path} {scheme}://localhost/ping");
                writeln!(out, "{}  {command}", listen.address)?;
            }
        }
    }
    for one in secured {
        let self_signed = one.material.self_signed;
        let kind = if self_signed { "self-signed for this run" } else { "from file" };
        for (fingerprint, names) in one.material.fingerprints() {
            let names =
                if self_signed { String::new() } else { format!(" ({})", names.join(", ")) };
            writeln!(out, "Certificate: {kind}, SHA-256 {fingerprint}{names}")?;
        }
    }
    if let Some(FileLimit { before, after }) = files {
        let raised = if before < after { format!(", raised from {before}") } else { String::new() };
        writeln!(out, "File descriptors: {after}{raised}")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "{admin}")?;
    }
    writeln!(out, "Ready: {}; stop with Ctrl-C", counted(workers, "worker"))?;
    out.flush()
}
