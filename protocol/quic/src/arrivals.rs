//! RFC 9000 §5.2, §7, §8: datagrams that come to a socket, and connections that begin there.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::{Datagram, DatagramBatch};
use bolide_tls::{ClientTls, full_handshakes_count};
use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, DatagramEvent, EcnCodepoint, Incoming};

use crate::connection::{Connection, batch};
use crate::endpoint::{Delivery, Endpoint, HTTP3, Key, outward, outward_window};
use crate::facts::QuicError;
use crate::identifiers::Owner;
use crate::limits;
use crate::windows::Receiving;

/// How many times what came may be sent to an address that is not validated (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;

/// RFC 9000 §8.1: what a datagram permits to be sent to an address that is not validated, in bytes. `None`: it begins with
/// something else than an Initial packet, which only who has received from here can protect.
fn allowance(bytes: &[u8]) -> Option<usize> {
    is_initial(bytes).then_some(bytes.len() * AMPLIFICATION)
}

/// RFC 9000 §17.2.2: the packet that a connection begins with.
fn is_initial(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0xb0 == 0x80)
}

/// Result of a datagram.
pub enum Arrived {
    /// Nothing that the caller must do.
    Nothing,
    /// It is for a connection of the endpoint that this worker has.
    Elsewhere(usize, Datagram),
    /// It is for an earlier process, by its number: for the worker whose number is the remainder of this one, if that is
    /// known; else it belongs to a handshake, which may have begun there.
    Earlier(u8, Option<u16>, Datagram),
    /// It begins a connection, and those are the successor's.
    Unclaimed(Datagram),
    /// It is for this connection.
    For(Key, Delivery),
    /// A client begins a connection.
    New(Key, Box<Connection>),
    /// The endpoint itself has something to send: a Retry, a version negotiation, a stateless reset. The datagram is in
    /// the buffer.
    Reply(DatagramBatch),
}

impl fmt::Debug for Arrived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("Nothing"),
            Self::Elsewhere(worker, _) => write!(formatter, "Elsewhere({worker})"),
            Self::Earlier(process, worker, _) => {
                write!(formatter, "Earlier({process}, {worker:?})")
            }
            Self::Unclaimed(_) => formatter.write_str("Unclaimed"),
            Self::For(key, _) => write!(formatter, "For({key:?})"),
            Self::New(key, _) => write!(formatter, "New({key:?})"),
            Self::Reply(outgoing) => write!(formatter, "Reply({outgoing:?})"),
        }
    }
}

impl Endpoint {
    /// Begins a connection to a server that has this name, and that may send `stream_bytes` on one stream before they are
    /// read.
    ///
    /// # Errors
    ///
    /// When the TLS settings have no TLS 1.3, or the name or address can't be a server's.
    pub fn connect(
        &mut self,
        tls: &ClientTls,
        to: SocketAddr,
        name: &str,
        stream_bytes: u32,
        now: Instant,
    ) -> Result<(Key, Connection), QuicError> {
        let crypto = QuicClientConfig::try_from(tls.quic(HTTP3))
            .map_err(|error| QuicError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        if self.outward.0 != stream_bytes {
            self.outward = outward(stream_bytes);
        }
        config.transport_config(Arc::clone(&self.outward.1));
        let (handle, connection) = self
            .inner
            .connect(now, config, to, name)
            .map_err(|error| QuicError::Connect(to, error.to_string()))?;
        let receiving = Receiving::of_client(stream_bytes, outward_window(stream_bytes));
        Ok((Key(handle), Connection::new(handle, connection, now, receiving, None)))
    }

    /// A datagram came. `is_passed_on`: from another worker or process, so that it is for this one or for none. What the
    /// endpoint replies is in `buffer`, which is emptied first.
    pub fn receive(
        &mut self,
        datagram: Datagram,
        is_passed_on: bool,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Arrived {
        buffer.clear();
        // A client's is alone at its socket, and a server's stateless resets begin as anything may.
        let owner = match self.server {
            Some(_) => self.identifiers.owner(&datagram.bytes),
            None => Owner::Own,
        };
        match owner {
            Owner::Worker(worker) if !is_passed_on => return Arrived::Elsewhere(worker, datagram),
            Owner::Process(process, tag) if !is_passed_on => {
                return Arrived::Earlier(process, Some(tag), datagram);
            }
            Owner::Handshake if !self.leaves => {
                if let Some(process) = self.asks(is_passed_on, now) {
                    return Arrived::Earlier(process, None, datagram);
                }
            }
            Owner::Own | Owner::Worker(_) | Owner::Process(..) | Owner::Handshake => {}
        }
        // One that begins a connection goes back, also where its client has chosen an identifier as those are from here.
        let unclaimed = (self.leaves && is_initial(&datagram.bytes))
            .then(|| Datagram { bytes: BytesMut::from(&datagram.bytes[..]), ..datagram });
        let Datagram { from, to, ecn, bytes } = datagram;
        let ecn = EcnCodepoint::from_bits(ecn);
        let (allowance, length) = (allowance(&bytes), bytes.len());
        match self.inner.handle(now, from, to, ecn, bytes, buffer) {
            None => Arrived::Nothing,
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                Arrived::For(Key(handle), Delivery { event, bytes: length, allowance })
            }
            Some(DatagramEvent::Response(transmit)) => Arrived::Reply(batch(&transmit)),
            Some(DatagramEvent::NewConnection(incoming)) => match unclaimed {
                None => self.incoming(incoming, (length, allowance), now, buffer),
                Some(datagram) => {
                    self.inner.ignore(incoming);
                    Arrived::Unclaimed(datagram)
                }
            },
        }
    }

    /// A client begins a connection: above a number of handshakes it must prove its address first.
    fn incoming(
        &mut self,
        incoming: Incoming,
        (length, allowance): (usize, Option<usize>),
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Arrived {
        if !self.accepts {
            return Arrived::Reply(batch(&self.inner.refuse(incoming, buffer)));
        }
        let validated = incoming.remote_address_validated();
        if !validated && self.unvalidated >= self.unvalidated_max {
            if !incoming.may_retry() {
                self.inner.ignore(incoming);
                return Arrived::Nothing;
            }
            return match self.inner.retry(incoming, buffer) {
                Ok(transmit) => Arrived::Reply(batch(&transmit)),
                Err(error) => {
                    self.inner.ignore(error.into_incoming());
                    Arrived::Nothing
                }
            };
        }
        self.follow_settings();
        let full = full_handshakes_count();
        let (stream_bytes, config) = match &self.frugal {
            Some(frugal) if !self.has_room => (limits::STREAM_WINDOW_BYTES, Some(frugal.clone())),
            _ => (limits::STREAM_WINDOW_BYTES_MAX, None),
        };
        match self.inner.accept(incoming, now, buffer, config) {
            Ok((handle, connection)) => {
                self.unvalidated += usize::from(!validated);
                let allowance = allowance.filter(|_| !validated);
                let receiving = Receiving::of_server(length, stream_bytes);
                let connection = Connection::new(handle, connection, now, receiving, allowance)
                    .with_full_handshake(full_handshakes_count() != full);
                Arrived::New(Key(handle), Box::new(connection))
            }
            Err(error) => match error.response {
                Some(transmit) => Arrived::Reply(batch(&transmit)),
                None => Arrived::Nothing,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_quic_pair::{CLOCK, address, start, tls};
    use quinn_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

    use super::*;
    use crate::facts::{Membership, Secret};

    /// The first datagram of a client that calls the server by this identifier.
    fn first_datagram(tls: &ClientTls, id: ConnectionId) -> Datagram {
        let crypto = QuicClientConfig::try_from(tls.quic(HTTP3)).unwrap();
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.initial_dst_cid_provider(Arc::new(move || id));
        let mut client =
            quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let (_, mut connection) =
            client.connect(start(), config, address(443), "localhost").unwrap();
        let mut bytes = Vec::new();
        let sent = connection.poll_transmit(start(), 1, &mut bytes).unwrap();
        assert_eq!(sent.size, bytes.len());
        let (from, to) = (address(50_000), None);
        Datagram { from, to, ecn: 0, bytes: bytes[..].into() }
    }

    #[test]
    fn one_that_has_left_begins_no_connection_by_whatever_identifier() {
        let (server, client) = tls();
        let member = |worker, process| Membership {
            worker: (worker, 2),
            process,
            secret: Some(Secret([9; 32])),
            ..Membership::default()
        };
        let endpoint = |member| Endpoint::of(Some(&server), CLOCK, [1; 32], member).unwrap();
        let mut buffer = Vec::new();
        for worker in [0, 1] {
            for process in [4, 5] {
                let id = endpoint(member(worker, process)).identifiers.generate_cid();
                let datagram = first_datagram(&client, id);
                let bytes = datagram.bytes.clone();
                let mut left = endpoint(member(0, 4));
                left.leave();
                left.accept(false, true);
                let arrived = left.receive(datagram, true, start(), &mut buffer);
                let Arrived::Unclaimed(returned) = arrived else { panic!("{arrived:?}") };
                assert_eq!(returned.bytes, bytes);
            }
        }
    }
}
