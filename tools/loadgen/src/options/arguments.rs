//! The arguments of `bolide load`, as clap reads them.

use std::path::PathBuf;
use std::time::Duration;

use super::parts::PartsArguments;
use super::threshold::Threshold;

const EXAMPLES: &str = "\
Examples:
  bolide load http://127.0.0.1:8080/ping
      5 s as fast as possible for the capacity, then at 50 % and 80 % of it for the latency
  bolide load -c 100 -m 10 -D 10 --http2 http://127.0.0.1:8080/ping
      closed loop: 100 connections of HTTP/2 with 10 requests in flight on each, for 10 s
  bolide load --rate 50k --poisson -D 30 -c 200 --fail-if 'p99>5ms' --fail-if 'errors>0' URL
      open loop: 50,000 requests per second, latency counted from the intended time; exit code 3
      if one of the conditions is met
  bolide load --find-knee --slo 5ms -c 100 URL
      the highest rate with a p99 below 5 ms, within 5 %
  bolide load -D 10 --data-size 64K --expect-status 200 --html run.html URL
      uploads, and a page with the latency spectrum and the rate over time
  bolide load -c 50 -H 'Cookie: id={connection}' 'URL/items?id={connection}-{request}'
      a different cookie for each connection, a different query for each request
  bolide load --new-connections -c 20 -D 10 --insecure https://127.0.0.1:8443/ping
      a connection and a TLS handshake for each request
  bolide load --http3 -c 50 -m 10 -D 10 --insecure https://127.0.0.1:8443/ping
      closed loop over HTTP/3, with lost packets and round-trip times as QUIC counts them
  bolide load -c 1000 --rate 20k -D 30 --data-size 100 --expect-echo ws://127.0.0.1:8080/ws
      20,000 messages of 100 bytes per second on 1,000 WebSocket connections, each with its reply
  bolide load --grpc shop.Cart/Add --proto shop.proto --data-file add.json --rate 5k -D 30 http://127.0.0.1:50051
      5,000 calls of gRPC per second
  bolide load --scenario shop.toml --users 5k -D 60 https://shop.example
      5,000 users at a time who do the steps of a file: docs/LOAD.md shows one
  mpirun -x BOLIDE_SECRET -H load1,load2 bolide load -c 4000 --rate 800k --rendezvous load1 URL
      one load from two hosts, with one report (srun, Kubernetes and ssh: docs/LOAD.md)
  bolide load --h2load -n 100000 -c 100 -m 10 http://127.0.0.1:8080/ping
  bolide load --wrk -t2 -c100 -d10s --latency http://127.0.0.1:8080/ping
      the command lines of h2load and wrk, with their output

Units: ns, us, ms, s, m, h for durations (none: seconds); K, M, G (powers of 1024) and kB, MB, GB for
sizes; k and M for counts and rates.

Exit codes: 0 success; 1 responses were wrong or missing; 2 usage or configuration, nothing was sent;
3 a condition of --fail-if was met; 4 parts of the run did not come, or were lost.";

const COMPARE: &str = "\
Compares the rate of closed loops, p50 and p99 of each 0.1 s of open loops, the server's CPU time per request, and failures. The intervals
together are wrong with a probability of 5 %.

Exit codes: 0 no difference, or better; 2 the files can't be read or are of different loads; 3 something is worse.";

/// The arguments of `bolide load`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "bolide load [OPTIONS] URL...\n       bolide load compare FIRST.json SECOND.json\n       bolide load --h2load ARGS...\n       bolide load --wrk ARGS...")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,

    /// `http://HOST[:PORT]/PATH` or `https://…`; several URLs of one server are requested round-robin.
    /// `ws://…` or `wss://…`: messages on WebSocket connections.
    /// `{connection}` and `{request}` in the path or query are replaced by the number of the connection
    /// and that of the request on its connection, both from 0: `'/items?id={connection}-{request}'`;
    /// `{random:1..100}` by a number from 1 to 100, and `{uuid}` by a UUID, both random (--seed).
    #[arg(value_name = "URL", required_unless_present_any = ["urls", "h2load", "wrk", "har"])]
    pub(super) url: Vec<String>,

    /// Total number of connections, which users share. Default: 10, or the number of -n if that is less; of a scenario,
    /// as many as --users, at most 1000, or 100 with a rate.
    #[arg(short = 'c', long, value_name = "N", value_parser = bolide_units::count)]
    pub(super) connections: Option<u64>,

    /// Requests in flight on each connection: streams of HTTP/2 and HTTP/3, pipelining depth of HTTP/1.1.
    #[arg(short = 'm', long, value_name = "N", default_value = "1", value_parser = bolide_units::count)]
    pub(super) depth: u64,

    /// Threads. Default: one per core, at most one per connection.
    #[arg(short = 't', long, value_name = "N", value_parser = bolide_units::count)]
    pub(super) threads: Option<u64>,

    /// Pin the threads to these cores, round-robin, such as 0,2-3.
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

    #[command(flatten)]
    pub(crate) parts: PartsArguments,

    /// Treat all following arguments as a command line of h2load; no option of `bolide load` is allowed.
    #[arg(long, value_name = "ARGS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    pub(crate) h2load: Option<Vec<String>>,

    /// Treat all following arguments as a command line of wrk; no option of `bolide load` is allowed.
    #[arg(long, value_name = "ARGS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    pub(crate) wrk: Option<Vec<String>>,
}

/// Action without a load.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Action {
    /// Compare two runs by their JSON: what differs by more than their own noise explains.
    Compare(CompareArguments),
}

/// The runs to compare.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = COMPARE)]
pub(crate) struct CompareArguments {
    /// The first run, as written by --json.
    pub(crate) first: PathBuf,

    /// The second run, which may be better or worse than the first.
    pub(crate) second: PathBuf,

    /// Differences below this share are none: runs differ by more than is seen within each of them.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = bolide_units::share)]
    pub(crate) tolerance: f64,
}

/// Load and its duration.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadArguments {
    /// End after N requests, or users of a scenario.
    #[arg(short = 'n', long, value_name = "N", value_parser = bolide_units::count)]
    pub(super) requests: Option<u64>,

    /// End each phase after this time. Default: 10s; 30s for --ramp as a whole; 5s for --find-knee
    /// and when only a URL is given.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = bolide_units::positive_seconds)]
    pub(super) duration: Option<Duration>,

    /// Open loop: R requests per second over all connections, with latency counted from the intended
    /// time. With --find-knee, the rate at which the search begins.
    #[arg(long, value_name = "R", value_parser = bolide_units::rate)]
    pub(super) rate: Option<f64>,

    /// Intended times like those of many independent users (exponentially distributed intervals), not
    /// at equal intervals.
    #[arg(long)]
    pub(super) poisson: bool,

    /// Time before the first phase (--find-knee: before each) that is not counted. Default: 1s, but 0
    /// with -n or with -D below 5s.
    #[arg(long, value_name = "TIME", value_parser = bolide_units::seconds)]
    pub(super) warm_up: Option<Duration>,

    /// Open loop from one rate to another: FROM..TO requests per second in equal steps over -D.
    #[arg(long, value_name = "FROM..TO")]
    pub(super) ramp: Option<String>,

    /// Open loop at these rates one after the other, each for -D.
    #[arg(long, value_name = "R,R,…", value_delimiter = ',', value_parser = bolide_units::rate)]
    pub(super) steps: Vec<f64>,

    /// Search for the highest rate with a p99 below --slo, within 5 %.
    #[arg(long)]
    pub(super) find_knee: bool,

    /// Limit of p99 for --find-knee.
    #[arg(long, value_name = "TIME", value_parser = bolide_units::positive_seconds)]
    pub(super) slo: Option<Duration>,

    /// Open a new connection for each request and keep none: measures the cost of a handshake.
    #[arg(long)]
    pub(super) new_connections: bool,

    /// Seed of all random values: Poisson arrivals, samples, weighted choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// Options that steps say for themselves.
const NO_SCENARIO: [&str; 9] = [
    "urls",
    "exchanges",
    "body",
    "method",
    "streams",
    "content",
    "expect_field",
    "expect_length",
    "new_connections",
];

/// Requests to send.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(super) struct RequestArguments {
    /// The method. Default: GET, or POST with a body.
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(super) method: Option<String>,

    /// A field, as `Name: value`. May be repeated. Placeholders in the value are replaced as in the URL;
    /// other braces are sent as they are.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(super) headers: Vec<String>,

    /// Credentials of the scheme Basic (RFC 7617), as `user:password`. A step of a scenario may have its own.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "bearer")]
    pub(super) basic: Option<String>,

    /// Bearer token (RFC 6750). A step of a scenario may have its own. Placeholders are replaced as in -H.
    #[arg(long, value_name = "TOKEN")]
    pub(super) bearer: Option<String>,
    /// The bodies of requests.
    #[command(flatten)]
    pub(super) bodies: BodyArguments,
    /// Files that say what to request.
    #[command(flatten)]
    pub(super) sources: SourceArguments,
    /// Events and messages.
    #[command(flatten)]
    pub(super) messages: MessageArguments,

    /// Requests from another program (JSON, `bolide_loadgen::exchanges`), each with its body and the
    /// response's.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["urls", "body", "method", "content"])]
    pub(super) exchanges: Option<PathBuf>,
}

/// Events and messages.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct MessageArguments {
    /// Responses are Server-Sent Events: report the time to the first event, the gaps between events, stalls and
    /// events per second. --timeout counts from the last event of a stream. A stream fails if it has no
    /// event or one of the type `error`.
    #[arg(long, group = "streams", conflicts_with = "exchanges")]
    pub(super) events: bool,
    /// As --events, for servers of language models: requests have `Content-Type: application/json`; a stream
    /// fails without `[DONE]` at its end or with an `error` object in an event; tokens are counted if the server
    /// reports them (`usage`).
    #[arg(long, group = "streams", conflicts_with = "exchanges")]
    pub(super) openai: bool,
    /// Call this method of gRPC: its messages are the bodies, as JSON; `[…]` is one message after the other where the
    /// client streams. A call fails with another `grpc-status` than 0, or without one. --timeout counts from the last
    /// message. Over HTTP/2, or --http3.
    #[arg(long, value_name = "SERVICE/METHOD", group = "streams", conflicts_with_all = ["exchanges", "urls", "method", "http1", "content"])]
    pub(super) grpc: Option<String>,
    /// File that defines the gRPC service. May be repeated. Default: the server's reflection service is asked.
    #[arg(long, value_name = "FILE", requires = "grpc")]
    pub(super) proto: Vec<PathBuf>,
    /// Directory with files that --proto imports. May be repeated. Default: those of the files.
    #[arg(long, value_name = "DIR", requires = "proto")]
    pub(super) proto_path: Vec<PathBuf>,
    /// Send the messages of a gRPC call N times over, where the client streams.
    #[arg(long, value_name = "N", requires = "grpc", value_parser = bolide_units::count)]
    pub(super) repeat_messages: Option<u64>,
    /// Deadline of each gRPC call, which the server is told (`grpc-timeout`).
    #[arg(long, value_name = "TIME", requires = "grpc", value_parser = bolide_units::positive_seconds)]
    pub(super) deadline: Option<Duration>,
    /// Longest gap between two events or messages of a stream that is not counted as a stall. Default: 1s.
    #[arg(long, value_name = "TIME", value_parser = bolide_units::positive_seconds, requires = "streams")]
    pub(super) stall: Option<Duration>,
    /// WebSocket: no message has a reply; it is complete when the socket has taken it. Default: each message has one.
    #[arg(long)]
    pub(super) one_way: bool,
    /// WebSocket: send binary messages only. Default: text where a message is UTF-8.
    #[arg(long)]
    pub(super) binary: bool,
    /// WebSocket: offer compression (permessage-deflate).
    #[arg(long)]
    pub(super) deflate: bool,
}

/// Files that say what to request.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SourceArguments {
    /// A file with one URL or path per line, optionally with a weight and a method before it: `3 GET
    /// /ping`. Empty lines and lines that begin with # are ignored. Without weights, requests are
    /// round-robin. `-`: the standard input.
    #[arg(long, value_name = "FILE")]
    pub(super) urls: Option<PathBuf>,
    /// Users who do the steps of this file (TOML) in order, each as often as there is time and each time as another user:
    /// templates, captured values, cookies, pauses, weights. The URL names the server.
    #[arg(long, value_name = "FILE", group = "steps_of", conflicts_with_all = NO_SCENARIO)]
    pub(super) scenario: Option<PathBuf>,
    /// Users who repeat what a browser recorded (HTTP Archive), as far as it went to the servers of the URLs, or to that of
    /// the first entry. Requests follow one another, with the recorded pauses between them.
    #[arg(long, value_name = "FILE", group = "steps_of", conflicts_with_all = NO_SCENARIO)]
    pub(super) har: Option<PathBuf>,
    /// Send the requests of this access log again, at the times at which they came: GET and HEAD; in the common or combined
    /// format, or the JSON of `bolide serve`. The URL names the server.
    #[arg(long, value_name = "FILE", group = "steps_of", conflicts_with_all = NO_SCENARIO)]
    #[arg(conflicts_with_all = ["requests", "rate", "ramp", "steps", "find_knee", "warm_up", "poisson", "users"])]
    pub(super) replay: Option<PathBuf>,
    /// Replay so many times as fast.
    #[arg(long, value_name = "N", requires = "replay", default_value = "1", value_parser = bolide_units::factor)]
    pub(super) speed: f64,
    /// Users at a time; they begin evenly over the warm-up. Default: 10. With --rate, --ramp and --steps, the rate is that
    /// of users who begin; -n is the number of users.
    #[arg(long, value_name = "N", requires = "steps_of", value_parser = bolide_units::count)]
    pub(super) users: Option<u64>,
}

/// The bodies of requests.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct BodyArguments {
    /// This text as the body.
    #[arg(short = 'd', long, value_name = "TEXT", group = "body")]
    pub(super) data: Option<String>,
    /// This file as the body.
    #[arg(long, value_name = "FILE", group = "body")]
    pub(super) data_file: Option<PathBuf>,
    /// Each line of this file as the body of one request, round-robin: JSON Lines with prompts, say.
    #[arg(long, value_name = "FILE", group = "body", conflicts_with = "urls")]
    pub(super) data_lines: Option<PathBuf>,
    /// A body of this size, filled with --data-pattern.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::size, group = "body")]
    pub(super) data_size: Option<u64>,
    /// Content of a body of --data-size: `random` (from --seed), `zero`, or a text to repeat.
    /// Default: x.
    #[arg(long, value_name = "PATTERN", requires = "data_size")]
    pub(super) data_pattern: Option<String>,
}

/// Connections to use.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(super) struct ConnectionArguments {
    /// HTTP/1.1 only. Default for http://; for https://, ALPN offers h2 and http/1.1.
    #[arg(long, conflicts_with = "http2")]
    pub(super) http1: bool,

    /// HTTP/2 only; over http:// by prior knowledge (h2c).
    #[arg(long)]
    pub(super) http2: bool,

    /// HTTP/3 only: QUIC, at the UDP port of the https:// URL.
    #[arg(long, conflicts_with_all = ["http1", "http2"])]
    pub(super) http3: bool,

    /// Connect to this `HOST[:PORT]` or `unix:PATH` instead of the URL's. Several are used round-robin.
    /// `NAME=WHERE` is for the server of that name among those of a scenario.
    #[arg(long, value_name = "WHERE")]
    pub(super) connect_to: Vec<String>,

    /// Server name for SNI and the certificate. Default: the URL's host.
    #[arg(long, value_name = "NAME")]
    pub(super) sni: Option<String>,
    /// TLS.
    #[command(flatten)]
    pub(super) tls: TlsArguments,
    /// Settings of HTTP/2.
    #[command(flatten)]
    pub(super) windows: Http2Arguments,

    /// A response, or the reply to a message, that takes longer counts as failed.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = bolide_units::positive_seconds)]
    pub(super) timeout: Duration,

    /// A connection, TLS included, that takes longer counts as failed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = bolide_units::positive_seconds)]
    pub(super) connect_timeout: Duration,

    /// The server's process on this machine, for its CPU time and memory, children included.
    /// Default: the process that listens on the port.
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

/// Settings of HTTP/2.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Http2Arguments {
    /// HTTP/2: receive window of each stream. Default: grows with use.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::small_size)]
    pub(super) stream_window: Option<u32>,
    /// HTTP/2: receive window of each connection, at least 65535. Default: grows with use.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::small_size)]
    pub(super) connection_window: Option<u32>,
    /// HTTP/2: largest frame to accept, 16K to 16777215.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::small_size)]
    pub(super) max_frame: Option<u32>,
    /// HTTP/2: size of the table for decompressing header fields.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::small_size)]
    pub(super) header_table: Option<u32>,
}

/// TLS.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TlsArguments {
    /// Trust only these CA certificates (PEM).
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) ca: Option<PathBuf>,
    /// Client certificate chain, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) cert: Option<PathBuf>,
    /// Private key of the client certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,
    /// Accept any certificate, such as the self-signed one of `bolide serve`.
    #[arg(long)]
    pub(super) insecure: bool,
    /// Resume TLS sessions on new connections. Default: full handshakes.
    #[arg(long)]
    pub(super) resume: bool,
    /// HTTP/3: send requests with the first packet of each connection that resumes a session (0-RTT).
    #[arg(long)]
    pub(super) early_data: bool,
}

/// Expected responses.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Responses")]
pub(super) struct ExpectArguments {
    /// Expected statuses, such as 200,404 or 2xx. Default: 2xx and 3xx.
    #[arg(long, value_name = "LIST")]
    pub(super) expect_status: Option<String>,

    /// Expected header field of each response, such as 'content-type: text/html'. May be repeated.
    #[arg(long, value_name = "NAME: VALUE")]
    pub(super) expect_field: Vec<String>,

    /// Expected field in the trailers of each response, such as 'grpc-status: 0'. May be repeated.
    #[arg(long, value_name = "NAME: VALUE")]
    pub(super) expect_trailer: Vec<String>,

    /// Expected length of each body.
    #[arg(long, value_name = "SIZE", value_parser = bolide_units::size)]
    pub(super) expect_length: Option<u64>,

    /// Expected body, as a text.
    #[arg(long, value_name = "TEXT", group = "content")]
    pub(super) expect_body: Option<String>,

    /// Expected body, as a file.
    #[arg(long, value_name = "FILE", group = "content")]
    pub(super) expect_body_file: Option<PathBuf>,

    /// Expected SHA-256 of the body, in hexadecimal.
    #[arg(long, value_name = "HEX", group = "content")]
    pub(super) expect_sha256: Option<String>,

    /// Expect all bodies of a URL to equal its first one.
    #[arg(long, group = "content")]
    pub(super) expect_same: bool,

    /// WebSocket: expect each reply to equal its message.
    #[arg(long, group = "content")]
    pub(super) expect_echo: bool,

    /// Proportion of bodies that are compared with the options above. Without them, none is compared.
    /// Lengths and statuses are always checked.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = bolide_units::share)]
    pub(super) sample: f64,

    /// Exit with 3 if this condition is met, such as 'p99>5ms', 'errors>0', 'failed_share>0.1%', 'rate<10k'.
    /// May be repeated. Metrics: p50 … p99.999, mean, max, the same with the prefix ttfb_, first_event_ or
    /// gap_, errors, failed_share, rate. Latencies are those of the open-loop phases, if there are any; the rate
    /// is the knee, or the highest of any phase.
    #[arg(long, value_name = "CONDITION", value_parser = Threshold::parse)]
    pub(super) fail_if: Vec<Threshold>,
}

/// Output of the results.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArguments {
    /// Write all results as JSON. `-`: the standard output; the summary then goes to the
    /// standard error.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Write the series and the percentiles as CSV.
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,

    /// Write the latency histograms as an HdrHistogram V2 log.
    #[arg(long, value_name = "FILE")]
    pub(super) hdr: Option<PathBuf>,

    /// Write a self-contained HTML page with the latency spectrum and the rate over time.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// Serve metrics for Prometheus at this `HOST:PORT`, path /metrics, while the load runs.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) metrics: Option<String>,

    /// Send metrics while the load runs to this URL by Prometheus remote write.
    #[arg(long, value_name = "URL")]
    pub(super) remote_write: Option<String>,

    /// Send metrics while the load runs to this endpoint by OTLP over HTTP, such as http://127.0.0.1:4318.
    #[arg(long, value_name = "URL")]
    pub(super) otlp: Option<String>,

    /// Send them this often.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = bolide_units::positive_seconds)]
    pub(super) push_every: Duration,

    /// Send this `Name: value` with them. May be repeated.
    #[arg(long, value_name = "FIELD")]
    pub(super) push_header: Vec<String>,

    /// Write a record of each request while the load runs: CSV, or by the end of the name JSON Lines (.jsonl) or Parquet (.parquet).
    #[arg(long, value_name = "FILE")]
    pub(super) records: Option<PathBuf>,

    /// Proportion of the requests that --records writes, chosen by --seed. Default: all.
    #[arg(long, value_name = "SHARE", requires = "records", value_parser = bolide_units::share)]
    pub(super) sample_records: Option<f64>,

    /// Write a test case for each phase and each condition of --fail-if as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,

    /// No live view and no summary.
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
}
