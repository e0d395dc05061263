//! The application of the contender `axum`, on Bolide: the same source files, another last line.
//!
//!     axum-on-bolide [--host ADDRESS] --port PORT --tls-port PORT --cert FILE --key FILE --www DIRECTORY [--workers N]
//!
//! The cleartext port speaks HTTP/1.1 and HTTP/2 by prior knowledge, the other one the two by ALPN.

#[path = "../../axum/src/app.rs"]
mod app;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use bolide::server::Listener;
use bolide::tls::{Identity, Tls};
use clap::Parser;
use contender_program::{Options, Secure, raise_file_limit};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn run() -> Result<(), Box<dyn Error>> {
    let Options { clear, secure: Secure { tls_port, cert, key }, www } = Options::parse();
    raise_file_limit()?;
    let identity = Identity::from_pem(&fs::read(&cert)?, &fs::read(&key)?)?;
    let tls = Tls::new(&identity)?;
    let local = |port| SocketAddr::from((clear.host, port));
    let secure = Listener::Tcp(local(tls_port));
    bolide::tower::serve(local(clear.port), app::router(&www))
        .server(|server| server.listener(secure, Some(&tls)))
        .workers(clear.workers)
        .run()?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The standard error may be closed.
            drop(writeln!(io::stderr(), "axum-on-bolide: {error}"));
            ExitCode::FAILURE
        }
    }
}
