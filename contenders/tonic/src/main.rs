//! tonic 0.14 as a contender, run as its documentation runs it: `Server::builder` with its defaults
//! (`TCP_NODELAY` is one of them), on tokio's runtime. One worker is the single-threaded runtime,
//! more are the multi-threaded one, whose tasks move between threads.
//!
//!     tonic-contender [--host ADDRESS] --port PORT [--workers N]
//!
//! The port speaks HTTP/2 by prior knowledge. Its allocator is mimalloc, as Bolide's is.

mod app;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use contender_program::{Clear, raise_file_limit};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command line.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    clear: Clear,
}

fn runtime(workers: usize) -> io::Result<Runtime> {
    match workers {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Options { clear } = Options::parse();
    raise_file_limit()?;
    let address = SocketAddr::from((clear.host, clear.port));
    let server = Server::builder().add_routes(app::routes());
    runtime(clear.workers)?.block_on(server.serve(address))?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tonic-contender: {error}");
            ExitCode::FAILURE
        }
    }
}
