//! Listeners from which connections may be accepted.

use std::io;
use std::net::SocketAddr;

use bolide_server::Listener;

/// Something that [`serve`](crate::serve) accepts connections from.
///
/// A listener that is open already is shared by all workers: one thread accepts and deals out. An
/// address is bound by the server, with a listener for each worker where the system has such.
pub trait IntoListener {
    /// The engine's listener.
    ///
    /// # Errors
    ///
    /// When the listener can't be taken from its runtime.
    fn into_listener(self) -> io::Result<Listener>;
}

impl IntoListener for Listener {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(self)
    }
}

impl IntoListener for SocketAddr {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(Listener::Tcp(self))
    }
}

impl IntoListener for std::net::TcpListener {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(self.into())
    }
}

impl IntoListener for std::os::unix::net::UnixListener {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(self.into())
    }
}

impl IntoListener for tokio::net::TcpListener {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(self.into_std()?.into())
    }
}

impl IntoListener for tokio::net::UnixListener {
    fn into_listener(self) -> io::Result<Listener> {
        Ok(self.into_std()?.into())
    }
}
