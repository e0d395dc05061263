//! Sockets at which connections arrive: bound before any worker runs.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use bolide_buffers::BpfInstruction;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::address::Address;
use crate::kernel::{MioDatagrams, MioListener, enlarge_buffers};
use crate::limits::Limits;

/// Several listeners on one port share its connections evenly.
const PORT_IS_SHARED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Limit of the ports that the system chooses and that are given back, because a socket of datagrams has them.
const PORTS_REFUSED_COUNT: usize = 8;

/// An address that could not be listened on.
#[derive(Debug)]
pub struct BindError {
    /// The address, or the path of a Unix socket.
    pub address: String,
    /// Why.
    pub error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot listen on {}: {}", self.address, self.error)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// How the connections of one address get to the workers.
pub(crate) enum Bound {
    /// A listener for each worker; the kernel spreads the connections.
    EachWorker(Vec<MioListener>),
    /// One listener; a thread of its own deals the connections out, or the only worker accepts them.
    One(MioListener),
    /// Several on one port, fewer than there are workers: the same thread deals theirs out.
    Dealt(Vec<MioListener>),
}

/// A listener and its number.
pub(crate) type Numbered = (usize, MioListener);

/// The addresses to listen on, for a number of workers. Listeners are numbered in the order in which
/// they were added.
pub struct Listeners {
    workers: usize,
    backlog: i32,
    bound: Vec<Bound>,
    /// Sockets of datagrams, one for each worker, and the number of the listener that they belong to.
    datagram_sockets: Vec<(usize, Vec<MioDatagrams>)>,
    /// Chooses among those of one listener; none: the kernel's hash does.
    steering: Vec<BpfInstruction>,
}

/// Work on a listener's datagrams that the system takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Several leave in one call (GSO).
    pub sends_several: bool,
    /// Several come in one call (GRO).
    pub receives_several: bool,
    /// Each comes to the worker that the program of [`Listeners::steer_datagrams`] says; so it is if there is one worker, or
    /// no program.
    pub is_steered: bool,
}

impl Listeners {
    /// None yet, for `workers` workers (at least one).
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            backlog: Limits::default().backlog_count as i32,
            bound: Vec::new(),
            datagram_sockets: Vec::new(),
            steering: Vec::new(),
        }
    }

    /// The same, where a program in the kernel chooses the worker of a datagram by its number, if the system takes such
    /// programs. One that comes to another worker, by whatever way, the service sends to its own
    /// ([`Routed::Elsewhere`](crate::Routed::Elsewhere)).
    #[must_use]
    pub fn steer_datagrams(self, program: Vec<BpfInstruction>) -> Self {
        Self { steering: program, ..self }
    }

    /// How many connections the kernel keeps for each socket that is bound from here on. Default:
    /// [`Limits::backlog_count`].
    #[must_use]
    pub fn backlog(self, count: u32) -> Self {
        Self { backlog: i32::try_from(count).unwrap_or(i32::MAX), ..self }
    }

    /// For how many workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Listens on an IP address; port 0 lets the system choose. An IPv6 address takes no IPv4
    /// connections. Returns the address with its port.
    ///
    /// # Errors
    ///
    /// When the port is in use (by any process, of whatever user), or the address is not of this
    /// machine, or the port is not allowed to this user.
    pub fn bind(&mut self, address: SocketAddr) -> Result<SocketAddr, BindError> {
        let result = if self.workers > 1 && PORT_IS_SHARED {
            self.bind_each(address)
        } else {
            tcp(address, false, self.backlog).and_then(|socket| self.add_one(socket))
        };
        let failed = |error| BindError { address: address.to_string(), error };
        match result.map_err(failed)? {
            Address::Inet(bound) => Ok(bound),
            Address::Unix => Ok(address),
        }
    }

    /// The same, and opens [sockets of datagrams](Self::bind_datagrams) there, as far as possible. If the system is to choose the
    /// port, it is one that is free for both.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind); what is wrong with the sockets of datagrams alone is returned with the address.
    pub fn bind_both(
        &mut self,
        address: SocketAddr,
    ) -> Result<(SocketAddr, Result<Offloads, BindError>), BindError> {
        let mut refused = Vec::new();
        loop {
            let bound = self.bind(address)?;
            let datagrams = self.bind_datagrams(self.bound.len() - 1);
            let is_taken = |failed: &BindError| failed.error.kind() == io::ErrorKind::AddrInUse;
            let may_choose = address.port() == 0 && refused.len() < PORTS_REFUSED_COUNT;
            if !may_choose || !datagrams.as_ref().is_err_and(is_taken) {
                return Ok((bound, datagrams));
            }
            // It has no listener, but a socket of datagrams. As long as it is kept, the system chooses another.
            refused.push(self.bound.pop());
        }
    }

    /// A listener for each worker, on one port.
    fn bind_each(&mut self, address: SocketAddr) -> io::Result<Address> {
        // Sockets that share a port also share it with another process of the same user, who would
        // take a part of the connections: one that does not share finds out.
        drop(bound_tcp(address, false)?);
        let first = MioListener::new(tcp(address, true, self.backlog)?.into())?;
        let local = first.local();
        let port = match local {
            Address::Inet(bound) => bound.port(),
            Address::Unix => address.port(),
        };
        let mut listeners = vec![first];
        for _ in 1..self.workers {
            let socket = tcp(SocketAddr::new(address.ip(), port), true, self.backlog)?;
            listeners.push(MioListener::new(socket.into())?);
        }
        self.bound.push(Bound::EachWorker(listeners));
        Ok(local)
    }

    fn add_one(&mut self, socket: impl Into<OwnedFd>) -> io::Result<Address> {
        let listener = MioListener::new(socket.into())?;
        let local = listener.local();
        self.bound.push(Bound::One(listener));
        Ok(local)
    }

    /// Listens on a Unix socket. A socket file without a listener is replaced.
    ///
    /// # Errors
    ///
    /// When a process listens there, or the path cannot be written.
    pub fn bind_unix(&mut self, path: &Path) -> Result<(), BindError> {
        let failed = |error| BindError { address: path.display().to_string(), error };
        let socket = unix(path, self.backlog).map_err(failed)?;
        self.add_one(socket).map(drop).map_err(failed)
    }

    /// Opens a socket of datagrams for each worker, at the IP address and port of the listener with this number; sessions
    /// are told that number.
    ///
    /// # Errors
    ///
    /// When the port is in use, or not allowed to this user, or the listener is a Unix socket.
    pub fn bind_datagrams(&mut self, listener: usize) -> Result<Offloads, BindError> {
        let address = self.addresses().get(listener).copied();
        let Some(Address::Inet(address)) = address else {
            let error = io::Error::new(io::ErrorKind::Unsupported, "it has no port");
            return Err(BindError { address: format!("listener {listener}"), error });
        };
        let shared = self.workers > 1;
        let open = || {
            if shared {
                // As for a listener: one that does not share the port finds out whether it is in use.
                drop(bound_udp(address, false)?);
            }
            let one = |_| MioDatagrams::new(bound_udp(address, shared)?);
            (0..self.workers).map(one).collect::<io::Result<Vec<_>>>()
        };
        let failed = |error| BindError { address: address.to_string(), error };
        let sockets = open().map_err(failed)?;
        Ok(self.add_datagrams(listener, sockets))
    }

    /// Takes the sockets of datagrams that another process had for the listener with this number. Workers get one or more of
    /// them, or none where they are fewer.
    ///
    /// # Errors
    ///
    /// When one is no bound socket of datagrams.
    pub fn hand_in_datagrams(
        &mut self,
        listener: usize,
        sockets: Vec<OwnedFd>,
    ) -> io::Result<Offloads> {
        let take = |socket: OwnedFd| {
            if SockRef::from(&socket).r#type()? != Type::DGRAM {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no UDP socket"));
            }
            MioDatagrams::new(socket.into())
        };
        let sockets = sockets.into_iter().map(take).collect::<io::Result<Vec<_>>>()?;
        Ok(self.add_datagrams(listener, sockets))
    }

    fn add_datagrams(&mut self, listener: usize, sockets: Vec<MioDatagrams>) -> Offloads {
        let first = sockets.first();
        let (sends_several, receives_several) =
            first.map_or((false, false), MioDatagrams::offloads);
        let needs_none = self.steering.is_empty() || sockets.len() < 2;
        let is_steered = needs_none || first.is_some_and(|first| first.steer(&self.steering));
        self.datagram_sockets.push((listener, sockets));
        Offloads { sends_several, receives_several, is_steered }
    }

    /// Further descriptors of the sockets of datagrams of each listener, in the order of the listeners.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn duplicate_datagrams(&self) -> io::Result<Vec<Vec<OwnedFd>>> {
        let mut duplicates: Vec<Vec<OwnedFd>> = self.bound.iter().map(|_| Vec::new()).collect();
        for (listener, sockets) in &self.datagram_sockets {
            for socket in sockets {
                duplicates[*listener].push(socket.duplicate()?);
            }
        }
        Ok(duplicates)
    }

    /// The sockets of datagrams of each worker, with the numbers of their listeners.
    pub(crate) fn take_datagrams(&mut self) -> Vec<Vec<(usize, MioDatagrams)>> {
        let mut own: Vec<Vec<_>> = (0..self.workers).map(|_| Vec::new()).collect();
        for (listener, sockets) in self.datagram_sockets.drain(..) {
            for (place, socket) in sockets.into_iter().enumerate() {
                own[place % self.workers].push((listener, socket));
            }
        }
        own
    }

    /// Takes a listener that is open already: std's, tokio's (as std's), a Unix one, one inherited.
    ///
    /// # Errors
    ///
    /// When it is no listening socket.
    pub fn hand_in(&mut self, listener: impl Into<OwnedFd>) -> io::Result<Address> {
        let listener = listener.into();
        check_listening(&listener)?;
        self.add_one(listener)
    }

    /// Takes the sockets of one listener, such as a process had that this one succeeds: one, or several that
    /// share a port. Each worker gets one or more of those; where there are fewer, more are bound to the port,
    /// or, if that may not be, the connections of all are dealt out.
    ///
    /// # Errors
    ///
    /// When there is none, or one is no listening socket.
    pub fn hand_in_all(&mut self, sockets: Vec<OwnedFd>) -> io::Result<Address> {
        let mut listeners = Vec::new();
        for socket in sockets {
            check_listening(&socket)?;
            listeners.push(MioListener::new(socket)?);
        }
        let Some(first) = listeners.first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no socket"));
        };
        let local = first.local();
        if listeners.len() == 1 {
            self.bound.extend(listeners.pop().map(Bound::One));
            return Ok(local);
        }
        let more = self.workers.saturating_sub(listeners.len());
        self.bound.push(match (local, more) {
            (_, 0) => Bound::EachWorker(listeners),
            (Address::Inet(address), _) => match more_of(address, more, self.backlog) {
                Ok(others) => Bound::EachWorker(listeners.into_iter().chain(others).collect()),
                Err(_) => Bound::Dealt(listeners),
            },
            (Address::Unix, _) => Bound::Dealt(listeners),
        });
        Ok(local)
    }

    /// Further descriptors of the sockets of each listener, in order. As long as they are open, so are the
    /// listeners: connections arrive, and wait.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn duplicates(&self) -> io::Result<Vec<Vec<OwnedFd>>> {
        let duplicate = |bound: &Bound| match bound {
            Bound::EachWorker(listeners) | Bound::Dealt(listeners) => {
                listeners.iter().map(MioListener::duplicate).collect()
            }
            Bound::One(listener) => Ok(vec![listener.duplicate()?]),
        };
        self.bound.iter().map(duplicate).collect()
    }

    /// Returns where each listener listens.
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        self.bound
            .iter()
            .map(|bound| match bound {
                Bound::EachWorker(listeners) | Bound::Dealt(listeners) => listeners[0].local(),
                Bound::One(listener) => listener.local(),
            })
            .collect()
    }

    /// The listeners of each worker, and those of the acceptor, each with its number.
    pub(crate) fn deal(self) -> (Vec<Vec<Numbered>>, Vec<Numbered>) {
        let mut own: Vec<Vec<_>> = (0..self.workers).map(|_| Vec::new()).collect();
        let mut dealt = Vec::new();
        for (index, bound) in self.bound.into_iter().enumerate() {
            match bound {
                Bound::EachWorker(listeners) => {
                    // There may be more than workers, where an earlier process had more.
                    for (place, listener) in listeners.into_iter().enumerate() {
                        own[place % self.workers].push((index, listener));
                    }
                }
                Bound::One(listener) if self.workers == 1 => own[0].push((index, listener)),
                Bound::One(listener) => dealt.push((index, listener)),
                Bound::Dealt(listeners) => {
                    dealt.extend(listeners.into_iter().map(|listener| (index, listener)));
                }
            }
        }
        (own, dealt)
    }
}

/// A TCP socket at `address`, which does not listen yet.
fn bound_tcp(address: SocketAddr, share_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    if share_port {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A UDP socket at `address`.
fn bound_udp(address: SocketAddr, share_port: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if share_port {
        socket.set_reuse_port(true)?;
    }
    enlarge_buffers(&SockRef::from(&socket));
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn tcp(address: SocketAddr, share_port: bool, backlog: i32) -> io::Result<Socket> {
    let socket = bound_tcp(address, share_port)?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// More listeners, in addition to those at `address`, which share its port.
fn more_of(address: SocketAddr, count: usize, backlog: i32) -> io::Result<Vec<MioListener>> {
    (0..count).map(|_| MioListener::new(tcp(address, true, backlog)?.into())).collect()
}

/// Checks whether connections of a stream arrive at `socket`.
fn check_listening(socket: &OwnedFd) -> io::Result<()> {
    let mistake = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let socket = SockRef::from(socket);
    if socket.r#type()? != Type::STREAM {
        return mistake("it is not a stream socket");
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !socket.is_listener()? {
        return mistake("it doesn't listen");
    }
    Ok(())
}

fn unix(path: &Path, backlog: i32) -> io::Result<Socket> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
            std::fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        result => result?,
    }
    socket.listen(backlog)?;
    Ok(socket)
}

/// Returns whether `path` is a socket without a listener.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn any() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    /// How many sockets each worker has, and the acceptor.
    fn dealt(workers: usize, sockets: Vec<OwnedFd>) -> (Vec<usize>, usize) {
        let mut listeners = Listeners::new(workers);
        listeners.hand_in_all(sockets).unwrap();
        let (own, dealt) = listeners.deal();
        (own.iter().map(Vec::len).collect(), dealt.len())
    }

    #[test]
    fn sockets_of_another_process_find_their_workers() {
        let mut first = Listeners::new(2);
        let address = first.bind(any()).unwrap();
        let sockets = || first.duplicates().unwrap().remove(0);
        assert_eq!(dealt(2, sockets()), (vec![1, 1], 0));
        assert_eq!(dealt(1, sockets()), (vec![2], 0), "none is left alone");
        assert_eq!(dealt(3, sockets()), (vec![1, 1, 1], 0), "one more is bound");
        assert_eq!(dealt(2, vec![sockets().remove(0)]), (vec![0, 0], 1), "a single one is dealt");
        drop(first.deal());
        // A process that another test starts has the sockets until it runs its program.
        let give_up = Instant::now() + Duration::from_secs(10);
        while let Err(error) = bound_tcp(address, false) {
            assert!(Instant::now() < give_up, "the port is not free again: {error}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_port_in_use_is_found_although_it_could_be_shared() {
        let mut first = Listeners::new(2);
        let address = first.bind(any()).unwrap();
        let error = Listeners::new(2).bind(address).unwrap_err();
        assert_eq!(error.error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn what_does_not_listen_is_not_taken() {
        let mut listeners = Listeners::new(1);
        let bound = bound_tcp(any(), false).unwrap();
        let error = listeners.hand_in(bound).unwrap_err();
        assert!(error.to_string().contains("doesn't listen"), "{error}");
        let error = listeners.hand_in_datagrams(0, vec![bound_tcp(any(), false).unwrap().into()]);
        assert!(error.unwrap_err().to_string().contains("no UDP socket"));
        let datagrams = UdpSocket::bind(any()).unwrap();
        let error = listeners.hand_in(datagrams).unwrap_err();
        assert!(error.to_string().contains("not a stream socket"), "{error}");
        assert!(listeners.hand_in_all(Vec::new()).is_err());
    }
}
