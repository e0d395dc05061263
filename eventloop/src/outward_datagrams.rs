//! Sockets of datagrams for the connections that a worker begins: some for each address, which its connections share.

use std::io;
use std::net::SocketAddr;

use crate::close_cause::CloseCause;
use crate::datagram_sockets::{DatagramSocket, Outward};
use crate::kernel::Kernel;
use crate::limits::DATAGRAM_SOCKETS_COUNT;
use crate::service::Service;
use crate::slots::Token;
use crate::worker::Worker;

/// Names of connections that are gone may be kept beyond as many as there are of others, in number.
const SPARE_NAMES_COUNT: usize = 8;

impl<K: Kernel, S: Service> Worker<K, S> {
    /// The socket for the next connection to an address, by its position.
    pub(crate) fn share_datagrams(&mut self, to: SocketAddr) -> io::Result<u8> {
        let is_full = self.cx.datagram_sockets.is_full();
        if let Some(shares) = self.cx.datagram_sockets.outward.get_mut(&to)
            && (is_full || shares.positions.len() >= DATAGRAM_SOCKETS_COUNT)
        {
            shares.last = (shares.last + 1) % shares.positions.len();
            return Ok(shares.positions[shares.last]);
        }
        let (socket, local) = self.cx.kernel.datagrams_to(to)?;
        let outward = Outward { to, names: Vec::new(), open_count: 0 };
        let bound = DatagramSocket::new(socket, local, None, Some(outward));
        let position = self.add_datagrams(bound)?;
        self.cx.datagram_sockets.outward.entry(to).or_default().positions.push(position);
        Ok(position)
    }

    /// A connection has a share in a socket.
    pub(crate) fn joined_datagrams(&mut self, position: u8, token: Token) {
        let bound = self.cx.datagram_sockets.at(position.into());
        if let Some(outward) = bound.and_then(|bound| bound.outward.as_mut()) {
            outward.names.push(token);
            outward.open_count += 1;
        }
    }

    /// A connection of a socket is over, or was not begun. The last one's end closes it.
    pub(crate) fn left_datagrams(&mut self, position: u8) {
        let Some(bound) = self.cx.datagram_sockets.at(position.into()) else { return };
        let Some(outward) = &mut bound.outward else { return };
        outward.open_count = outward.open_count.saturating_sub(1);
        if outward.open_count > 0 {
            if outward.names.len() > 2 * outward.open_count + SPARE_NAMES_COUNT {
                outward.names.retain(|token| self.slots.get_mut(*token).is_some());
            }
            return;
        }
        let to = outward.to;
        self.cx.datagram_sockets.close(position);
        if let Some(shares) = self.cx.datagram_sockets.outward.get_mut(&to) {
            shares.positions.retain(|other| *other != position);
            if shares.positions.is_empty() {
                self.cx.datagram_sockets.outward.remove(&to);
            }
        }
    }

    /// There is no receiver for what was sent by a socket: its connections are over.
    #[cold]
    pub(crate) fn datagrams_refused(&mut self, position: usize) {
        let bound = self.cx.datagram_sockets.at(position);
        let Some(outward) = bound.and_then(|bound| bound.outward.as_mut()) else { return };
        for token in std::mem::take(&mut outward.names) {
            self.close(token, CloseCause::Failed(io::ErrorKind::ConnectionRefused));
        }
    }
}
