//! The PROXY protocol, versions 1 and 2 (HAProxy's `proxy-protocol.txt`): by which a balancer says at the beginning of a
//! connection whose it is. Pure: bytes in, a header out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::PROXY_HEADER_BYTES;

/// Start of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Start of version 1.
const WORD: &[u8; 6] = b"PROXY ";

/// The longest header of version 1, with its end.
const LINE_BYTES: usize = 107;

/// Both addresses of a Unix connection in version 2.
const UNIX_BYTES: usize = 216;

/// Contents of a PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyHeader {
    /// The connection is the sender's own, such as a health check (`LOCAL`), or nothing is known (`UNKNOWN`): its
    /// addresses are those of the socket.
    Own,
    /// The connection of a client.
    Inet {
        /// The client's address.
        source: SocketAddr,
        /// The address that the client has connected to.
        destination: SocketAddr,
    },
    /// The connection of a client on a Unix socket, which has no address.
    Unix,
}

/// The versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Bytes that are not a PROXY header; says what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProxyHeaderError(&'static str);

const fn wrong<T>(what: &'static str) -> Result<T, ProxyHeaderError> {
    Err(ProxyHeaderError(what))
}

impl ProxyHeader {
    /// Returns whether these bytes are the beginning of a header, as far as they go.
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        let agrees = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
        agrees(SIGNATURE) || agrees(WORD)
    }

    /// Reads the header at the beginning of `bytes`, and its length in bytes; `None` while it is not whole.
    ///
    /// # Errors
    ///
    /// As soon as the bytes can't become a header.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProxyHeaderError> {
        if !Self::may_begin(bytes) {
            return wrong("the connection does not begin with a PROXY header");
        }
        match bytes.first() {
            None => Ok(None),
            Some(b'P') => read_line(bytes),
            Some(_) => read_binary(bytes),
        }
    }

    /// Appends the header.
    pub fn write(&self, version: ProxyVersion, out: &mut Vec<u8>) {
        match version {
            ProxyVersion::V1 => self.write_line(out),
            ProxyVersion::V2 => self.write_binary(out),
        }
    }

    /// The same with both addresses of one family, for a header can't mix them: IPv4 becomes a mapped address.
    fn of_one_family(&self) -> Option<(IpAddr, IpAddr, u16, u16)> {
        let Self::Inet { source, destination } = self else { return None };
        let (from, to) = (source.ip().to_canonical(), destination.ip().to_canonical());
        let mapped = |address| match address {
            IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
            v6 @ IpAddr::V6(_) => v6,
        };
        let (from, to) =
            if from.is_ipv4() == to.is_ipv4() { (from, to) } else { (mapped(from), mapped(to)) };
        Some((from, to, source.port(), destination.port()))
    }

    fn write_line(&self, out: &mut Vec<u8>) {
        let Some((from, to, from_port, to_port)) = self.of_one_family() else {
            return out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        };
        let family = if from.is_ipv4() { 4 } else { 6 };
        let line = format!("PROXY TCP{family} {from} {to} {from_port} {to_port}\r\n");
        out.extend_from_slice(line.as_bytes());
    }

    fn write_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SIGNATURE);
        match (self, self.of_one_family()) {
            (Self::Unix, _) => {
                out.extend_from_slice(&[0x21, 0x31, 0, UNIX_BYTES as u8]);
                out.resize(out.len() + UNIX_BYTES, 0);
            }
            (_, None) => out.extend_from_slice(&[0x20, 0, 0, 0]),
            (_, Some((from, to, from_port, to_port))) => {
                let kind = if from.is_ipv4() { [0x21, 0x11, 0, 12] } else { [0x21, 0x21, 0, 36] };
                out.extend_from_slice(&kind);
                for address in [from, to] {
                    match address {
                        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
                        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
                    }
                }
                out.extend_from_slice(&from_port.to_be_bytes());
                out.extend_from_slice(&to_port.to_be_bytes());
            }
        }
    }
}

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 5 443` and a line's end.
fn read_line(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
    let start = &bytes[..bytes.len().min(LINE_BYTES)];
    let Some(at) = memchr::memchr(b'\n', start) else {
        return if start.len() < LINE_BYTES {
            Ok(None)
        } else {
            wrong("a PROXY header of version 1 is longer than 107 bytes")
        };
    };
    let Some(line) = start[..at].strip_suffix(b"\r") else {
        return wrong("a PROXY header of version 1 ends without a carriage return");
    };
    let text = line.strip_prefix(WORD).and_then(|rest| std::str::from_utf8(rest).ok());
    let Some(text) = text else { return wrong("a PROXY header of version 1 is not text") };
    let mut parts = text.split(' ');
    let header = match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next()) {
        // What follows is not looked at.
        (Some("UNKNOWN"), ..) => return Ok(Some((ProxyHeader::Own, at + 1))),
        (Some("TCP4"), Some(from), Some(to), Some(from_port), Some(to_port)) => {
            inet(from.parse::<Ipv4Addr>(), to.parse::<Ipv4Addr>(), from_port, to_port)
        }
        (Some("TCP6"), Some(from), Some(to), Some(from_port), Some(to_port)) => {
            inet(from.parse::<Ipv6Addr>(), to.parse::<Ipv6Addr>(), from_port, to_port)
        }
        _ => None,
    };
    match header {
        Some(header) if parts.next().is_none() => Ok(Some((header, at + 1))),
        _ => wrong("a PROXY header of version 1 names no addresses and ports"),
    }
}

fn inet<A: Into<IpAddr>, E>(
    source: Result<A, E>,
    destination: Result<A, E>,
    source_port: &str,
    destination_port: &str,
) -> Option<ProxyHeader> {
    let port = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = text == "0" || !text.starts_with('0');
        text.parse::<u16>().ok().filter(|_| is_plain && is_short)
    };
    Some(ProxyHeader::Inet {
        source: SocketAddr::new(source.ok()?.into(), port(source_port)?),
        destination: SocketAddr::new(destination.ok()?.into(), port(destination_port)?),
    })
}

/// Version 2: the signature, version and command, family, length, addresses, and what else the sender has to say,
/// which is passed over.
fn read_binary(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
    let is_own = match bytes.get(12) {
        None => return Ok(None),
        Some(0x20) => true,
        Some(0x21) => false,
        Some(_) => return wrong("a PROXY header has an unknown version or command"),
    };
    let Some((fixed, rest)) = bytes.split_first_chunk::<16>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if fixed.len() + length > PROXY_HEADER_BYTES {
        return wrong("a PROXY header of version 2 is too long");
    }
    let (family, needed) = match fixed[13] {
        _ if is_own => (0, 0),
        0x00 => (0, 0),
        0x11 => (4, 12),
        0x21 => (6, 36),
        0x31 => (1, UNIX_BYTES),
        _ => return wrong("a PROXY header has an unknown address family or transport"),
    };
    if length < needed {
        return wrong("a PROXY header of version 2 is shorter than its addresses");
    }
    let Some(said) = rest.get(..length) else { return Ok(None) };
    let header = match family {
        4 => addresses::<4>(said),
        6 => addresses::<16>(said),
        1 => Some(ProxyHeader::Unix),
        _ => Some(ProxyHeader::Own),
    };
    match header {
        Some(header) => Ok(Some((header, fixed.len() + length))),
        None => wrong("a PROXY header of version 2 is shorter than its addresses"),
    }
}

/// Two addresses of so many bytes, and two ports.
fn addresses<const N: usize>(said: &[u8]) -> Option<ProxyHeader>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = said.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let [a, b, c, d, ..] = *rest else { return None };
    let address = |ip: &[u8; N], port| SocketAddr::new(IpAddr::from(*ip), port);
    Some(ProxyHeader::Inet {
        source: address(source, u16::from_be_bytes([a, b])),
        destination: address(destination, u16::from_be_bytes([c, d])),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, ProxyHeaderError> {
        ProxyHeader::read(bytes)
    }

    fn between(source: &str, destination: &str) -> ProxyHeader {
        let parse = |text: &str| text.parse().unwrap();
        ProxyHeader::Inet { source: parse(source), destination: parse(destination) }
    }

    fn binary(command: u8, family: u8, said: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend((said.len() as u16).to_be_bytes());
        bytes.extend(said);
        bytes
    }

    #[test]
    fn version_1_names_the_client() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n";
        let header = between("192.0.2.1:56324", "198.51.100.1:443");
        assert_eq!(read(line), Ok(Some((header, 45))));
        let line = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n";
        let header = between("[2001:db8::1]:1", "[2001:db8::2]:65535");
        assert_eq!(read(line), Ok(Some((header, line.len()))));
        for line in [&b"PROXY UNKNOWN\r\n"[..], b"PROXY UNKNOWN ffff::1 ::1 1 2 3\r\n"] {
            assert_eq!(read(line), Ok(Some((ProxyHeader::Own, line.len()))));
        }
    }

    #[test]
    fn a_line_that_is_malformed_is_refused() {
        for line in [
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2 3\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 01 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 65536\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY UNKNOWN\r\r\n\n",
            "PROXY \r\n",
            "PROXX TCP4",
            "proxy TCP4",
            "GET / HTTP/1.1\r\n",
        ] {
            let whole = read(line.as_bytes());
            assert!(whole.is_err() || line.starts_with("PROXY UNKNOWN\r\r"), "{line}: {whole:?}");
        }
    }

    #[test]
    fn version_2_names_the_client_and_its_extensions_are_passed_over() {
        let mut said = vec![192, 0, 2, 1, 198, 51, 100, 1, 0, 5, 1, 187];
        // An ALPN extension.
        said.extend([1, 0, 2, b'h', b'2']);
        let bytes = binary(0x21, 0x11, &said);
        let header = between("192.0.2.1:5", "198.51.100.1:443");
        assert_eq!(read(&bytes), Ok(Some((header, bytes.len()))));
        let unix = binary(0x21, 0x31, &[b'/'; 216]);
        assert_eq!(read(&unix), Ok(Some((ProxyHeader::Unix, unix.len()))));
        for (command, family, said) in
            [(0x20, 0, 0), (0x20, 0x11, 3), (0x20, 0xff, 9), (0x21, 0, 7)]
        {
            let bytes = binary(command, family, &vec![1; said]);
            assert_eq!(read(&bytes), Ok(Some((ProxyHeader::Own, bytes.len()))), "{family}");
        }
    }

    #[test]
    fn a_binary_header_that_is_malformed_is_refused_before_it_is_whole() {
        for (command, family, said) in [
            (0x11, 0x11, 12),
            (0x22, 0x11, 12),
            (0x21, 0x12, 12),
            (0x21, 0x41, 12),
            (0x21, 0x11, 11),
            (0x21, 0x21, 35),
            (0x21, 0x31, 215),
            (0x20, 0x00, PROXY_HEADER_BYTES),
        ] {
            let bytes = binary(command, family, &vec![1; said]);
            assert!(read(&bytes[..16]).is_err(), "{command:x} {family:x} {said}");
        }
    }

    fn header() -> impl Strategy<Value = ProxyHeader> {
        let inet = (any::<IpAddr>(), any::<IpAddr>(), any::<u16>(), any::<u16>());
        prop_oneof![
            Just(ProxyHeader::Own),
            Just(ProxyHeader::Unix),
            inet.prop_map(|(from, to, from_port, to_port)| ProxyHeader::Inet {
                source: SocketAddr::new(from, from_port),
                destination: SocketAddr::new(to, to_port),
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_in_any_split(header in header(), rest: [u8; 3]) {
            for version in [ProxyVersion::V1, ProxyVersion::V2] {
                let mut bytes = Vec::new();
                header.write(version, &mut bytes);
                let length = bytes.len();
                for end in 0..length {
                    prop_assert_eq!(read(&bytes[..end]), Ok(None));
                }
                bytes.extend(rest);
                let (found, taken) = read(&bytes).unwrap().unwrap();
                prop_assert_eq!(taken, length);
                match (header, found) {
                    (ProxyHeader::Inet { source: a, destination: b },
                     ProxyHeader::Inet { source: c, destination: d }) => {
                        prop_assert_eq!(a.ip().to_canonical(), c.ip().to_canonical());
                        prop_assert_eq!(b.ip().to_canonical(), d.ip().to_canonical());
                        prop_assert_eq!((a.port(), b.port()), (c.port(), d.port()));
                    }
                    (ProxyHeader::Unix, found) if version == ProxyVersion::V1 => {
                        prop_assert_eq!(found, ProxyHeader::Own);
                    }
                    (header, found) => prop_assert_eq!(header, found),
                }
            }
        }

        #[test]
        fn whatever_comes_is_refused_once_and_for_all_or_ends(
            word in prop_oneof![Just(WORD.to_vec()), Just(SIGNATURE.to_vec()), Just(vec![])],
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = [word, noise].concat();
            let mut settled = None;
            for end in 0..=bytes.len() {
                let now = read(&bytes[..end]);
                if let Some(before) = settled {
                    prop_assert_eq!(now, before);
                } else if now != Ok(None) {
                    settled = Some(now);
                }
                if let Ok(Some((_, taken))) = now {
                    prop_assert!(taken <= end && taken <= PROXY_HEADER_BYTES);
                }
            }
        }
    }

    /// A header that never ends is refused after a bounded number of bytes.
    #[test]
    fn endless_proxy_header_is_refused() {
        let mut line = b"PROXY UNKNOWN ".to_vec();
        line.resize(LINE_BYTES, b'x');
        assert!(read(&line).is_err());
        assert_eq!(read(&line[..LINE_BYTES - 1]), Ok(None));
    }
}
