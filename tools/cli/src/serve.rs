//! `bolide serve`: from arguments to a server that runs.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use bolide::{Running, Server, Tls};
use bolide_eventloop::{FileLimit, Signal, Signals};

use crate::certificate::{self, Certificate};
use crate::routes;

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

SIGTERM and SIGINT stop accepting, let open exchanges finish for up to 30 s, and exit with 0.";

/// The arguments of `bolide serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Listen here for HTTP/1.1 and HTTP/2 over cleartext: an IP address and a port (0: any that is
    /// free). May be repeated. Naming --http or --https drops the defaults of both, which are
    /// 127.0.0.1:8080 and 127.0.0.1:8443.
    #[arg(long, value_name = "ADDR:PORT")]
    http: Vec<SocketAddr>,

    /// Listen here for HTTPS: HTTP/2 and HTTP/1.1 by ALPN. May be repeated.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "no_https")]
    https: Vec<SocketAddr>,

    /// No HTTPS.
    #[arg(long)]
    no_https: bool,

    /// The certificate chain for HTTPS, in PEM, the server's own certificate first. Without it, a
    /// self-signed certificate is made at each start.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// The private key that belongs to the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// How many workers: threads, each with an event loop of its own. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    #[command(flatten)]
    routes: routes::Arguments,
}

impl Arguments {
    /// The addresses to listen on: cleartext and TLS.
    fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        if !self.http.is_empty() || !self.https.is_empty() {
            return (self.http.clone(), self.https.clone());
        }
        let https = (!self.no_https).then(|| SocketAddr::from(([127, 0, 0, 1], 8443)));
        (vec![SocketAddr::from(([127, 0, 0, 1], 8080))], https.into_iter().collect())
    }
}

/// Runs until a signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let (http, https) = arguments.addresses();
    let routes = arguments.routes.routes()?;
    let certificate = match (&arguments.cert, &arguments.key) {
        _ if https.is_empty() => None,
        (Some(chain), Some(key)) => Some(certificate::from_files(chain, key)?),
        _ => Some(certificate::self_signed(&https)?),
    };
    let mut server = Server::new();
    if let Some(workers) = arguments.workers {
        server = server.workers(usize::from(workers));
    }
    for address in &http {
        server = server.http(&address.to_string());
    }
    if let Some(certificate) = &certificate {
        let tls = Tls::new(&certificate.identity).map_err(|error| error.to_string())?;
        for address in &https {
            server = server.https(&address.to_string(), &tls);
        }
    }
    // Whatever the limit is, the server can run within it.
    let files = bolide_eventloop::raise_file_limit().ok();
    let mut signals =
        Signals::new(&[Signal::Terminate, Signal::Interrupt]).map_err(|error| error.to_string())?;
    let workers = server.worker_count();
    let running = server.start(move || routes.router()).map_err(|error| error.to_string())?;
    // A closed standard output is no reason not to serve.
    let _ = announce(&running, http.len(), certificate.as_ref(), workers, files);
    signals.wait();
    eprintln!("bolide: shutting down: open exchanges may finish");
    running.shut_down();
    running.join().map(drop).map_err(|error| format!("a worker failed: {error}"))
}

/// Prints what listens where, and the command to try it.
fn announce(
    running: &Running,
    cleartext: usize,
    certificate: Option<&Certificate>,
    workers: usize,
    files: Option<FileLimit>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let insecure = if certificate.is_some_and(|certificate| certificate.self_signed) {
        " --insecure"
    } else {
        ""
    };
    for (index, address) in running.addresses().into_iter().flatten().enumerate() {
        if index < cleartext {
            writeln!(out, "http://{address}   HTTP/1.1 and h2c        curl http://{address}/ping")?;
        } else {
            let command = format!("curl{insecure} https://{address}/ping");
            writeln!(out, "https://{address}  HTTP/2 and HTTP/1.1     {command}")?;
        }
    }
    if let Some(certificate) = certificate {
        let kind = if certificate.self_signed { "self-signed for this run" } else { "from file" };
        writeln!(out, "Certificate: {kind}, SHA-256 {}", certificate.fingerprint)?;
    }
    if let Some(FileLimit { before, after }) = files {
        let raised = if before < after { format!(", raised from {before}") } else { String::new() };
        writeln!(out, "File descriptors: {after}{raised}")?;
    }
    let plural = if workers == 1 { "" } else { "s" };
    writeln!(out, "Ready: {workers} worker{plural}; stop with Ctrl-C")?;
    out.flush()
}
