//! `bolide net`: its arguments, and what they lead to.

#[cfg(target_os = "linux")]
mod actions;
#[cfg(target_os = "linux")]
mod show;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::quantity::{self, Both, both};
use crate::shape::{Discipline, Queue, Shape};
use crate::spec::{DEFAULT_NAME, Network, Node, Spec};
use crate::{Mistake, profile};

/// Examples and exit codes, for the end of the help.
pub const AFTER_HELP: &str = "Examples:
  bolide net up --profile 4g
      client 192.168.0.2 – router – server 192.168.1.2, 100 ms, 30 Mbit/s down, 10 up; verified
  bolide net up --name slow --rtt 50ms --rate 20mbit/5mbit --loss 0.1%
      a second lab; single values for both directions, or DOWN/UP
  bolide net exec server -- python3 -m http.server
  bolide net exec client -- curl http://192.168.1.2:8000/
  bolide net iperf -R
      raw TCP, download: the reference for other measurements
  bolide net status
  bolide net down

Values are per direction: download is what the server sends. Exit codes: 0 success; 1 failure, or a lab
that misses the requested values; 2 usage, or a system without namespaces.";

/// Commands of `bolide net`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Create a lab: three network namespaces, client – router – server.
    Up(Box<UpArguments>),
    /// Run a program on a node of a lab.
    Exec(ExecArguments),
    /// List labs: requested and measured values.
    Status(StatusArguments),
    /// Remove a lab and stop everything that runs in it.
    Down(DownArguments),
    /// Measure raw TCP through a lab: upload (client → server), or download with -R.
    Iperf(IperfArguments),
    /// Serve raw TCP, for `bolide measure raw://HOST:PORT`.
    Listen(ListenArguments),
    /// Keep a lab: what `up` starts.
    #[command(hide = true)]
    Keep,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArguments {
    /// The lab's name; its namespaces are NAME-client, NAME-router and NAME-server.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,

    /// The client's network: the router is its first address, the client its second.
    #[arg(long, value_name = "NETWORK", default_value = "192.168.0.0/24")]
    left: Network,

    /// The server's network: the router is its first address, the server its second.
    #[arg(long, value_name = "NETWORK", default_value = "192.168.1.0/24")]
    right: Network,

    /// 2g, 3g, 4g, 5g, poor-mobile, broadband, ftth-100, ftth-1g or server; all except the last also
    /// with -bloated. Other options take precedence over its values.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The line between both networks.
    #[command(flatten)]
    line: LineArguments,

    /// Congestion control of connections in the lab.
    #[arg(short = 'C', long, value_name = "NAME", default_value = "cubic")]
    congestion: String,

    /// Seed of the delay line's losses, jitter and reordering.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Shape with the delay line only, even where the kernel could.
    #[arg(long)]
    only_line: bool,

    /// Don't measure the lab after set-up.
    #[arg(long)]
    no_verify: bool,

    /// Use a user namespace also as root; other users always do.
    #[arg(long)]
    rootless: bool,

    /// Write the requested and measured values as JSON to the standard output.
    #[arg(long)]
    json: bool,
}

/// The line between both networks.
#[derive(Debug, Args)]
pub struct LineArguments {
    /// Bits per second of IP packets, such as 20mbit or 100mbit/20mbit.
    #[arg(long, value_name = "RATE[/UP]", value_parser = rates)]
    rate: Option<Both<u64>>,
    /// The queue in front of the rate: time (50ms) or packets (100p). Default: 50ms, and at least
    /// 32 KiB.
    #[arg(long, value_name = "QUEUE[/UP]", value_parser = queues)]
    queue: Option<Both<Queue>>,
    /// Queue discipline: fifo or codel.
    #[arg(long, value_name = "NAME[/UP]", value_parser = disciplines)]
    discipline: Option<Both<Discipline>>,
    /// One-way delay, such as 10ms.
    #[arg(long, value_name = "TIME[/UP]", value_parser = times, conflicts_with = "rtt")]
    delay: Option<Both<Duration>>,
    /// Round-trip time: half of it as delay in each direction.
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    rtt: Option<Duration>,
    /// Variation of the delay (uniform, plus or minus); packets stay in order.
    #[arg(long, value_name = "TIME[/UP]", value_parser = times)]
    jitter: Option<Both<Duration>>,
    /// Proportion of packets that are lost, such as 1%.
    #[arg(long, value_name = "SHARE[/UP]", value_parser = shares)]
    loss: Option<Both<f64>>,
    /// Proportion of packets that skip the delay, such as 1%.
    #[arg(long, value_name = "SHARE[/UP]", value_parser = shares)]
    reorder: Option<Both<f64>>,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
pub struct ExecArguments {
    /// client, router or server.
    node: Node,

    /// The lab.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,

    /// Cores that the program may use, such as 0 or 0,1.
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,

    /// Program and arguments, after `--`. Its exit code is the command's; 127: program not found.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Only this lab.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `down`.
#[derive(Debug, Args)]
pub struct DownArguments {
    /// The lab.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, conflicts_with = "all")]
    name: String,

    /// All labs of this user.
    #[arg(long)]
    all: bool,
}

/// Arguments of `iperf`.
#[derive(Debug, Args)]
pub struct IperfArguments {
    /// The lab.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,

    /// Download: the server sends.
    #[arg(short = 'R', long)]
    reverse: bool,

    /// Congestion control. Default: the lab's.
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,

    /// Duration in seconds.
    #[arg(short = 't', long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    time: Duration,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `listen`.
#[derive(Debug, Args)]
pub struct ListenArguments {
    /// Address to listen on.
    #[arg(default_value = "127.0.0.1:5201")]
    address: SocketAddr,

    /// Congestion control. Default: the system's.
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
}

fn rates(text: &str) -> Result<Both<u64>, String> {
    both(text, bolide_units::bit_rate)
}

fn times(text: &str) -> Result<Both<Duration>, String> {
    both(text, quantity::time)
}

fn shares(text: &str) -> Result<Both<f64>, String> {
    both(text, bolide_units::share)
}

fn queues(text: &str) -> Result<Both<Queue>, String> {
    both(text, Queue::parse)
}

fn disciplines(text: &str) -> Result<Both<Discipline>, String> {
    both(text, Discipline::parse)
}

/// Reads `5`, `0.5` or `500ms`.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = bolide_units::seconds(text)?;
    if !(Duration::from_millis(50)..=Duration::from_secs(3600)).contains(&time) {
        return Err(format!("`{text}`: must be from 50ms to 1h"));
    }
    Ok(time)
}

impl UpArguments {
    /// The lab that they ask for.
    ///
    /// # Errors
    ///
    /// One sentence.
    pub fn spec(&self) -> Result<Spec, Mistake> {
        let (down, up) = match &self.profile {
            Some(name) => profile::shapes(name).map_err(Mistake::Usage)?,
            None => Default::default(),
        };
        let spec = Spec {
            name: self.name.clone(),
            left: self.left,
            right: self.right,
            down: self.shape(down, Side::Down),
            up: self.shape(up, Side::Up),
            congestion: self.congestion.clone(),
            seed: self.seed,
            only_line: self.only_line,
            verify: !self.no_verify,
            rootless: self.rootless || !rustix::process::geteuid().is_root(),
            owned: false,
        };
        spec.check().map_err(Mistake::Usage)?;
        Ok(spec)
    }

    fn shape(&self, base: Shape, side: Side) -> Shape {
        let delay = side.of(self.line.delay).or_else(|| self.line.rtt.map(|rtt| rtt / 2));
        Shape {
            rate: side.of(self.line.rate).or(base.rate),
            queue: side.of(self.line.queue).unwrap_or(base.queue),
            discipline: side.of(self.line.discipline).unwrap_or(base.discipline),
            delay: delay.unwrap_or(base.delay),
            jitter: side.of(self.line.jitter).unwrap_or(base.jitter),
            loss: side.of(self.line.loss).unwrap_or(base.loss),
            reorder: side.of(self.line.reorder).unwrap_or(base.reorder),
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Down,
    Up,
}

impl Side {
    fn of<T>(self, both: Option<Both<T>>) -> Option<T> {
        both.map(|both| match self {
            Self::Down => both.down,
            Self::Up => both.up,
        })
    }
}

/// Carries an action out.
pub fn run(action: &Action) -> ExitCode {
    match carry_out(action) {
        Ok(code) => code,
        Err(mistake) => {
            eprintln!("bolide net: {mistake}");
            ExitCode::from(mistake.code())
        }
    }
}

#[cfg(target_os = "linux")]
fn carry_out(action: &Action) -> Result<ExitCode, Mistake> {
    actions::carry_out(action)
}

#[cfg(not(target_os = "linux"))]
fn carry_out(_: &Action) -> Result<ExitCode, Mistake> {
    Err(Mistake::Usage(format!(
        "a lab is made of Linux's network namespaces, and this is {}; run it in a Linux machine",
        std::env::consts::OS
    )))
}

#[cfg(test)]
mod tests;
