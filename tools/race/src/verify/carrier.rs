//! Carrier of the bytes of one connection: a TCP stream, or datagrams of a UDP socket.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramBatch, DatagramSink, Flush, SendQueue};
use bolide_connection::{
    Alpn, Arrival, ClientTls, Connection, Limits, Membership, QuicEndpoint, Trust, WallClock,
};
use bolide_eventloop::random_seed;
use bolide_semantics::Role;
use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::catalogue::Protocol;

/// The name that certificates of a race are for.
const SERVER_NAME: &str = "localhost";

/// Datagrams that are received before the connection is called, in number.
const DATAGRAMS_COUNT: usize = 64;

/// Carrier of the connection's bytes.
pub(super) enum Carrier {
    /// TCP, with or without TLS.
    Stream(TcpStream),
    /// QUIC.
    Datagrams(Box<Datagrams>),
}

/// A UDP socket with one connection.
pub(super) struct Datagrams {
    socket: ConnectedSocket,
    endpoint: QuicEndpoint<()>,
    /// When the connection must be called even if nothing comes.
    deadline: Option<Instant>,
}

/// A UDP socket that sends to one address and receives from it.
struct ConnectedSocket(UdpSocket, SocketAddr);

impl DatagramSink for ConnectedSocket {
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        let bytes = &buffer[..batch.bytes];
        for datagram in bytes.chunks(batch.segment_bytes.unwrap_or(bytes.len()).max(1)) {
            // What the socket does not take is lost, and QUIC sends it again.
            let _ = self.0.send(datagram);
        }
        Ok(())
    }
}

impl Carrier {
    /// Connects, or begins to: over QUIC nothing has been sent yet.
    pub(super) fn open(
        address: SocketAddr,
        protocol: Protocol,
        limits: &Limits,
        timeout: Duration,
    ) -> Result<(Self, Connection), String> {
        if protocol == Protocol::H3 {
            return Self::over_quic(address, limits);
        }
        let stream = TcpStream::connect_timeout(&address, timeout)
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(stream)
            })
            .map_err(|error| format!("no connection to {address}: {error}"))?;
        let now = Instant::now();
        let connection = match protocol {
            Protocol::H1 => Connection::http1(limits, now),
            Protocol::H2c => Connection::with_prior_knowledge(limits, now),
            Protocol::H1s => over_tls(Alpn::Http11, now)?,
            Protocol::H2 | Protocol::H3 => over_tls(Alpn::H2, now)?,
        };
        Ok((Self::Stream(stream), connection))
    }

    fn over_quic(address: SocketAddr, limits: &Limits) -> Result<(Self, Connection), String> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
            .and_then(|socket| {
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            })
            .map_err(|error| format!("no socket for {address}: {error}"))?;
        let now = Instant::now();
        let unusable = |error: &dyn std::fmt::Display| error.to_string();
        let tls = ClientTls::new(&Trust::Any, &[], WallClock(SystemTime::now))
            .map_err(|error| unusable(&error))?;
        let mut endpoint = QuicEndpoint::new(
            None,
            WallClock(SystemTime::now),
            random_seed(),
            (0, Membership::default()),
        )
        .map_err(|error| unusable(&error))?;
        let connection = endpoint
            .connect((&tls, address, SERVER_NAME), (), limits, now)
            .map_err(|error| unusable(&error))?;
        let socket = ConnectedSocket(socket, address);
        let datagrams = Datagrams { socket, endpoint, deadline: None };
        Ok((Self::Datagrams(Box::new(datagrams)), connection))
    }

    /// Writes what the connection has to send.
    pub(super) fn flush(
        &mut self,
        connection: &mut Connection,
        output: &mut SendQueue,
    ) -> Result<Flush, String> {
        match self {
            Self::Stream(stream) => {
                connection.flush(output, stream).map_err(|error| format!("writing failed: {error}"))
            }
            Self::Datagrams(datagrams) => Ok(datagrams.flush(connection)),
        }
    }

    /// Waits until something can be read, or (when blocked) written, or the deadline, and takes what came: bytes into
    /// `block`, datagrams into the connection. `Ok(None)`: the stream has ended.
    pub(super) fn receive(
        &mut self,
        connection: &mut Connection,
        block: &mut [u8],
        flushed: Flush,
        deadline: Instant,
    ) -> Result<Option<usize>, String> {
        match self {
            Self::Stream(stream) => {
                let mut flags = PollFlags::IN;
                if flushed == Flush::Blocked {
                    flags |= PollFlags::OUT;
                }
                wait(stream, flags, deadline);
                match stream.read(block) {
                    Ok(0) => Ok(None),
                    Ok(count) => Ok(Some(count)),
                    Err(error) if is_temporary(&error) => Ok(Some(0)),
                    Err(error) => Err(format!("reading failed: {error}")),
                }
            }
            Self::Datagrams(datagrams) => {
                datagrams.receive(connection, block, deadline).map(|()| Some(0))
            }
        }
    }

    /// Acknowledges what has come meanwhile over QUIC; over TCP the kernel does that.
    pub(super) fn acknowledge(
        &mut self,
        connection: &mut Connection,
        block: &mut [u8],
    ) -> Result<(), String> {
        if let Self::Datagrams(datagrams) = self {
            datagrams.receive(connection, block, Instant::now())?;
            datagrams.flush(connection);
        }
        Ok(())
    }

    /// Tells the server of a connection over QUIC that it is over: nothing else would.
    pub(super) fn close(&mut self, connection: &mut Connection) {
        if let Self::Datagrams(datagrams) = self {
            connection.end_datagrams();
            datagrams.flush(connection);
        }
    }
}

impl Datagrams {
    fn flush(&mut self, connection: &mut Connection) -> Flush {
        let flushed = connection.flush_datagrams(&mut self.endpoint, &mut self.socket);
        self.deadline = flushed.deadline;
        flushed.flush
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        block: &mut [u8],
        deadline: Instant,
    ) -> Result<(), String> {
        let due = self.deadline.map_or(deadline, |own| own.min(deadline));
        wait(&self.socket.0, PollFlags::IN, due);
        for _ in 0..DATAGRAMS_COUNT {
            let length = match self.socket.0.recv(block) {
                Ok(length) => length,
                Err(error) if is_temporary(&error) => break,
                Err(error) => return Err(format!("no QUIC connection: {error}")),
            };
            let bytes = BytesMut::from(&block[..length]);
            let datagram = Datagram { from: self.socket.1, to: None, ecn: 0, bytes };
            let now = Instant::now();
            if let Arrival::New(new) = self.endpoint.receive(datagram, false, now, &mut self.socket)
            {
                self.endpoint.forget(*new);
            }
        }
        connection.receive_datagrams(&mut self.endpoint, Instant::now());
        Ok(())
    }
}

/// Waits until `socket` is ready, or the deadline. An interrupted wait is one that was short.
fn wait(socket: &impl AsFd, flags: PollFlags, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    let left =
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
    let _ = poll(&mut [PollFd::new(socket, flags)], Some(&left));
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn over_tls(alpn: Alpn, now: Instant) -> Result<Connection, String> {
    let clock = WallClock(SystemTime::now);
    ClientTls::new(&Trust::Any, &[alpn], clock)
        .and_then(|tls| tls.connect(SERVER_NAME))
        .map(|layer| Connection::new(Role::Client, Some(layer), now))
        .map_err(|error| error.to_string())
}
