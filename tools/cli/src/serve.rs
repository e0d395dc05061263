//! `bolide serve`: from arguments to a server that runs.

mod announce;
mod inherit;
mod issuance;
mod live;
mod names;
mod notify;
mod pid_file;
mod plan;
mod privileges;
mod upgrade;
mod warnings;
mod watch;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use bolide::Server;
use bolide::server::{Listener, ListenerSockets, Running};

use crate::certificate::Material;
use crate::configuration::{self, ClientCertificate, check_address};
use crate::observe::{self, Observation};
use crate::routes;
use announce::{Announced, announce};
use bolide_acme::Results;
use inherit::{Dealt, Inheritance, Ready};
use issuance::Issuance;
use live::{Live, Opened, Secured, Stamps};
use notify::Notifier;
use pid_file::PidFile;
use plan::Plan;
use privileges::Identity;
use upgrade::{Sockets, Upgrade};
use watch::{End, Watch};

/// How long the archive files of speed tests may take to be written at the end.
const ARCHIVES_PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "Examples:
  bolide serve
      HTTP on 127.0.0.1:8080 and HTTPS on 127.0.0.1:8443, with a certificate of a development CA
  bolide serve --http 0.0.0.0:80 --https 0.0.0.0:443 --cert chain.pem --key key.pem
  bolide serve --http 127.0.0.1:8080 --workers 1
      one thread, for a comparison with single-threaded servers
  bolide serve --root site --cache-control '/assets/*=max-age=31536000'
      the files of a directory, with ranges, conditional requests and precompressed files
  bolide serve --proxy http://127.0.0.1:9000 --proxy http://127.0.0.1:9001
      forwards to these servers, round-robin
  bolide serve --root site --proxy http://127.0.0.1:9000
      files first; other requests go to the upstream
  bolide serve --config bolide.toml --check
      validates a configuration; --print-config shows all settings
  bolide serve --admin 127.0.0.1:9090 --access-log access.log
      with metrics at http://127.0.0.1:9090/metrics, also for `bolide top`, and a log line per request

Routes:
  GET /             information about the connection, and the list of routes
  GET /ping         pong
  GET /echo?size=N  N bytes (64 if not given, 1 GiB at most)
  POST /echo        sends back the request's body as it arrives, of any size
  /ws               WebSocket, over HTTP/1.1 and HTTP/2: sends each message back
  /ndt/v7/download  and /ndt/v7/upload: speed tests by ndt7 (ndt7-client -scheme ws -server HOST:PORT)
  /.well-known/nq   responsiveness, with /small, /large and /slurp
--root serves the files and /ping; --proxy forwards all requests; --builtin adds the built-in routes
(with --root, all except /).

SIGTERM and SIGINT stop accepting, let open exchanges finish for up to 30 s, and exit with 0. SIGHUP reloads
the configuration and the certificates; no connection ends. Changed certificates are reloaded within two
seconds. SIGUSR1 reopens the access log. SIGUSR2 starts the program that is now on the disk, with the same
sockets; once it serves, this process drains and exits with 0.
Sockets of a service manager (LISTEN_FDS) replace the addresses; NOTIFY_SOCKET receives notifications.";

/// The arguments of `bolide serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Read the configuration from this file (TOML). Flags take precedence.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Validate the configuration without starting anything.
    #[arg(long)]
    check: bool,

    /// Print all defaults as a configuration file, with the purpose of each limit; with --config, what is in
    /// force with that file.
    #[arg(long, conflicts_with_all = ["check", "http", "https", "workers", "user", "drain"])]
    print_config: bool,
    /// Listeners and their certificates.
    #[command(flatten)]
    listen: ListenArguments,

    /// Time that open exchanges have to finish after SIGTERM or SIGINT, such as 5min. Default: 30s.
    #[arg(long, value_name = "TIME", value_parser = bolide_units::duration)]
    drain: Option<Duration>,

    /// Worker threads, each with its own event loop. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Switch to this user (and group) once all listeners are open; drops root permanently. Files that a
    /// reload reads must be readable for this user.
    #[arg(long, value_name = "NAME[:GROUP]")]
    user: Option<String>,

    /// Write the process id to this file once all listeners are open; an upgrade writes the new process's.
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,

    /// Time that the new process has to start serving after SIGUSR2.
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "60s")]
    upgrade_timeout: Duration,

    #[command(flatten)]
    routes: routes::Arguments,

    #[command(flatten)]
    observe: observe::Arguments,
}

/// Listeners and their certificates.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenArguments {
    /// Listen here for HTTP/1.1 and HTTP/2 over cleartext: an IP address and a port (0: any free
    /// port), a port of the loopback address (8080), one of all addresses (:8080), or unix:/path. May be repeated. --http and --https replace the listeners of the file and the
    /// defaults, which are 127.0.0.1:8080 and 127.0.0.1:8443.
    #[arg(long, value_name = "ADDR:PORT", value_parser = check_address)]
    http: Vec<String>,
    /// Listen here for HTTPS: HTTP/2 and HTTP/1.1 by ALPN, and HTTP/3 at the same UDP port. May be repeated.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "no_https", value_parser = check_address)]
    https: Vec<String>,
    /// Don't serve HTTP/3 at the UDP ports of the HTTPS listeners.
    #[arg(long)]
    no_http3: bool,
    /// Disable HTTPS.
    #[arg(long)]
    no_https: bool,
    /// Certificate chain for HTTPS (PEM), the server's own certificate first. May be repeated with its
    /// key: each client gets the one for the name it requests, else the first. Default: a certificate
    /// for development, issued by a CA of this user.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Vec<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Vec<PathBuf>,
    /// Require client certificates issued by these CAs (PEM).
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// required: reject clients without a certificate; optional: accept them. Default: required.
    #[arg(long, value_name = "RULE", value_enum, requires = "client_ca")]
    client_certificate: Option<ClientCertificate>,
}

fn some_time(text: &str) -> Result<Duration, String> {
    let time = bolide_units::duration(text)?;
    if time.is_zero() {
        return Err("must be at least 1ms".to_owned());
    }
    Ok(time)
}

/// Why `bolide serve` ends, and with which exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) exit: u8,
}

/// Makes a failure of what is found before anything is served: it is the arguments' or the configuration's fault.
impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self { what, exit: 2 }
    }
}

impl Failure {
    /// It has served, and something of it went wrong.
    fn of_run(what: String) -> Self {
        Self { what, exit: 1 }
    }
}

/// Runs until a signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // A closed standard output is no reason to fail.
    let say = |text: &str| drop(io::stdout().lock().write_all(text.as_bytes()));
    if arguments.print_config {
        let file = arguments.config.as_deref();
        say(&file.map_or_else(|| Ok(configuration::print()), configuration::effective)?);
        return Ok(());
    }
    let plan = Plan::make(arguments)?;
    let materials = plan.materials(arguments.check)?;
    let identity = plan.user.as_deref().map(Identity::find).transpose()?;
    if arguments.check {
        check(arguments, &plan, identity.as_ref())?;
        for warning in warnings::find(&plan, &materials) {
            eprintln!("bolide: warning: {warning}");
        }
        let (routes, upstreams) = plan.routes.counts();
        let listeners = counted(plan.listen.len(), "listener");
        let (routes, upstreams) = (counted(routes, "route"), counted(upstreams, "upstream"));
        say(&format!("valid: {listeners}, {routes}, {upstreams}\n"));
        return Ok(());
    }
    serve(arguments, &plan, materials, identity.as_ref())
}

/// Finds what a start would find, but for ports that are taken. Nothing is left behind: this process may become
/// another user, for it ends here.
fn check(arguments: &Arguments, plan: &Plan, identity: Option<&Identity>) -> Result<(), String> {
    if let Some(path) = &arguments.pid_file {
        PidFile::check(path, identity.map(Identity::user))?;
    }
    if let Some(identity) = identity {
        identity.check()?;
        identity.assume(&[])?;
        check_reading(arguments, identity)?;
    }
    issuance::check(plan.acme.as_ref())?;
    plan.observe.check()?;
    arguments.observe.check()
}

/// A server whose listeners are open, and who is who it is to be.
#[derive(Debug)]
struct Bound {
    server: Server,
    listeners: Vec<Opened>,
    /// For a successor, in the same order.
    sockets: Vec<ListenerSockets>,
    /// In the place of the address of the operator's listener.
    admin: Option<Listener>,
    predecessor: Option<Ready>,
    /// A service manager holds the sockets.
    is_managed: bool,
    pid_file: Option<PidFile>,
}

/// Opens the listeners, and becomes who the process is to be.
fn open(
    arguments: &Arguments,
    plan: &Plan,
    materials: Vec<Material>,
    identity: Option<&Identity>,
    results: &Results,
) -> Result<Bound, String> {
    identity.map_or(Ok(()), Identity::check)?;
    let inheritance = Inheritance::from_environment()?;
    let dealt = inheritance.deal(&plan.listen, plan.observe.admin.is_some())?;
    let Dealt { listen, admin, earlier, ready: predecessor, is_managed } = dealt;
    let (server, listeners) = assemble(plan, &materials, listen, results)?;
    let server = server.after(earlier).and_then(Server::bind).map_err(|error| error.to_string())?;
    let sockets = server.sockets().map_err(|error| error.to_string())?;
    let user = identity.map(Identity::user);
    let pid_file = arguments.pid_file.as_deref().map(|path| PidFile::open(path, user));
    let pid_file = pid_file.transpose()?;
    if let Some(identity) = identity {
        identity.assume(&pid_file.iter().map(PidFile::file).collect::<Vec<_>>())?;
        check_reading(arguments, identity)?;
    }
    Ok(Bound { server, listeners, sockets, admin, predecessor, is_managed, pid_file })
}

/// Opens the listeners, becomes who it is to be, and serves.
fn serve(
    arguments: &Arguments,
    plan: &Plan,
    materials: Vec<Material>,
    identity: Option<&Identity>,
) -> Result<(), Failure> {
    let notifier = Notifier::from_environment()?;
    let results = Results::default();
    let opened = open(arguments, plan, materials, identity, &results)?;
    let Bound { server, listeners, sockets, admin, predecessor, is_managed, pid_file } = opened;
    // Whatever the limit is, the server can run within it.
    let files = bolide_eventloop::raise_file_limit().ok();
    arguments.observe.check()?;
    let issuance = Issuance::open(&results, plan.acme.as_ref())?;
    let settings = plan.observe.clone();
    let (proxies, shown) = (plan.routes.proxies(), issuance::source(&results));
    let mut observation = Observation::start(settings, &arguments.observe, proxies, shown, admin)?;
    let server = observation.watch(server);
    let (heard, tell) = watch::listen_to_signals().map_err(|error| error.to_string())?;
    let workers = server.worker_count();
    let responses = issuance.responses(plan.acme.as_ref());
    let routes = plan.routes.clone().with_responses(responses);
    let running = server.start(move || routes.router()).map_err(|error| error.to_string())?;
    let life_signs = notifier.watch(running.pulse()).map_err(|error| error.to_string())?;
    pid_file.as_ref().map_or(Ok(()), PidFile::write)?;
    // The standard output may be closed.
    let _ = announce(&Announced {
        running: &running,
        plan,
        listeners: &listeners,
        issued: &results.states(),
        workers,
        files,
        admin: observation.announcement(),
        user: identity,
    });
    let sockets = named(&listeners, sockets, observation.take_sockets());
    let stamps = Stamps::of(&listeners);
    let (fixed, https) = (plan.fixed(), plan.https_addresses());
    let mut live =
        Live { arguments, running, observation, issuance, fixed, listeners, https, stamps };
    let listeners = counted(plan.listen.len(), "listener");
    let status = format!("serving: {listeners}, {}", counted(workers, "worker"));
    let mut upgrade = Upgrade::new(arguments.upgrade_timeout, sockets, is_managed);
    match predecessor {
        // The manager listens to it, until it has named this process.
        Some(predecessor) => predecessor.say(),
        None => notifier.ready(&status),
    }
    live.issuance.begin().map_err(Failure::of_run)?;
    let mut watch =
        Watch { heard, tell, notifier: &notifier, status: &status, upgrade: &mut upgrade };
    let end = watch.until_the_end(&mut live);
    leave(&end, &mut live, &mut upgrade, &notifier, &status, is_managed);
    let Live { running, observation, .. } = live;
    let joined = running.join().map(drop);
    drop(life_signs);
    let finished = observation.finish();
    finish_archives();
    if let Some(pid_file) = pid_file {
        pid_file.remove();
    }
    joined.map_err(|error| Failure::of_run(format!("a worker failed: {error}")))?;
    finished.map_err(Failure::of_run)
}

/// Speed tests that ended with the server have left files, too.
fn finish_archives() {
    let unwritten = bolide_measurement::finish_archives(ARCHIVES_PATIENCE);
    if unwritten > 0 {
        let files = counted(unwritten, "file");
        eprintln!("bolide: {files} of the ndt7 archive could not be written in time");
    }
}

/// Ends what listens. Sockets that a service manager holds stay open, and the next process takes what comes: then a
/// restart loses no request either.
fn shut_down(running: &mut Running, is_managed: bool) {
    if is_managed {
        running.hand_over();
    } else {
        running.shut_down();
    }
}

/// Takes no more, and lets what is open finish.
fn leave(
    end: &End,
    live: &mut Live<'_>,
    upgrade: &mut Upgrade,
    notifier: &Notifier,
    status: &str,
    is_managed: bool,
) {
    match end {
        End::Asked => {
            eprintln!("bolide: shutting down, waiting for open exchanges");
            notifier.stopping();
            upgrade.call_off();
            shut_down(&mut live.running, is_managed);
        }
        End::TakenOver(successor) => {
            eprintln!(
                "bolide: process {successor} has taken over, waiting for open exchanges here"
            );
            notifier.handed_over(*successor, status);
            upgrade.close();
            // First, so that no client of the new process hears that the old one drains.
            live.observation.hand_over();
            live.issuance.hand_over();
            live.running.hand_over();
        }
    }
}

/// The server with its listeners. `inherited`: for each, sockets in the place of its address.
fn assemble(
    plan: &Plan,
    materials: &[Material],
    inherited: Vec<Option<Listener>>,
    results: &Results,
) -> Result<(Server, Vec<Opened>), String> {
    let mut server = Server::new().limits(plan.limits.clone()).drain(plan.drain);
    server = server.ingress(plan.ingress.clone()).http3(plan.http3).congestion(plan.congestion);
    if let Some(workers) = plan.workers {
        server = server.workers(usize::from(workers));
    }
    let (groups, of) = plan.groups();
    let mut opened = Vec::new();
    for ((listen, number), inherited) in plan.listen.iter().zip(of).zip(inherited) {
        let secured = match number {
            None => None,
            Some(number) => {
                let (group, material) = (groups[number].clone(), materials[number].clone());
                let tls = material.tls(&results.issued).map_err(|error| error.to_string())?;
                Some(Secured { group, material, tls })
            }
        };
        let tls = secured.as_ref().map(|secured| &secured.tls);
        server = match (inherited, tls) {
            (Some(listener), tls) => server.listener(listener, tls),
            (None, Some(tls)) => server.https(&listen.address, tls),
            (None, None) => server.http(&listen.address),
        };
        server = server.proxy_protocol(listen.proxy_protocol);
        opened.push(Opened { address: listen.address.clone(), secured });
    }
    Ok((server, opened))
}

/// Reads all that a reload and a successor read, as the user that this process is by now.
fn check_reading(arguments: &Arguments, identity: &Identity) -> Result<(), String> {
    let read = Plan::make(arguments).and_then(|plan| plan.materials(true).map(drop));
    read.map_err(|what| {
        format!("--user {identity}: a reload could not read all files that it needs: {what}")
    })
}

/// The sockets that a successor gets, by the addresses that they were asked for by.
fn named(
    listeners: &[Opened],
    sockets: Vec<ListenerSockets>,
    admin: Option<(std::net::SocketAddr, Vec<OwnedFd>)>,
) -> Vec<Sockets> {
    let listeners = listeners.iter().zip(sockets).map(|(listener, sockets)| {
        let ListenerSockets { listening: descriptors, datagrams } = sockets;
        Sockets { address: listener.address.clone(), is_admin: false, descriptors, datagrams }
    });
    let admin = admin.map(|(address, descriptors)| Sockets {
        address: address.to_string(),
        is_admin: true,
        descriptors,
        datagrams: Vec::new(),
    });
    listeners.chain(admin).collect()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
