//! UDP sockets by quinn-udp: several datagrams in one call where the system can (GRO, GSO, `recvmmsg`), one by one elsewhere.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use bolide_buffers::{BpfInstruction, Datagram, DatagramBatch};
use bytes::BytesMut;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::SockRef;

use super::steering;

/// The largest number of bytes that the kernel delivers as one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Size that the kernel is asked to keep of the datagrams of one socket, each way, in bytes: those of one long turn.
const BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Pieces in one call, in number.
const PIECES_COUNT: usize = 4;

/// A UDP socket, in non-blocking mode.
#[derive(Debug)]
pub struct MioDatagrams {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    is_registered: bool,
}

impl MioDatagrams {
    /// Takes a bound socket, and asks the system for what it can do with it.
    ///
    /// # Errors
    ///
    /// When its address can't be read, or its mode not be set.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        without_timestamps(&socket);
        let local = socket.local_addr()?;
        Ok(Self { socket, state, local, is_registered: false })
    }

    /// A socket for what goes to one address and comes from there. Where the system can, it learns that there is no peer
    /// (ICMP).
    pub(super) fn to(address: SocketAddr) -> io::Result<Self> {
        let any = match address {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0))?;
        enlarge_buffers(&SockRef::from(&socket));
        // Elsewhere, a datagram that names its destination can't be sent by a socket that is connected.
        if cfg!(any(target_os = "linux", target_os = "android")) {
            socket.connect(address)?;
        }
        Self::new(socket)
    }

    /// Returns where it is bound.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether several datagrams leave in one call (GSO), and come so (GRO).
    #[must_use]
    pub fn offloads(&self) -> (bool, bool) {
        (self.state.max_gso_segments() > 1, self.state.gro_segments() > 1)
    }

    /// Has a program choose among the sockets that share its port; whether the system takes it.
    pub(crate) fn steer(&self, program: &[BpfInstruction]) -> bool {
        steering::steer(&self.socket, program).is_ok()
    }

    pub(super) fn watch(
        &mut self,
        registry: &Registry,
        key: u64,
        writable: bool,
    ) -> io::Result<()> {
        let descriptor = self.socket.as_raw_fd();
        let (mut source, token) = (SourceFd(&descriptor), Token(key as usize));
        // A socket of datagrams has room again after each one that has left, which the loop need not hear.
        let interest =
            if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        if std::mem::replace(&mut self.is_registered, true) {
            registry.reregister(&mut source, token, interest)
        } else {
            registry.register(&mut source, token, interest)
        }
    }

    pub(super) fn ignore(&mut self, registry: &Registry) {
        if std::mem::take(&mut self.is_registered) {
            // One that is watched for nothing costs a look.
            let _ = registry.deregister(&mut SourceFd(&self.socket.as_raw_fd()));
        }
    }

    /// A further descriptor of the same socket.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone().map(OwnedFd::from)
    }

    /// Receives once, into `block`, which is made when it is needed first. Whether there may be more.
    pub(super) fn receive(
        &mut self,
        block: &mut Vec<u8>,
        received: &mut Vec<Datagram>,
    ) -> io::Result<bool> {
        block.resize(PIECES_COUNT * PIECE_BYTES, 0);
        let mut metas = [RecvMeta::default(); PIECES_COUNT];
        let mut pieces = block.chunks_mut(PIECE_BYTES);
        let mut slices: [IoSliceMut<'_>; PIECES_COUNT] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let count = self.state.recv((&self.socket).into(), &mut slices, &mut metas)?;
        for (meta, slice) in metas.iter().zip(&slices).take(count) {
            // Each has memory of its own: a piece of a stream that is kept must not keep the others.
            for bytes in slice[..meta.len].chunks(meta.stride.max(1)) {
                received.push(Datagram {
                    from: meta.addr,
                    to: meta.dst_ip,
                    ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
                    bytes: BytesMut::from(bytes),
                });
            }
        }
        // A call that brings less than it could has emptied the socket.
        Ok(count >= PIECES_COUNT.min(BATCH_SIZE))
    }

    pub(super) fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()> {
        let bytes = &buffer[..batch.bytes.min(buffer.len())];
        if let Some(segment) = batch.segment_bytes
            && self.state.max_gso_segments() > 1
        {
            match self.send_once(batch, bytes, Some(segment)) {
                Err(error) if is_refused(&error) => {}
                result => return lost_unless_full(result),
            }
        }
        let mut sent_any = false;
        for piece in bytes.chunks(batch.segment_bytes.unwrap_or(bytes.len()).max(1)) {
            let sent = lost_unless_full(self.send_once(batch, piece, None));
            // What follows the first that left is lost, rather than sent twice.
            if sent.is_err() {
                return if sent_any { Ok(()) } else { sent };
            }
            sent_any = true;
        }
        Ok(())
    }

    fn send_once(
        &self,
        batch: &DatagramBatch,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: batch.to,
            ecn: EcnCodepoint::from_bits(batch.ecn),
            contents,
            segment_size,
            src_ip: batch.from,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

/// Ends what quinn-udp asks for and is not read. With the time of arrival, a batch's control messages are longer than the
/// place that it has for them, and ECN is cut off.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "the option has no safe wrapper")]
fn without_timestamps(socket: &UdpSocket) {
    let off: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and the option is an int that outlives the call.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn without_timestamps(_: &UdpSocket) {}

/// Returns whether the system, or the network's driver, turns out not to take several datagrams in one call.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

/// Datagrams that are too long for a path, or have none, are lost as others are on their way.
fn lost_unless_full(result: io::Result<()>) -> io::Result<()> {
    let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::ConnectionRefused];
    result.or_else(|error| if kinds.contains(&error.kind()) { Err(error) } else { Ok(()) })
}

/// Asks the kernel to keep more datagrams of a socket; it may allow less.
pub(crate) fn enlarge_buffers(socket: &SockRef<'_>) {
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [MioDatagrams; 2] {
        [0, 1].map(|_| MioDatagrams::new(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap())
    }

    fn receive_all(socket: &mut MioDatagrams, count: usize) -> Vec<Datagram> {
        let (mut received, mut block) = (Vec::new(), Vec::new());
        while received.len() < count {
            match socket.receive(&mut block, &mut received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                result => assert!(result.is_ok(), "{result:?}"),
            }
        }
        received
    }

    #[test]
    fn a_batch_arrives_as_the_datagrams_that_it_was() {
        let [mut one, mut other] = pair();
        for segments in [1, 2, 7] {
            let bytes: Vec<u8> = (0..segments * 1200 - 100).map(|at| (at / 1200) as u8).collect();
            let batch = DatagramBatch {
                to: other.local(),
                from: None,
                ecn: 2,
                bytes: bytes.len(),
                segment_bytes: (segments > 1).then_some(1200),
            };
            one.send(&batch, &bytes).unwrap();
            let received = receive_all(&mut other, segments);
            assert_eq!(received.len(), segments);
            for (number, datagram) in received.iter().enumerate() {
                assert_eq!(datagram.from, one.local());
                assert!(datagram.bytes.iter().all(|byte| usize::from(*byte) == number));
                let length = if number + 1 == segments { 1100 } else { 1200 };
                assert_eq!(datagram.bytes.len(), length);
                if cfg!(target_os = "linux") {
                    assert_eq!((datagram.ecn, datagram.to), (2, Some(other.local().ip())));
                }
            }
        }
    }

    #[test]
    fn a_datagram_that_no_path_takes_is_lost() {
        let [mut one, other] = pair();
        let bytes = vec![0; 65_536];
        let (to, length) = (other.local(), bytes.len());
        let batch = DatagramBatch { to, from: None, ecn: 0, bytes: length, segment_bytes: None };
        one.send(&batch, &bytes).unwrap();
    }
}
