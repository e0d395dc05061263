//! The two addresses of a connection, in no more memory than they need: idle connections are many.

use std::net::{SocketAddr, SocketAddrV4};

/// The addresses of a connection.
#[derive(Debug, Default)]
pub(crate) enum Ends {
    /// A Unix socket has none.
    #[default]
    Unnamed,
    /// Both are IPv4 addresses.
    V4 { peer: SocketAddrV4, local: SocketAddrV4 },
    /// Anything else: IPv6, nearly always.
    Other(Box<(Option<SocketAddr>, Option<SocketAddr>)>),
    /// A PROXY header has named both.
    Announced(Box<Announced>),
}

/// Contents of a PROXY header, and the address that its sender has connected to.
#[derive(Debug)]
pub(crate) struct Announced {
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    accepted: Option<SocketAddr>,
}

impl Ends {
    pub(crate) fn new(peer: Option<SocketAddr>, local: Option<SocketAddr>) -> Self {
        match (peer, local) {
            (None, None) => Self::Unnamed,
            (Some(SocketAddr::V4(peer)), Some(SocketAddr::V4(local))) => Self::V4 { peer, local },
            both => Self::Other(Box::new(both)),
        }
    }

    /// Those that a PROXY header names, of a connection that had these.
    pub(crate) fn announced(&self, named: Option<(SocketAddr, SocketAddr)>) -> Self {
        let (peer, local) = named.unzip();
        Self::Announced(Box::new(Announced { peer, local, accepted: self.accepted() }))
    }

    /// The client's address; none on a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Unnamed => None,
            Self::V4 { peer, .. } => Some((*peer).into()),
            Self::Other(both) => both.0,
            Self::Announced(announced) => announced.peer,
        }
    }

    /// The address that the client has connected to; none on a Unix socket.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Unnamed => None,
            Self::V4 { local, .. } => Some((*local).into()),
            Self::Other(both) => both.1,
            Self::Announced(announced) => announced.local,
        }
    }

    /// The address of this server's socket that took the connection: [`Self::local`], unless a PROXY header names another.
    pub(crate) fn accepted(&self) -> Option<SocketAddr> {
        match self {
            Self::Announced(announced) => announced.accepted,
            _ => self.local(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_come_back_as_they_were_given() {
        let addresses = [None, Some("192.0.2.1:80"), Some("[2001:db8::1%3]:443"), Some("[::]:1")];
        let addresses = addresses.map(|text| text.map(|text| text.parse::<SocketAddr>().unwrap()));
        for peer in addresses {
            for local in addresses {
                let ends = Ends::new(peer, local);
                assert_eq!((ends.peer(), ends.local()), (peer, local));
                assert_eq!(ends.accepted(), local);
                let named = peer.zip(addresses[1]);
                let announced = ends.announced(named);
                assert_eq!(announced.peer().zip(announced.local()), named);
                assert_eq!(announced.accepted(), local);
            }
        }
    }

    #[test]
    fn two_ipv4_addresses_take_two_words() {
        assert_eq!(size_of::<Ends>(), 16);
    }
}
