//! The arguments of `bolide load`, as clap reads them.

use std::path::PathBuf;
use std::time::Duration;

use super::threshold::Threshold;
use super::units;

const EXAMPLES: &str = "\
Examples:
  bolide load http://127.0.0.1:8080/ping
      5 s as fast as possible for the capacity, then at 50 % and 80 % of it for the latency
  bolide load -c 100 -m 10 -D 10 --http2 http://127.0.0.1:8080/ping
      closed loop: 100 connections of HTTP/2 with 10 requests in flight on each, for 10 s
  bolide load --rate 50k --poisson -D 30 -c 200 --fail-if 'p99>5ms' --fail-if 'errors>0' URL
      open loop: 50,000 requests a second, latency counted from the intended time; exit code 3
      when one of the conditions holds
  bolide load --find-knee --slo 5ms -c 100 URL
      the highest rate whose p99 stays under 5 ms, to 5 %
  bolide load -D 10 --data-size 64K --expect-status 200 --html run.html URL
      uploads, and a page with the latency spectrum and the rate over time
  bolide load -c 50 -H 'Cookie: id={connection}' 'URL/items?id={connection}-{request}'
      each connection with a cookie of its own, each request with a query of its own
  bolide load --new-connections -c 20 -D 10 --insecure https://127.0.0.1:8443/ping
      a connection and a TLS handshake for each request
  bolide load --h2load -n 100000 -c 100 -m 10 http://127.0.0.1:8080/ping
  bolide load --wrk -t2 -c100 -d10s --latency http://127.0.0.1:8080/ping
      the command lines of h2load and wrk, with their output

Units: durations take ns, us, ms, s, m, h (none: seconds); sizes take K, M, G (powers of 1024) and
kB, MB, GB; counts and rates take k and M.

Exit codes: 0 fine; 1 answers were wrong or missing; 2 usage or configuration, nothing was sent; 3 a
condition of --fail-if held.";

/// The arguments of `bolide load`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "bolide load [OPTIONS] URL...\n       bolide load --h2load ARGS...\n       bolide load --wrk ARGS...")]
pub struct Arguments {
    /// `http://HOST[:PORT]/PATH` or `https://…`; several URLs of one server are requested in turn.
    /// `{connection}` and `{request}` in the path or query are replaced by the number of the connection
    /// and that of the request on its connection, both from 0: `'/items?id={connection}-{request}'`.
    #[arg(value_name = "URL", required_unless_present_any = ["urls", "h2load", "wrk"])]
    pub(super) url: Vec<String>,

    /// Connections in all.
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = units::count)]
    pub(super) connections: u64,

    /// Requests in flight on each connection: streams of HTTP/2, pipelining depth of HTTP/1.1.
    #[arg(short = 'm', long, value_name = "N", default_value = "1", value_parser = units::count)]
    pub(super) depth: u64,

    /// Threads. Default: one per core, at most one per connection.
    #[arg(short = 't', long, value_name = "N", value_parser = units::count)]
    pub(super) threads: Option<u64>,

    /// Pin the threads to these cores in turn, such as 0,2-3.
    #[arg(long, value_name = "LIST")]
    pub(super) cores: Option<String>,

    #[command(flatten)]
    pub(super) load: LoadArguments,

    #[command(flatten)]
    pub(super) request: RequestArguments,

    #[command(flatten)]
    pub(super) connection: ConnectionArguments,

    #[command(flatten)]
    pub(super) expect: ExpectArguments,

    #[command(flatten)]
    pub(super) output: OutputArguments,

    /// All that follows is a command line of h2load. Nothing of `bolide load` goes with it.
    #[arg(long, value_name = "ARGS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    pub(crate) h2load: Option<Vec<String>>,

    /// All that follows is a command line of wrk. Nothing of `bolide load` goes with it.
    #[arg(long, value_name = "ARGS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    pub(crate) wrk: Option<Vec<String>>,
}

/// How hard and how long.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadArguments {
    /// End after so many requests.
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count)]
    pub(super) requests: Option<u64>,

    /// End each phase after this time. Default: 10s; 30s for --ramp as a whole; 5s for --find-knee
    /// and when only a URL is given.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = units::positive_duration)]
    pub(super) duration: Option<Duration>,

    /// Open loop: so many requests per second over all connections, and latency counted from the
    /// intended time. With --find-knee, the rate that the search begins at.
    #[arg(long, value_name = "R", value_parser = units::rate)]
    pub(super) rate: Option<f64>,

    /// Intended times as of many independent users (exponentially distributed distances), not at
    /// equal distances.
    #[arg(long)]
    pub(super) poisson: bool,

    /// Not counted, before the first phase (of --find-knee: before each). Default: 1s, but 0 with -n
    /// or with -D below 5s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(super) warm_up: Option<Duration>,

    /// Open loop from one rate to another: FROM..TO requests per second in equal steps over -D.
    #[arg(long, value_name = "FROM..TO")]
    pub(super) ramp: Option<String>,

    /// Open loop at these rates one after the other, each for -D.
    #[arg(long, value_name = "R,R,…", value_delimiter = ',', value_parser = units::rate)]
    pub(super) steps: Vec<f64>,

    /// Search for the highest rate whose p99 stays under --slo, to 5 %.
    #[arg(long)]
    pub(super) find_knee: bool,

    /// What p99 must stay under with --find-knee.
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration)]
    pub(super) slo: Option<Duration>,

    /// A new connection for each request, and none that is kept: what a handshake costs.
    #[arg(long)]
    pub(super) new_connections: bool,

    /// The seed of everything that is drawn: Poisson arrivals, samples, weighted choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// What is asked.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(super) struct RequestArguments {
    /// The method. Default: GET, or POST with a body.
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(super) method: Option<String>,

    /// A field, as `Name: value`. May be repeated. `{connection}` and `{request}` in the value are
    /// replaced as in the URL; other braces are sent as they are.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(super) headers: Vec<String>,

    /// This text as the body.
    #[arg(short = 'd', long, value_name = "TEXT", group = "body")]
    pub(super) data: Option<String>,

    /// This file as the body.
    #[arg(long, value_name = "FILE", group = "body")]
    pub(super) data_file: Option<PathBuf>,

    /// A body of this size, made of --data-pattern.
    #[arg(long, value_name = "SIZE", value_parser = units::size, group = "body")]
    pub(super) data_size: Option<u64>,

    /// What a body of --data-size is made of: `random` (from --seed), `zero`, or a text that is
    /// repeated. Default: x.
    #[arg(long, value_name = "PATTERN", requires = "data_size")]
    pub(super) data_pattern: Option<String>,

    /// A file with one URL or path per line, optionally with a weight and a method before it: `3 GET
    /// /ping`. Empty lines and lines that begin with # don't count. Without weights they are asked
    /// for in turn. `-`: the standard input.
    #[arg(long, value_name = "FILE")]
    pub(super) urls: Option<PathBuf>,

    /// Requests from another program (JSON, `bolide_loadgen::exchanges`), each with its body and the
    /// response's.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["urls", "body", "method", "answer"])]
    pub(super) exchanges: Option<PathBuf>,
}

/// Over what.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(super) struct ConnectionArguments {
    /// HTTP/1.1 only. Default for http://; for https://, ALPN offers h2 and http/1.1.
    #[arg(long, conflicts_with = "http2")]
    pub(super) http1: bool,

    /// HTTP/2 only; over http:// by prior knowledge (h2c).
    #[arg(long)]
    pub(super) http2: bool,

    /// Connect there instead of where the URL says: `HOST[:PORT]` or `unix:PATH`. Several are taken in
    /// turn.
    #[arg(long, value_name = "WHERE")]
    pub(super) connect_to: Vec<String>,

    /// The name for SNI and for the certificate. Default: the URL's host.
    #[arg(long, value_name = "NAME")]
    pub(super) sni: Option<String>,

    /// Believe certificates that these have signed (PEM), and no others.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) ca: Option<PathBuf>,

    /// Our own certificate chain, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) cert: Option<PathBuf>,

    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,

    /// Believe any certificate, such as the self-signed one of `bolide serve`.
    #[arg(long)]
    pub(super) insecure: bool,

    /// Resume TLS sessions on new connections. Otherwise each handshake is a full one.
    #[arg(long)]
    pub(super) resume: bool,

    /// HTTP/2: the window of each stream that we announce. Default: grows with use.
    #[arg(long, value_name = "SIZE", value_parser = units::small_size)]
    pub(super) stream_window: Option<u32>,

    /// HTTP/2: the window of each connection, 65535 at least. Default: grows with use.
    #[arg(long, value_name = "SIZE", value_parser = units::small_size)]
    pub(super) connection_window: Option<u32>,

    /// HTTP/2: the largest frame that we accept, 16K to 16777215.
    #[arg(long, value_name = "SIZE", value_parser = units::small_size)]
    pub(super) max_frame: Option<u32>,

    /// HTTP/2: the size of the table that heads are decompressed with.
    #[arg(long, value_name = "SIZE", value_parser = units::small_size)]
    pub(super) header_table: Option<u32>,

    /// An answer that takes longer counts as failed.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::positive_duration)]
    pub(super) timeout: Duration,

    /// A connection, TLS included, that takes longer counts as failed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::positive_duration)]
    pub(super) connect_timeout: Duration,

    /// The server's process on this machine, for its CPU time and memory, children included.
    /// Default: who listens on the port.
    #[arg(long, value_name = "PID", conflicts_with = "no_server_watch")]
    pub(super) server_pid: Option<u32>,

    /// The directory of the control group (cgroup v2) that the server's processes have for themselves: its CPU time is
    /// the server's.
    #[arg(long, value_name = "DIR", hide = true, requires = "server_pid")]
    pub(super) server_group: Option<PathBuf>,

    /// Don't look for the server's process.
    #[arg(long)]
    pub(super) no_server_watch: bool,
}

/// What answers must be.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Answers")]
pub(super) struct ExpectArguments {
    /// Statuses that are right, such as 200,404 or 2xx. Default: 2xx and 3xx.
    #[arg(long, value_name = "LIST")]
    pub(super) expect_status: Option<String>,

    /// A field that the trailers of each response must have, such as 'grpc-status: 0'. May be repeated.
    #[arg(long, value_name = "NAME: VALUE")]
    pub(super) expect_trailer: Vec<String>,

    /// The length of each body.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(super) expect_length: Option<u64>,

    /// The body, as a text.
    #[arg(long, value_name = "TEXT", group = "answer")]
    pub(super) expect_body: Option<String>,

    /// The body, as a file.
    #[arg(long, value_name = "FILE", group = "answer")]
    pub(super) expect_body_file: Option<PathBuf>,

    /// The body's SHA-256, in hexadecimal.
    #[arg(long, value_name = "HEX", group = "answer")]
    pub(super) expect_sha256: Option<String>,

    /// Each URL's bodies are all the same as its first one.
    #[arg(long, group = "answer")]
    pub(super) expect_same: bool,

    /// The share of the bodies that is compared, where one of the options above says what is right.
    /// Without them no answer is known, and none is guessed. Lengths and statuses are always checked.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = units::share)]
    pub(super) sample: f64,

    /// Exit with 3 when this holds, such as 'p99>5ms', 'errors>0', 'failed_share>0.1%', 'rate<10k'.
    /// May be repeated. Metrics: p50 … p99.999, mean, max, the same with ttfb_ before them, errors,
    /// failed_share, rate. Latencies are those of the open-loop phases, where there are any; the rate
    /// is the knee or the highest of any phase.
    #[arg(long, value_name = "CONDITION", value_parser = Threshold::parse)]
    pub(super) fail_if: Vec<Threshold>,
}

/// What is shown and written.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArguments {
    /// Write everything that was found as JSON. `-`: the standard output; the summary then goes to the
    /// standard error.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Write the series and the percentiles as CSV.
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,

    /// Write the latency histograms as an HdrHistogram V2 log.
    #[arg(long, value_name = "FILE")]
    pub(super) hdr: Option<PathBuf>,

    /// Write a page with the latency spectrum and the rate over time: one file, nothing is loaded.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// No live view and no summary.
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
}
