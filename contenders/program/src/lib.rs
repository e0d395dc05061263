//! Common parts of contenders in Rust: their command line, their limit of open files, and TLS.

mod tls;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use tls::acceptor;

/// The listener without TLS.
#[derive(Debug, Args)]
pub struct Clear {
    /// The address to listen on.
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST)]
    pub host: Ipv4Addr,
    /// The port without TLS.
    #[arg(long)]
    pub port: u16,
    /// How many threads serve.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
}

/// The listener with TLS.
#[derive(Debug, Args)]
pub struct Secure {
    /// The port with TLS.
    #[arg(long)]
    pub tls_port: u16,
    /// The certificate chain, in PEM.
    #[arg(long)]
    pub cert: PathBuf,
    /// Its private key, in PEM.
    #[arg(long)]
    pub key: PathBuf,
}

/// The command line of a server of files.
#[derive(Debug, clap::Parser)]
pub struct Options {
    /// The listener without TLS.
    #[command(flatten)]
    pub clear: Clear,
    /// The listener with TLS.
    #[command(flatten)]
    pub secure: Secure,
    /// The directory of the static files.
    #[arg(long)]
    pub www: PathBuf,
}

/// Raises the limit of open files as far as it goes: ten thousand connections need as many descriptors.
///
/// # Errors
///
/// The system's.
pub fn raise_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
