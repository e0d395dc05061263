//! A lab with what is needed to put a server and a client into it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use bolide_netlab::iperf;
use bolide_netlab::lab::Lab;
use bolide_netlab::shape::Shape;
use bolide_netlab::spec::{Node, Spec};

use crate::bulk::Arguments;
use crate::bulk::client;
use crate::bulk::outcome::Sample;
use crate::bulk::stack::{Direction, Stack, cell};
use crate::catalogue::Protocol;
use crate::entrant::{Ground, Present};
use crate::process::{Launch, Process, Reading, peak_memory_bytes, tree};
use crate::verify::Ports;
use crate::workplace::Workplace;

/// Nobody else is in the server's namespace.
const PORTS: Ports = Ports { plain: 8080, h2c: 8081, tls: 8443 };

/// How long raw TCP is measured.
const RAW_TIME: Duration = Duration::from_secs(2);

/// How often a server that starts is asked whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(10);

const GIB: f64 = (1_u64 << 30) as f64;

/// A lab that is removed when this goes out of scope.
pub(super) struct Stage<'a> {
    lab: Option<Lab>,
    arguments: &'a Arguments,
    present: &'a [Present],
    ground: &'a Ground<'a>,
    place: &'a Workplace,
    /// Of the server, and of the client.
    cores: [usize; 2],
    /// The program whose `measure` is the client.
    client: PathBuf,
}

impl<'a> Stage<'a> {
    pub(super) fn up(
        arguments: &'a Arguments,
        shape: Shape,
        present: &'a [Present],
        ground: &'a Ground<'a>,
        place: &'a Workplace,
        cores: [usize; 2],
    ) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("bulk transfers need a lab of root's; run it as root".to_owned());
        }
        let spec = Spec {
            name: format!("bulk-{}", std::process::id()),
            down: shape.clone(),
            up: shape,
            congestion: arguments.congestion.clone(),
            verify: false,
            ..Spec::default()
        };
        let lab = Lab::up(&spec, |_| {}).map_err(|mistake| mistake.to_string())?;
        let client = ground.program.clone();
        Ok(Self { lab: Some(lab), arguments, present, ground, place, cores, client })
    }

    /// The same with another program as its client.
    pub(super) fn with_client(mut self, client: PathBuf) -> Self {
        self.client = client;
        self
    }

    /// Removes the lab.
    pub(super) fn down(mut self) -> Result<(), String> {
        self.lab.take().map_or(Ok(()), |lab| lab.down().map_err(|mistake| mistake.to_string()))
    }

    /// An error once somebody has asked for the end.
    pub(super) fn check(&self) -> Result<(), String> {
        self.ground.interrupt.check()
    }

    fn lab(&self) -> Result<&Lab, String> {
        self.lab.as_ref().ok_or_else(|| "the lab is down".to_owned())
    }

    /// One transfer of a fresh server.
    pub(super) fn measure(
        &self,
        stack: &Stack,
        direction: Direction,
        bytes: u64,
        options: &[String],
    ) -> Result<Sample, String> {
        self.check()?;
        let Some(protocol) = stack.protocol else { return self.raw(direction) };
        let present = self
            .present
            .iter()
            .find(|present| present.contender.name == stack.name)
            .ok_or_else(|| format!("`{}` is not here", stack.name))?;
        self.file(bytes)?;
        let (server, address) = self.start(present, protocol)?;
        let scheme = if protocol.is_tls() { "https" } else { "http" };
        let path = present.contender.paths.get("bulk").map_or("/{size}", String::as_str);
        let url = format!("{scheme}://{address}{}", path.replace("{size}", &bytes.to_string()));
        let version = match protocol {
            Protocol::H1 | Protocol::H1s => "--h1",
            Protocol::H2c => "--h2c",
            Protocol::H2 => "--h2",
        };
        let mut command = self.lab()?.command(Node::Client, &self.client);
        command.args(["measure", &url, version, "--quiet", "--json", "-"]);
        if protocol.is_tls() {
            command.arg("--insecure");
        }
        command.args(["--server-pid", &server.id().to_string()]).args(options);
        // Of a download the URL says how much.
        if direction == Direction::Upload {
            command.args(["-X", "PUT", "-n", &bytes.to_string()]);
        }
        let before = Reading::of(&tree(server.id()));
        let measured =
            client::run(command, &[self.cores[1]], self.arguments.timeout, self.ground.interrupt)?;
        let processes = tree(server.id());
        let (used, _) = Reading::of(&processes).since(&before);
        let (gib, seconds) = (measured.bytes as f64 / GIB, measured.seconds.max(1e-9));
        Ok(Sample {
            bits_per_second: measured.goodput_bits_per_second,
            server_cpu_per_gib: used.as_secs_f64() / gib,
            client_cpu_per_gib: measured.client.cpu_seconds / gib,
            server_busy: used.as_secs_f64() / seconds,
            client_busy: measured.client.cpu_seconds / seconds,
            server_memory_bytes: Some(peak_memory_bytes(&processes)),
            client_memory_bytes: Some(measured.client.peak_memory_bytes),
            limit: measured.verdict.limit,
            congestion_control: measured.congestion_control,
        })
    }

    fn raw(&self, direction: Direction) -> Result<Sample, String> {
        let download = direction == Direction::Download;
        let options = iperf::Options { download, time: RAW_TIME, congestion: None };
        let found = iperf::run(self.lab()?, &options).map_err(|mistake| mistake.to_string())?;
        let sender = (found.sender_cpu_seconds_per_gib, found.sender_busy);
        let receiver = (found.receiver_cpu_seconds_per_gib, found.receiver_busy);
        let (server, client) = if download { (sender, receiver) } else { (receiver, sender) };
        Ok(Sample {
            bits_per_second: found.bits_per_second,
            server_cpu_per_gib: server.0,
            client_cpu_per_gib: client.0,
            server_busy: server.1,
            client_busy: client.1,
            server_memory_bytes: None,
            client_memory_bytes: None,
            limit: found.full,
            congestion_control: Some(found.congestion_control),
        })
    }

    /// A file of that size for those who serve files, without any data on the disk.
    fn file(&self, bytes: u64) -> Result<(), String> {
        let path = self.place.www().join(bytes.to_string());
        if path.exists() {
            return Ok(());
        }
        File::create(&path)
            .and_then(|file| file.set_len(bytes))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Starts a server, and waits until it takes connections.
    fn start(
        &self,
        present: &Present,
        protocol: Protocol,
    ) -> Result<(Process, SocketAddr), String> {
        let (lab, cell) = (self.lab()?, cell(protocol));
        let host = lab.spec().right.host();
        let launch =
            present.launch_on(&cell, self.cores[0], (host, PORTS), self.place, self.ground)?;
        let (program, rest) =
            launch.command.split_first().ok_or_else(|| "there is nothing to run".to_owned())?;
        let inside = lab.command(Node::Server, program);
        let words = std::iter::once(inside.get_program()).chain(inside.get_args());
        let mut command: Vec<String> =
            words.map(|word| word.to_string_lossy().into_owned()).collect();
        command.extend_from_slice(rest);
        let mut process = Process::start(&Launch { command, ..launch })?;
        let port = match protocol {
            Protocol::H1s | Protocol::H2 => PORTS.tls,
            Protocol::H2c if present.has_h2c_port(&cell, self.ground.sources) => PORTS.h2c,
            Protocol::H1 | Protocol::H2c => PORTS.plain,
        };
        let address = SocketAddr::from((host, port));
        let limit = Duration::from_secs_f64(present.contender.ready.within_s);
        let began = Instant::now();
        loop {
            self.check()?;
            if lab.connect(Node::Client, address, limit).is_ok() {
                return Ok((process, address));
            }
            let wrong = match process.ended() {
                Some(status) => format!("it ended before it was ready ({status})"),
                None if began.elapsed() > limit => format!("nothing listens on {address}"),
                None => {
                    thread::sleep(READY_INTERVAL);
                    continue;
                }
            };
            return Err(format!("{wrong}; it said\n{}", process.last_lines()));
        }
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // On the way out of an error; `net up` would find what can't be removed.
        if let Some(lab) = self.lab.take() {
            let _ = lab.down();
        }
    }
}
