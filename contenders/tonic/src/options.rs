//! What the command line says.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The command line, read.
pub(crate) struct Options {
    /// The port.
    pub(crate) port: u16,
    /// How many threads serve. Default: 1.
    pub(crate) workers: usize,
}

impl Options {
    /// Reads the arguments of the process. An error is a sentence for the user.
    pub(crate) fn read() -> Result<Self, String> {
        let (mut port, mut workers) = (None, 1);
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let wrong = |what: &str| format!("{name}: {value} is no {what}");
            match name.as_str() {
                "--port" => port = Some(value.parse().map_err(|_| wrong("port"))?),
                "--workers" => workers = value.parse().map_err(|_| wrong("number"))?,
                _ => return Err(format!("unknown option {name}")),
            }
        }
        Ok(Self { port: port.ok_or("--port is missing")?, workers: workers.max(1) })
    }
}

/// Ten thousand connections need as many descriptors.
pub(crate) fn raise_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
