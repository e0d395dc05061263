//! axum 0.8 as a contender, run as its documentation runs it: `axum::serve` with its defaults and
//! `TCP_NODELAY`, on tokio's runtime. One worker is the single-threaded runtime, more are the
//! multi-threaded one, whose tasks move between threads.
//!
//!     axum-contender [--host ADDRESS] --port PORT --tls-port PORT --cert FILE --key FILE --www DIRECTORY [--workers N]
//!
//! The cleartext port speaks HTTP/1.1 and HTTP/2 by prior knowledge, the other one the two by ALPN.
//! Its allocator is mimalloc and its TLS rustls on aws-lc-rs, as Bolide's are.

mod app;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use clap::Parser;
use contender_program::{Options, acceptor, raise_file_limit};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The longest queue of connections not accepted yet: tokio's own `bind` takes 1024.
const BACKLOG: i32 = 4096;

fn listen(host: Ipv4Addr, port: u16) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((host, port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// axum serves no TLS itself; this is what its examples do for it.
async fn serve_tls(listener: TcpListener, acceptor: TlsAcceptor, app: Router) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                tokio::spawn(connection(socket, acceptor.clone(), app.clone()));
            }
            // No descriptor is left: connections have to end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(socket: TcpStream, acceptor: TlsAcceptor, app: Router) {
    // An error is a peer that went away or broke the protocol: the connection is over either way.
    let _ = socket.set_nodelay(true);
    if let Ok(stream) = acceptor.accept(socket).await {
        let _ = auto::Builder::new(TokioExecutor::new())
            .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(app))
            .await;
    }
}

fn runtime(workers: usize) -> io::Result<Runtime> {
    match workers {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    raise_file_limit()?;
    let acceptor = acceptor(&options.secure.cert, &options.secure.key)?;
    let host = options.clear.host;
    let listen =
        |port| listen(host, port).map_err(|error| format!("cannot listen on {port}: {error}"));
    let (clear, secure) = (listen(options.clear.port)?, listen(options.secure.tls_port)?);
    let app = app::router(&options.www);
    runtime(options.clear.workers)?.block_on(async {
        let secure = TcpListener::from_std(secure)?;
        tokio::spawn(serve_tls(secure, acceptor, app.clone()));
        let clear = TcpListener::from_std(clear)?.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        axum::serve(clear, app).await?;
        Ok(())
    })
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("axum-contender: {error}");
            ExitCode::FAILURE
        }
    }
}
