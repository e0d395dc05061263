//! What the command line says.

use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The command line, read.
pub(crate) struct Options {
    /// The cleartext port.
    pub(crate) port: u16,
    /// The port with TLS.
    pub(crate) tls_port: u16,
    /// The certificate chain, in PEM.
    pub(crate) cert: PathBuf,
    /// Its private key, in PEM.
    pub(crate) key: PathBuf,
    /// The folder of the static files.
    pub(crate) www: PathBuf,
    /// How many threads serve. Default: 1.
    pub(crate) workers: usize,
}

impl Options {
    /// Reads the arguments of the process. An error is a sentence for the user.
    pub(crate) fn read() -> Result<Self, String> {
        let (mut port, mut tls_port, mut workers) = (None, None, 1);
        let (mut cert, mut key, mut www) = (None, None, None);
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse().map_err(|_| format!("{name}: {value} is no port"));
            match name.as_str() {
                "--port" => port = Some(number()?),
                "--tls-port" => tls_port = Some(number()?),
                "--cert" => cert = Some(value.into()),
                "--key" => key = Some(value.into()),
                "--www" => www = Some(value.into()),
                "--workers" => {
                    workers = value.parse().map_err(|_| format!("{name}: {value} is no number"))?;
                }
                _ => return Err(format!("unknown option {name}")),
            }
        }
        Ok(Self {
            port: port.ok_or("--port is missing")?,
            tls_port: tls_port.ok_or("--tls-port is missing")?,
            cert: cert.ok_or("--cert is missing")?,
            key: key.ok_or("--key is missing")?,
            www: www.ok_or("--www is missing")?,
            workers: workers.max(1),
        })
    }
}

/// Ten thousand connections need as many descriptors.
pub(crate) fn raise_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
