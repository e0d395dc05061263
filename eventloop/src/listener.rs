//! Where connections come from: addresses, paths, and sockets handed in.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Error;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Something to accept connections from.
#[derive(Debug)]
pub enum Listener {
    /// An address to bind; port 0 takes any that is free.
    Tcp(SocketAddr),
    /// A path to bind. A socket file that nobody listens on is replaced, and the file is removed at
    /// the end.
    Unix(PathBuf),
    /// A TCP socket that listens already.
    OpenTcp(TcpListener),
    /// A Unix socket that listens already.
    OpenUnix(UnixListener),
}

impl From<SocketAddr> for Listener {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::OpenTcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::OpenUnix(listener)
    }
}

/// A listener that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    /// One socket per worker, or a single one that has to be shared.
    pub(crate) sockets: Vec<OwnedFd>,
    pub(crate) address: Option<SocketAddr>,
    /// A file to remove at the end.
    pub(crate) path: Option<PathBuf>,
}

impl Listener {
    /// Opens the listener for `workers` workers.
    pub(crate) fn open(self, workers: usize) -> Result<Opened, Error> {
        match self {
            Self::Tcp(address) => open_tcp(address, workers)
                .map_err(|source| Error::Listen { address: address.to_string(), source }),
            Self::Unix(path) => open_unix(&path)
                .map_err(|source| Error::Listen { address: path.display().to_string(), source }),
            Self::OpenTcp(listener) => {
                let prepare = || {
                    listener.set_nonblocking(true)?;
                    socket2::SockRef::from(&listener).set_tcp_nodelay(true)?;
                    listener.local_addr()
                };
                let address = prepare().map_err(|source| Error::Listen {
                    address: "a socket that was handed in".to_owned(),
                    source,
                })?;
                Ok(Opened { sockets: vec![listener.into()], address: Some(address), path: None })
            }
            Self::OpenUnix(listener) => {
                listener.set_nonblocking(true).map_err(|source| Error::Listen {
                    address: "a socket that was handed in".to_owned(),
                    source,
                })?;
                Ok(Opened { sockets: vec![listener.into()], address: None, path: None })
            }
        }
    }
}

fn open_tcp(address: SocketAddr, workers: usize) -> io::Result<Opened> {
    // Bound without sharing first: sharing would let another process of the same user listen on the
    // same port unnoticed.
    let first = bind(address, false)?;
    if workers == 1 {
        first.listen(BACKLOG)?;
        let address = local(&first)?;
        return Ok(Opened { sockets: vec![first.into()], address: Some(address), path: None });
    }
    let address = local(&first)?;
    drop(first);
    if cfg!(not(target_os = "linux")) {
        // Other systems share the port without balancing the load.
        let single = bind(address, false)?;
        single.listen(BACKLOG)?;
        return Ok(Opened { sockets: vec![single.into()], address: Some(address), path: None });
    }
    let sockets: Vec<Socket> =
        (0..workers).map(|_| bind(address, true)).collect::<io::Result<_>>()?;
    for socket in &sockets {
        socket.listen(BACKLOG)?;
    }
    let sockets = sockets.into_iter().map(OwnedFd::from).collect();
    Ok(Opened { sockets, address: Some(address), path: None })
}

fn bind(address: SocketAddr, share: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if share {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

fn local(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn open_unix(path: &Path) -> io::Result<Opened> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        result => result?,
    };
    listener.set_nonblocking(true)?;
    Ok(Opened { sockets: vec![listener.into()], address: None, path: Some(path.to_owned()) })
}
