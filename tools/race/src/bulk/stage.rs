//! A lab with what is needed to put a server and a client into it.

use std::cell::OnceCell;
use std::fs::File;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bolide_netlab::lab::Lab;
use bolide_netlab::shape::Shape;
use bolide_netlab::spec::{Node, Spec};

use crate::bulk::Setting;
use crate::bulk::browser;
use crate::bulk::client;
use crate::bulk::loaded::Loaded;
use crate::bulk::outcome::Sample;
use crate::bulk::prepared::Prepared;
use crate::bulk::stack::{Direction, Stack, Way, cell};
use crate::bulk::watched::Watched;
use crate::catalogue::Protocol;
use crate::entrant::{Ground, Present};
use crate::process::{Launch, Process, distance_ns};
use crate::verify::Ports;

/// Nothing else is in the server's namespace.
const PORTS: Ports = Ports { plain: 8080, h2c: 8081, tls: 8443 };

/// How long ndt7 is: it knows no sizes.
const NDT7_TIME: &str = "1s";

/// Port at which proxies find what they ask, in the server's namespace.
const BACKEND_PORT: u16 = 9080;

/// How long that, and what speaks raw TCP, may take to start.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);

/// How often a server that starts is asked whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(10);

const GIB: f64 = (1_u64 << 30) as f64;

/// A lab that is removed when this goes out of scope.
pub(super) struct Stage<'a> {
    lab: Option<Lab>,
    setting: &'a Setting,
    present: &'a [Present],
    ground: &'a Ground<'a>,
    prepared: &'a Prepared,
    /// Server that proxies ask, once one has.
    backend: OnceCell<Process>,
}

impl<'a> Stage<'a> {
    pub(super) fn up(
        setting: &'a Setting,
        shape: Shape,
        present: &'a [Present],
        ground: &'a Ground<'a>,
        prepared: &'a Prepared,
    ) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("bulk transfers need a lab of root's; run it as root".to_owned());
        }
        let spec = Spec {
            name: format!("bulk-{}", std::process::id()),
            down: shape.clone(),
            up: shape.clone(),
            congestion: setting.congestion.clone(),
            seed: setting.seed,
            // What has no shape has nothing that could be off.
            verify: shape != Shape::default(),
            owned: true,
            ..Spec::default()
        };
        let lab = Lab::up(&spec, |_| {}).map_err(|mistake| mistake.to_string())?;
        let backend = OnceCell::new();
        Ok(Self { lab: Some(lab), setting, present, ground, prepared, backend })
    }

    /// Removes the lab.
    pub(super) fn down(mut self) -> Result<(), String> {
        // Before the namespace that it runs in.
        drop(self.backend.take());
        self.lab.take().map_or(Ok(()), |lab| lab.down().map_err(|mistake| mistake.to_string()))
    }

    /// An error once the end was asked for.
    pub(super) fn check(&self) -> Result<(), String> {
        self.ground.interrupt.check()
    }

    fn lab(&self) -> Result<&Lab, String> {
        self.lab.as_ref().ok_or_else(|| "the lab is down".to_owned())
    }

    /// One transfer of a fresh server, and how far apart the cores were.
    pub(super) fn measure(
        &self,
        stack: &Stack,
        direction: Direction,
        bytes: u64,
        options: &[String],
    ) -> Result<Sample, String> {
        let distance = || distance_ns(self.prepared.cores[0], self.prepared.cores[1]);
        let before = distance();
        let mut sample = self.transfer(stack, direction, bytes, options)?;
        sample.distance_ns = before.zip(distance()).map(Into::into);
        // A client sees what its own side uses; the lab has set it for both.
        let asked = || Some(self.setting.congestion.clone());
        sample.congestion_control = sample.congestion_control.or_else(asked);
        Ok(sample)
    }

    /// One transfer of a fresh server.
    fn transfer(
        &self,
        stack: &Stack,
        direction: Direction,
        bytes: u64,
        options: &[String],
    ) -> Result<Sample, String> {
        self.check()?;
        let (server, address, url) = match (stack.protocol, stack.server()) {
            (Some(protocol), Some(name)) => self.serve(stack, protocol, name, direction, bytes)?,
            _ => self.listen()?,
        };
        let (measured, watched, parts) = if stack.way == Way::Browser {
            let bytes = bytes.min(browser::BYTES_MAX);
            let task = browser::Task {
                lab: self.lab()?,
                url: format!("https://{address}/{bytes}"),
                direction,
                bytes,
                is_h1: stack.protocol == Some(Protocol::H1s),
                core: self.prepared.cores[1],
                directory: self.prepared.place.directory("browser")?,
                time: self.setting.timeout,
                interrupt: self.ground.interrupt,
                server: server.id(),
            };
            browser::run(&task)?
        } else {
            let mut command = self.lab()?.command(Node::Client, &self.prepared.client);
            command.args(["measure", "--quiet", "--json", "-"]).args(options);
            command.args(["--server-pid", &server.id().to_string()]);
            command.args(words(stack, direction, &url));
            // The URL of a download over HTTP says how much.
            let says = stack.protocol.is_some() && direction == Direction::Download;
            if !says && stack.way != Way::Ndt7 {
                command.args(["-n", &bytes.to_string()]);
            }
            let mut watched = Watched::begin(server.id());
            let (core, time) = (self.prepared.cores[1], self.setting.timeout);
            let measured = client::run(command, &[core], time, self.ground.interrupt)?;
            watched.end();
            (measured, watched, None)
        };
        let used = watched.used().as_secs_f64();
        let (gib, seconds) = (measured.bytes as f64 / GIB, measured.seconds.max(1e-9));
        Ok(Sample {
            bits_per_second: measured.goodput_bits_per_second,
            server_cpu_per_gib: used / gib,
            client_cpu_per_gib: measured.client.cpu_seconds / gib,
            server_busy: used / seconds,
            client_busy: measured.client.cpu_seconds / seconds,
            server_memory_bytes: Some(watched.peak_memory_bytes()),
            client_memory_bytes: Some(measured.client.peak_memory_bytes),
            limit: measured.verdict.limit,
            congestion_control: measured.congestion_control,
            distance_ns: None,
            parts,
        })
    }

    /// A page of so many objects of so many bytes, from a fresh server: what `bolide load` says of it.
    pub(super) fn page(&self, stack: &Stack, objects: u32, bytes: u64) -> Result<Loaded, String> {
        self.check()?;
        let (protocol, name) = stack.protocol.zip(stack.server()).ok_or("it is no HTTP")?;
        let (_server, _, url) = self.serve(stack, protocol, name, Direction::Download, bytes)?;
        let mut command = self.lab()?.command(Node::Client, &self.prepared.client);
        command.args(["load", "--quiet", "--json", "-", "--insecure", "-n"]);
        command.arg(objects.to_string());
        // As browsers do.
        let (version, connections, depth) = match protocol {
            Protocol::H1 | Protocol::H1s => ("--http1", 6, 1),
            Protocol::H2c | Protocol::H2 => ("--http2", 1, objects),
            Protocol::H3 => ("--http3", 1, objects),
        };
        command.args([version, "-c", &connections.to_string(), "-m", &depth.to_string(), &url]);
        let (core, time) = (self.prepared.cores[1], self.setting.timeout);
        Loaded::read(&client::text(command, &[core], time, &self.prepared.interrupt)?, objects)
    }

    /// Starts a contender. Its process, its address, and what it is asked for.
    fn serve(
        &self,
        stack: &Stack,
        protocol: Protocol,
        name: &str,
        direction: Direction,
        bytes: u64,
    ) -> Result<(Process, SocketAddr, String), String> {
        let present = self
            .present
            .iter()
            .find(|present| present.contender.name == name)
            .ok_or_else(|| format!("`{name}` is not here"))?;
        self.file(bytes)?;
        let (server, address) = self.start(present, protocol, stack.way)?;
        Ok((server, address, url(stack, present, direction, bytes, address)))
    }

    /// Starts what speaks raw TCP: a process as every server is one, whose client and length are the others'.
    fn listen(&self) -> Result<(Process, SocketAddr, String), String> {
        let address = SocketAddr::from((self.lab()?.spec().right.host(), PORTS.plain));
        let program = self.ground.program.display().to_string();
        let command = [program, "net".to_owned(), "listen".to_owned(), address.to_string()];
        let mut process = self.run_inside("run-raw", command.to_vec(), self.prepared.cores[0])?;
        self.wait(&mut process, address, LISTEN_LIMIT)?;
        Ok((process, address, format!("raw://{address}")))
    }

    /// A file of that size for those who serve files, without any data on the disk.
    fn file(&self, bytes: u64) -> Result<(), String> {
        let path = self.prepared.place.www().join(format!("{bytes}.bin"));
        if path.exists() {
            return Ok(());
        }
        File::create(&path)
            .and_then(|file| file.set_len(bytes))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns where proxies find what they ask: Bolide over HTTP/1.1, on the client's core, started once.
    fn backend(&self) -> Result<SocketAddr, String> {
        let lab = self.lab()?;
        let address = SocketAddr::from((lab.spec().right.host(), BACKEND_PORT));
        if self.backend.get().is_none() {
            let program = self.ground.program.display().to_string();
            let listen = address.to_string();
            let command = ["serve", "--http", &listen, "--no-https", "--workers", "1"];
            let command = std::iter::once(program.as_str()).chain(command).map(str::to_owned);
            let mut process =
                self.run_inside("run-backend", command.collect(), self.prepared.cores[1])?;
            self.wait(&mut process, address, LISTEN_LIMIT)?;
            // Nothing else can have set it.
            let _ = self.backend.set(process);
        }
        Ok(address)
    }

    /// Starts a program of ours in the server's namespace, with a directory of its own.
    fn run_inside(
        &self,
        directory: &str,
        command: Vec<String>,
        core: usize,
    ) -> Result<Process, String> {
        let directory = self.prepared.place.directory(directory)?;
        let (env, log) = (std::collections::BTreeMap::new(), directory.join("log"));
        self.start_inside(Launch { command, env, log, directory, cores: vec![core] })
    }

    /// Starts something in the server's namespace.
    fn start_inside(&self, launch: Launch) -> Result<Process, String> {
        let (program, rest) =
            launch.command.split_first().ok_or_else(|| "there is nothing to run".to_owned())?;
        let inside = self.lab()?.command(Node::Server, program);
        let words = std::iter::once(inside.get_program()).chain(inside.get_args());
        let mut command: Vec<String> =
            words.map(|word| word.to_string_lossy().into_owned()).collect();
        command.extend_from_slice(rest);
        Process::start(&Launch { command, ..launch })
    }

    /// Starts a server, and waits until it takes connections.
    fn start(
        &self,
        present: &Present,
        protocol: Protocol,
        way: Way,
    ) -> Result<(Process, SocketAddr), String> {
        let cell = cell(protocol, way);
        let host = self.lab()?.spec().right.host();
        let backend = if way == Way::Proxy { Some(self.backend()?) } else { None };
        let (core, place) = (self.prepared.cores[0], &self.prepared.place);
        let launch = present.launch_on(&cell, core, (host, PORTS), backend, place, self.ground)?;
        let mut process = self.start_inside(launch)?;
        let port = match protocol {
            Protocol::H1s | Protocol::H2 | Protocol::H3 => PORTS.tls,
            Protocol::H2c if present.has_h2c_port(&cell, self.ground.sources) => PORTS.h2c,
            Protocol::H1 | Protocol::H2c => PORTS.plain,
        };
        let address = SocketAddr::from((host, port));
        let limit = Duration::from_secs_f64(present.contender.ready.within_s);
        self.wait(&mut process, address, limit)?;
        Ok((process, address))
    }

    /// Waits until a server takes connections.
    fn wait(
        &self,
        process: &mut Process,
        address: SocketAddr,
        limit: Duration,
    ) -> Result<(), String> {
        let began = Instant::now();
        loop {
            self.check()?;
            if self.lab()?.connect(Node::Client, address, limit).is_ok() {
                return Ok(());
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

/// The words for `bolide measure`.
fn words(stack: &Stack, direction: Direction, url: &str) -> Vec<String> {
    let mut words = Vec::new();
    if stack.protocol.is_some_and(Protocol::is_tls) {
        words.push("--insecure");
    }
    if stack.way == Way::Ndt7 {
        words.extend(["-t", NDT7_TIME]);
    } else {
        words.extend(stack.protocol.map(|protocol| match protocol {
            Protocol::H1 | Protocol::H1s => "--h1",
            Protocol::H2c => "--h2c",
            Protocol::H2 => "--h2",
            Protocol::H3 => "--h3",
        }));
        if direction == Direction::Upload {
            words.extend(["-X", "PUT"]);
        }
    }
    words.push(url);
    words.into_iter().map(str::to_owned).collect()
}

/// Returns what is asked for.
fn url(
    stack: &Stack,
    present: &Present,
    direction: Direction,
    bytes: u64,
    address: SocketAddr,
) -> String {
    let tls = if stack.protocol.is_some_and(Protocol::is_tls) { "s" } else { "" };
    if stack.way == Way::Ndt7 {
        let test = if direction == Direction::Download { "download" } else { "upload" };
        return format!("ws{tls}://{address}/ndt/v7/{test}");
    }
    // Behind a proxy it is the backend's path; who names none serves the file.
    let named = present.contender.paths.get("bulk").map_or("/{size}.bin", String::as_str);
    let path = if stack.way == Way::Direct { named } else { "/{size}" };
    let path = path.replace("{size}", &bytes.to_string());
    format!("http{tls}://{address}{path}")
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        drop(self.backend.take());
        // On the way out of an error; `net up` would find what can't be removed.
        if let Some(lab) = self.lab.take() {
            let _ = lab.down();
        }
    }
}
