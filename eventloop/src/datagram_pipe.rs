//! Datagrams between processes that follow one another at the same sockets: each goes on whole, with its addresses.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::OwnedFd;

use bolide_buffers::Datagram;
use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

/// The largest message: a datagram, and what is said of it.
const MESSAGE_BYTES: usize = 64 * 1024 + HEAD_BYTES_MAX;

/// The most that is said of a datagram: two addresses with ports, one without, and ECN.
const HEAD_BYTES_MAX: usize = 2 * (1 + 16 + 2) + (1 + 16) + 1;

/// Size that the kernel is asked to keep of the datagrams on their way, in bytes; it may keep less.
const BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// One end of a connected pair. Several threads may hold it, and send at once.
#[derive(Debug)]
pub struct DatagramPipe {
    socket: Socket,
}

/// A received message: the address of the socket at which the datagram came, and the datagram.
pub(crate) type Piped = (SocketAddr, Datagram);

impl DatagramPipe {
    /// Both ends of a new pair.
    ///
    /// # Errors
    ///
    /// When the system has no such sockets, or no file descriptor left.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
        for socket in [&one, &other] {
            // It may allow less.
            let _ = socket.set_send_buffer_size(BUFFER_BYTES);
        }
        Ok((Self { socket: one }, Self { socket: other }))
    }

    /// A further descriptor of this end.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone().map(OwnedFd::from)
    }

    /// Sends something that is no datagram, before the first one.
    ///
    /// # Errors
    ///
    /// When the other end is closed.
    pub fn greet(&self, secret: &[u8; 32]) -> io::Result<()> {
        self.socket.send_with_flags(secret, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).map(drop)
    }

    /// Returns what the other end was [greeted](Self::greet) with, which has been sent before this end was handed on.
    ///
    /// # Errors
    ///
    /// When the other end has said nothing, or something else.
    pub fn greeting(&self) -> io::Result<[u8; 32]> {
        let mut secret = [0; 32];
        self.socket.set_nonblocking(true)?;
        let read = (&self.socket).read(&mut secret);
        self.socket.set_nonblocking(false)?;
        if read? == secret.len() { Ok(secret) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Nothing more can be sent to this end; what has been can still be received.
    pub(crate) fn shut(&self) {
        // One whose other end is closed needs nothing.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Returns whether some process has the other end. It may be that nothing more is taken at this one.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::OUT)];
        let reported = poll(&mut polled, Some(&Timespec::default()));
        reported.is_ok() && !polled[0].revents().contains(PollFlags::HUP)
    }

    /// Passes on a datagram that came at the socket with the address `local`. One for which there is no room is lost.
    ///
    /// # Errors
    ///
    /// When the other end is closed in every process, or its worker has ended.
    pub fn send(&self, local: SocketAddr, datagram: &Datagram) -> io::Result<()> {
        let message = encode(local, datagram);
        match self.socket.send_with_flags(&message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits for the next datagram; `None`: the other end is closed in every process, or this one [shut](Self::shut). `block` is kept for the next call.
    pub(crate) fn receive(&self, block: &mut Vec<u8>) -> Option<Piped> {
        block.resize(MESSAGE_BYTES, 0);
        loop {
            match (&self.socket).read(block) {
                Ok(0) => return None,
                // What is not a datagram of ours is dropped.
                Ok(length) => match decode(&block[..length]) {
                    Some(piped) => return Some(piped),
                    None => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

impl From<OwnedFd> for DatagramPipe {
    fn from(descriptor: OwnedFd) -> Self {
        Self { socket: descriptor.into() }
    }
}

fn encode(local: SocketAddr, datagram: &Datagram) -> Vec<u8> {
    let Datagram { from, to, ecn, bytes } = datagram;
    let mut message = Vec::with_capacity(HEAD_BYTES_MAX + bytes.len());
    for address in [&local, from] {
        put_ip(&mut message, Some(address.ip()));
        message.extend_from_slice(&address.port().to_be_bytes());
    }
    put_ip(&mut message, *to);
    message.push(*ecn);
    message.extend_from_slice(bytes);
    message
}

fn put_ip(message: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => message.push(0),
        Some(IpAddr::V4(address)) => {
            message.push(4);
            message.extend_from_slice(&address.octets());
        }
        Some(IpAddr::V6(address)) => {
            message.push(6);
            message.extend_from_slice(&address.octets());
        }
    }
}

fn decode(mut message: &[u8]) -> Option<Piped> {
    let rest = &mut message;
    let local = SocketAddr::new(take_ip(rest)??, u16::from_be_bytes(take(rest)?));
    let from = SocketAddr::new(take_ip(rest)??, u16::from_be_bytes(take(rest)?));
    let to = take_ip(rest)?;
    let [ecn] = take(rest)?;
    Some((local, Datagram { from, to, ecn, bytes: BytesMut::from(*rest) }))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}

/// An address, or that there is none.
fn take_ip(rest: &mut &[u8]) -> Option<Option<IpAddr>> {
    Some(match take(rest)? {
        [0] => None,
        [4] => Some(Ipv4Addr::from(take::<4>(rest)?).into()),
        [6] => Some(Ipv6Addr::from(take::<16>(rest)?).into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(to: Option<IpAddr>, bytes: &[u8]) -> Datagram {
        let from = "[2001:db8::1]:4433".parse().unwrap();
        Datagram { from, to, ecn: 2, bytes: bytes.into() }
    }

    #[test]
    fn a_datagram_arrives_whole_with_its_addresses() {
        let (one, other) = DatagramPipe::pair().unwrap();
        let other = DatagramPipe::from(other.duplicate().unwrap());
        one.greet(&[7; 32]).unwrap();
        assert_eq!(other.greeting().unwrap(), [7; 32]);
        assert!(other.greeting().is_err(), "it is said once");
        let local = "192.0.2.1:443".parse().unwrap();
        assert!(one.is_open() && other.is_open());
        let mut block = Vec::new();
        for to in [None, Some("192.0.2.1".parse().unwrap()), Some("::1".parse().unwrap())] {
            for length in [0, 1, 1200, 65_507] {
                let sent = datagram(to, &vec![length as u8; length]);
                one.send(local, &sent).unwrap();
                let (at, came) = other.receive(&mut block).unwrap();
                assert_eq!((at, came.from, came.to, came.ecn), (local, sent.from, to, 2));
                assert_eq!(came.bytes, sent.bytes);
            }
        }
    }

    #[test]
    fn what_finds_no_room_is_lost_and_an_end_is_told() {
        let (one, other) = DatagramPipe::pair().unwrap();
        let local = "192.0.2.1:443".parse().unwrap();
        for _ in 0..10_000 {
            one.send(local, &datagram(None, &[1; 1200])).unwrap();
        }
        drop(one);
        let (mut block, mut count) = (Vec::new(), 0);
        while other.receive(&mut block).is_some() {
            count += 1;
        }
        assert!(count > 10 && count < 10_000, "{count}");
        assert!(!other.is_open());
        assert!(other.send(local, &datagram(None, b"x")).is_err());
    }

    #[test]
    fn an_end_that_one_process_is_done_with_goes_on_in_another() {
        let (one, ended) = DatagramPipe::pair().unwrap();
        let other = DatagramPipe::from(ended.duplicate().unwrap());
        ended.shut();
        assert!(ended.receive(&mut Vec::new()).is_none());
        drop(ended);
        assert!(other.is_open());
        other.send("192.0.2.1:443".parse().unwrap(), &datagram(None, b"x")).unwrap();
        assert_eq!(one.receive(&mut Vec::new()).unwrap().1.bytes, &b"x"[..]);
        one.shut();
        assert!(!other.is_open());
    }

    #[test]
    fn what_is_cut_or_of_another_kind_is_no_datagram() {
        let whole = encode("192.0.2.1:443".parse().unwrap(), &datagram(None, b""));
        assert!(decode(&whole).is_some());
        for length in 0..whole.len() {
            assert!(decode(&whole[..length]).is_none(), "{length}");
        }
        assert!(decode(&[9; 64]).is_none());
    }
}
