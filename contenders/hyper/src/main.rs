//! hyper 1 as a contender: one thread per worker, each with its own single-threaded tokio runtime
//! and its own `SO_REUSEPORT` listeners, which is the fastest way to run it.
//!
//!     hyper-contender [--host ADDRESS] --port PORT --tls-port PORT --cert FILE --key FILE [--workers N]
//!
//! The cleartext port speaks HTTP/1.1 and HTTP/2 by prior knowledge, the other one the two by ALPN.
//! Its allocator is mimalloc and its TLS rustls on aws-lc-rs, as Bolide's are.

mod body;
mod routes;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use contender_program::{Clear, Secure, acceptor, raise_file_limit};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command line.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    clear: Clear,
    #[command(flatten)]
    secure: Secure,
}

type Http = auto::Builder<TokioExecutor>;

/// The settings of connections. Those of HTTP/2 are what all contenders get that can be told:
/// 256 streams, 1 MiB for a stream and 16 MiB for a connection.
fn http() -> Http {
    let mut http = Http::new(TokioExecutor::new());
    // A server on a network has a timeout. It is long, for idle connections are measured too.
    http.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_mins(10));
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(16 << 20);
    http
}

async fn serve<I>(http: Http, io: I)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // An error is a peer that went away or broke the protocol: the connection is over either way.
    let _ = http.serve_connection(TokioIo::new(io), service_fn(routes::answer)).await;
}

async fn serve_tls(acceptor: TlsAcceptor, http: Http, socket: TcpStream) {
    if let Ok(stream) = acceptor.accept(socket).await {
        // ALPN has told the version, so there is no preface to look for.
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let http = if is_h2 { http.http2_only() } else { http.http1_only() };
        serve(http, stream).await;
    }
}

async fn accept(listener: TcpListener, start: impl Fn(TcpStream)) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => start(socket),
            // No descriptor is left: connections have to end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

fn listen(host: Ipv4Addr, port: u16) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((host, port)).into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

/// One worker: until an error ends it.
fn work(
    clear: std::net::TcpListener,
    secure: std::net::TcpListener,
    acceptor: TlsAcceptor,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (clear, secure) = (TcpListener::from_std(clear)?, TcpListener::from_std(secure)?);
        let http = http();
        let http_of_tls = http.clone();
        tokio::spawn(accept(secure, move |socket| {
            tokio::spawn(serve_tls(acceptor.clone(), http_of_tls.clone(), socket));
        }));
        accept(clear, move |socket| drop(tokio::spawn(serve(http.clone(), socket)))).await;
        Ok(())
    })
}

fn run() -> Result<(), Box<dyn Error>> {
    let Options { clear: Clear { host, port, workers }, secure } = Options::parse();
    raise_file_limit()?;
    let acceptor = acceptor(&secure.cert, &secure.key)?;
    let mut threads = Vec::new();
    for _ in 0..workers {
        let listen =
            |port| listen(host, port).map_err(|error| format!("cannot listen on {port}: {error}"));
        let (clear, secure) = (listen(port)?, listen(secure.tls_port)?);
        let acceptor = acceptor.clone();
        threads.push(std::thread::spawn(move || work(clear, secure, acceptor)));
    }
    for thread in threads {
        thread.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyper-contender: {error}");
            ExitCode::FAILURE
        }
    }
}
