//! A contender at the start of a cell: found, built, started, ready.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use bolide_probe::nearest::suggestion;

use crate::builder;
use crate::catalogue::{Cell, Certificate, Protocol};
use crate::contender::{Contender, Sources};
use crate::interrupt::Interrupt;
use crate::process::{Launch, Process, find_program};
use crate::verify::{Flaw, Ports, Subject, port_of};
use crate::workplace::Workplace;

/// A server that found its port taken is started again, at most so many times.
const STARTS_COUNT: usize = 3;

/// How often a server that starts is asked whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(10);

/// A contender that is there, with what it needs to start.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    pub(crate) contender: Contender,
    /// Directory of what its build made.
    out: Option<PathBuf>,
    /// The program that an environment variable named.
    binary: Option<String>,
    pub(crate) version: String,
}

/// Finds out whether a contender is on this machine, and builds it if it is ours to build.
pub(crate) fn detect(
    contender: &Contender,
    sources: &Sources,
    interrupt: &Interrupt,
) -> Result<Present, String> {
    let install = contender.detect.install.as_deref();
    let hint = install.map(|command| format!("; `{command}` brings it")).unwrap_or_default();
    for program in &contender.detect.programs {
        if find_program(program).is_none() {
            return Err(format!("`{program}` is not in PATH{hint}"));
        }
    }
    let binary = match &contender.detect.env {
        None => None,
        Some(name) => match std::env::var(name) {
            Ok(value) if find_program(&value).is_some() => Some(value),
            Ok(value) => {
                return Err(format!("{name} names `{value}`, which is not a program{hint}"));
            }
            Err(_) => return Err(format!("the variable {name} must name its program{hint}")),
        },
    };
    let out = match &contender.build {
        None => None,
        Some(build) => {
            let cache = crate::workplace::cache();
            let place = builder::place(contender, build, sources, &cache)?;
            place.build(build, sources, interrupt).map_err(|error| error + &hint)?;
            Some(place.out)
        }
    };
    let built = out.as_ref().map(|out| out.display().to_string()).unwrap_or_default();
    let version = contender.detect.version.iter().map(|word| word.replace("{out}", &built));
    let version: Vec<String> = version.collect();
    let version: Vec<&str> = version.iter().map(String::as_str).collect();
    let version =
        if version.is_empty() { String::new() } else { crate::process::first_line(&version) };
    Ok(Present { contender: contender.clone(), out, binary, version })
}

/// Properties that all starts of a race have in common.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) interrupt: &'a Interrupt,
    /// This program, for `{bolide}`.
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// Files that it has to write in each run.
    writes: Vec<PathBuf>,
}

impl Running {
    /// A run is over: what it had to write is there, and goes.
    pub(crate) fn empty_files(&self) -> Result<(), String> {
        for path in &self.writes {
            let name = path.file_name().unwrap_or(path.as_os_str()).display();
            let wrong = |error: std::io::Error| format!("its file `{name}`: {error}");
            // Not a new one: a process that has it open goes on with it.
            let file = fs::OpenOptions::new().write(true).open(path).map_err(wrong)?;
            if file.metadata().map_err(wrong)?.len() == 0 {
                return Err(format!("it has written nothing to `{name}`"));
            }
            file.set_len(0).map_err(wrong)?;
        }
        Ok(())
    }
}

impl Present {
    /// Starts it for `cell` on `cores`, and waits until it answers. `label` tells twins apart.
    pub(crate) fn start(
        &self,
        label: &str,
        cell: &Cell,
        cores: &[usize],
        backend: Option<SocketAddr>,
        place: &mut Workplace,
        ground: &Ground<'_>,
    ) -> Result<Running, String> {
        let mut tries = 0;
        loop {
            tries += 1;
            let run = place.directory(&format!("run-{label}"))?;
            let ports = place.ports()?;
            let host = Ipv4Addr::LOCALHOST;
            let placed = (&*place, cell.certificate);
            let values = self.values(&run, (host, ports), cores.len(), backend, placed, ground);
            let start = &self.contender.start;
            let writes = if cell.route.is_site() { &start.site_writes } else { &start.writes };
            let writes = writes.iter().map(|name| run.join(name)).collect();
            let launch = self.launch(cell, cores, run, &values, ground.sources)?;
            let mut process = Process::start(&launch)?;
            let ports = if self.has_h2c_port(cell, ground.sources) {
                ports
            } else {
                Ports { h2c: ports.plain, ..ports }
            };
            let port = port_of(cell.protocol, &ports);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            match self.wait_ready(&mut process, cell, address, ground) {
                Ok(()) => return Ok(Running { process, address, writes }),
                Err(error) => {
                    let said = process.last_lines();
                    let taken = said.to_lowercase().contains("in use");
                    if !taken || tries >= STARTS_COUNT {
                        return Err(format!("{error}; it said\n{said}"));
                    }
                }
            }
        }
    }

    /// The same contender, told to write down where its CPU time goes; `None` if it can't.
    pub(crate) fn profiled(&self, cell: &Cell) -> Option<Self> {
        let mut profiled = self.clone();
        let start = &mut profiled.contender.start;
        if start.profile.is_empty() || self.contender.command(cell).is_empty() {
            return None;
        }
        let commands = [
            &mut start.command,
            &mut start.tls_command,
            &mut start.proxy_command,
            &mut start.proxy_tls_command,
            &mut start.site_command,
        ];
        for command in commands.into_iter().filter(|command| !command.is_empty()) {
            command.extend_from_slice(&start.profile);
        }
        Some(profiled)
    }

    /// Returns what starts it for `cell` on `core`, listening on `host` with these ports, in front of `backend`
    /// if it is a proxy; nothing is started.
    pub(crate) fn launch_on(
        &self,
        cell: &Cell,
        core: usize,
        (host, ports): (Ipv4Addr, Ports),
        backend: Option<SocketAddr>,
        place: &Workplace,
        ground: &Ground<'_>,
    ) -> Result<Launch, String> {
        let run = place.directory(&format!("run-{}", self.contender.name))?;
        let placed = (place, cell.certificate);
        let values = self.values(&run, (host, ports), 1, backend, placed, ground);
        self.launch(cell, &[core], run, &values, ground.sources)
    }

    /// Returns whether a cleartext port of its own speaks HTTP/2.
    pub(crate) fn has_h2c_port(&self, cell: &Cell, sources: &Sources) -> bool {
        self.mentions("{h2cport}", sources, cell)
    }

    fn wait_ready(
        &self,
        process: &mut Process,
        cell: &Cell,
        address: SocketAddr,
        ground: &Ground<'_>,
    ) -> Result<(), String> {
        let subject = Subject { contender: &self.contender, cell, address };
        let limit = Duration::from_secs_f64(self.contender.ready.within_s);
        let started = Instant::now();
        let mut wrong = format!("nothing listens on {address}");
        loop {
            ground.interrupt.check()?;
            if let Some(status) = process.ended() {
                return Err(format!("it ended before it was ready ({status})"));
            }
            // Over UDP nothing tells a port that is taken but a response.
            let is_udp = cell.protocol == Protocol::H3;
            if is_udp || TcpStream::connect_timeout(&address, limit).is_ok() {
                match subject.sample(ground.seed) {
                    Ok(()) => return Ok(()),
                    // The full check says so with more evidence than a time that ran out.
                    Err(_) if started.elapsed() > limit / 4 => return Ok(()),
                    Err(Flaw::Wrong(error) | Flaw::Silent(error)) => wrong = error,
                }
            }
            if started.elapsed() > limit {
                return Err(format!("not ready within {} s: {wrong}", limit.as_secs_f64()));
            }
            thread::sleep(READY_INTERVAL);
        }
    }

    /// Returns what the placeholders stand for.
    fn values(
        &self,
        run: &std::path::Path,
        (host, ports): (Ipv4Addr, Ports),
        cores: usize,
        backend: Option<SocketAddr>,
        (place, certificate): (&Workplace, Certificate),
        ground: &Ground<'_>,
    ) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.display().to_string();
        let mut values = BTreeMap::from([
            ("host".to_owned(), host.to_string()),
            ("port".to_owned(), ports.plain.to_string()),
            ("h2cport".to_owned(), ports.h2c.to_string()),
            ("tlsport".to_owned(), ports.tls.to_string()),
            ("cert".to_owned(), path(place.certificate(certificate))),
            ("key".to_owned(), path(place.key(certificate))),
            ("pem".to_owned(), path(place.pem(certificate))),
            ("www".to_owned(), path(place.www())),
            ("run".to_owned(), run.display().to_string()),
            ("out".to_owned(), self.out.clone().map(path).unwrap_or_default()),
            ("workers".to_owned(), cores.to_string()),
            ("bolide".to_owned(), path(ground.program.clone())),
            ("binary".to_owned(), self.binary.clone().unwrap_or_default()),
        ]);
        let backend = backend.map(|address| {
            (address.to_string(), address.ip().to_string(), address.port().to_string())
        });
        let (whole, host, port) = backend.unwrap_or_default();
        values.insert("backend".to_owned(), whole);
        values.insert("backend_host".to_owned(), host);
        values.insert("backend_port".to_owned(), port);
        if cores == 1 {
            let single = self.contender.start.single.iter();
            values.extend(single.map(|(name, value)| (name.clone(), value.text())));
        }
        values
    }

    fn launch(
        &self,
        cell: &Cell,
        cores: &[usize],
        run: PathBuf,
        values: &BTreeMap<String, String>,
        sources: &Sources,
    ) -> Result<Launch, String> {
        for (file, template) in &self.contender.start.files {
            let text = fill_known(&sources.text(template)?, values);
            let file = run.join(file);
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let mut command = Vec::new();
        for word in self.contender.command(cell) {
            command.push(fill(word, values)?);
        }
        if let Some(program) = command.first_mut()
            && let Some(found) = find_program(program)
        {
            // Found as we find it: also where only administrators look. A relative path is one from
            // here, not from the server's directory.
            *program = fs::canonicalize(&found).unwrap_or(found).display().to_string();
        }
        let mut env = BTreeMap::new();
        for (name, value) in &self.contender.start.env {
            env.insert(name.clone(), fill(value, values)?);
        }
        let log = run.join("log");
        Ok(Launch { command, env, directory: run, log, cores: cores.to_vec() })
    }

    /// Returns whether its command, or one of its templates, has this placeholder.
    fn mentions(&self, placeholder: &str, sources: &Sources, cell: &Cell) -> bool {
        let start = &self.contender.start;
        let in_command = self.contender.command(cell).iter().any(|word| word.contains(placeholder));
        let in_files = || {
            start
                .files
                .values()
                .any(|template| sources.text(template).is_ok_and(|text| text.contains(placeholder)))
        };
        in_command || in_files()
    }
}

/// Fills the placeholders of one word; one that is unknown is an error with the nearest.
fn fill(word: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let name = after.split_once('}').filter(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_' || c.is_ascii_digit())
        });
        match name {
            None => {
                filled.push('{');
                rest = after;
            }
            Some((name, after)) => {
                let Some(value) = values.get(name) else {
                    let known: Vec<&str> = values.keys().map(String::as_str).collect();
                    let hint = suggestion(name, &known);
                    return Err(format!("no placeholder `{{{name}}}` in `{word}`; {hint}"));
                };
                filled.push_str(value);
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Fills the known placeholders of a file; other braces are the file's own.
fn fill_known(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_mistyped_ones_are_named() {
        let values =
            BTreeMap::from([("port".to_owned(), "80".to_owned()), ("run".into(), "/r".into())]);
        assert_eq!(fill("a{port}b{run}", &values).unwrap(), "a80b/r");
        assert_eq!(fill("{ \"x\": {} } {Y}", &values).unwrap(), "{ \"x\": {} } {Y}");
        let error = fill("-p {prot}", &values).unwrap_err();
        assert!(error.contains("did you mean `port`?"), "{error}");
        assert_eq!(
            fill_known("server { listen {port}; {other} }", &values),
            "server { listen 80; {other} }"
        );
    }
}
