//! HAProxy's `proxy-protocol.txt`: connections that begin with a PROXY header carry the requests of the client that it names,
//! and no others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use bolide_client::PoolCensus;
use bolide_server::{ProxyHeader, Request};

use crate::backends::{Backend, Backends, KEPT_COUNT};

/// Returns what a PROXY header says of the client of a request. Requests of one client's connection have the same; a client that a
/// trusted proxy names has no port.
pub(crate) fn header_for(request: &Request<'_>) -> ProxyHeader {
    let Some(client) = request.client() else { return ProxyHeader::Unix };
    let peer = request.peer().filter(|peer| peer.ip().to_canonical() == client);
    let source = peer.unwrap_or_else(|| SocketAddr::new(client, 0));
    let unknown = match client {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let destination = request.local().unwrap_or_else(|| SocketAddr::new(unknown, 0));
    ProxyHeader::Inet { source, destination }
}

impl Backends {
    /// The backend of a client: a copy of the one that all others share, whose connections begin with the header.
    pub(crate) fn of_client(&mut self, shared: usize, header: &ProxyHeader) -> usize {
        let Some(pools) = &mut self.clients else { return shared };
        if let Some(place) = pools.places.get(&(shared, *header)) {
            return *place;
        }
        if pools.places.len() >= pools.sweep_at {
            pools.places.retain(|_, place| {
                let is_used = self.list[*place].is_used();
                if !is_used {
                    self.list.remove(*place);
                }
                is_used
            });
            pools.sweep_at = (2 * pools.places.len()).max(KEPT_COUNT);
        }
        let mut preamble = Vec::new();
        header.write(pools.version, &mut preamble);
        let copy = self.list[shared].for_client(shared, preamble.into(), self.pool_limits);
        let place = self.list.insert(copy);
        pools.places.insert((shared, *header), place);
        place
    }

    /// Returns whether one more connection may be made to an upstream whose connections have owners: else an idle one of
    /// another client ends for it.
    pub(crate) fn make_room(&mut self, at: usize) -> bool {
        let upstream = self.list[at].upstream;
        let PoolCensus { connecting, open, busy, tunnels, .. } = self.list[upstream].of_clients;
        let counted = connecting + open - tunnels;
        if self.list[at].pool.has_room() || counted < self.pool_limits.connections_count {
            return true;
        }
        let Some(pools) = self.clients.as_mut().filter(|_| open > busy) else { return false };
        let end = self.list.iter().next_back().map_or(0, |(last, _)| last + 1);
        let start = pools.hand.min(end);
        for place in (start..end).chain(0..start) {
            let Some(backend) = self.list.get_mut(place) else { continue };
            if backend.upstream != upstream || backend.copy_of.is_none() {
                continue;
            }
            let Some(tasks) = backend.pool.idle().map(Rc::clone) else { continue };
            pools.hand = place + 1;
            tasks.is_leaving.set(true);
            if let Some(key) = tasks.key.get() {
                backend.pool.set_room(key, 0);
            }
            tasks.wake();
            return true;
        }
        false
    }

    /// Adds what has changed in a client's pool to the sum of the upstream.
    pub(crate) fn sum_up(&mut self, at: usize) {
        let backend = &mut self.list[at];
        if backend.copy_of.is_none() {
            return;
        }
        let (upstream, now) = (backend.upstream, backend.pool.census());
        let before = std::mem::replace(&mut backend.of_clients, now);
        let sum = &mut self.list[upstream].of_clients;
        sum.connecting = sum.connecting + now.connecting - before.connecting;
        sum.open = sum.open + now.open - before.open;
        sum.busy = sum.busy + now.busy - before.busy;
        sum.tunnels = sum.tunnels + now.tunnels - before.tunnels;
        sum.waiting = sum.waiting + now.waiting - before.waiting;
    }
}

impl Backend {
    /// Returns whether it has connections or requests.
    fn is_used(&self) -> bool {
        self.outstanding > 0 || Rc::strong_count(&self.lease) > 1
    }
}
