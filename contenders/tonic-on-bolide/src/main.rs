//! The application of the contender `tonic`, on Bolide: the same source files, another last line.
//!
//!     tonic-on-bolide [--host ADDRESS] --port PORT [--workers N]
//!
//! The port speaks HTTP/2 by prior knowledge.

#[path = "../../tonic/src/app.rs"]
mod app;

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use bolide::tower::GrpcDeadline;
use clap::Parser;
use contender_program::{Clear, raise_file_limit};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command line.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    clear: Clear,
}

fn run() -> Result<(), Box<dyn Error>> {
    let Options { clear } = Options::parse();
    raise_file_limit()?;
    let address = SocketAddr::from((clear.host, clear.port));
    // Deadlines are kept as tonic's own server keeps them.
    let app = GrpcDeadline::new(app::routes().prepare());
    bolide::tower::serve(address, app).workers(clear.workers).run()?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The standard error may be closed.
            drop(writeln!(io::stderr(), "tonic-on-bolide: {error}"));
            ExitCode::FAILURE
        }
    }
}
