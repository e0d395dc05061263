//! RFC 9114 §3: which listeners have UDP sockets, and what each worker makes of them.

use std::time::SystemTime;

use bolide_connection::ServerTls;
use bolide_eventloop::{Address, Listeners};

use super::{Listener, Server};
use crate::quic::{Advertised, Endpoints};
use crate::{Error, ProxyProtocol};

/// The UDP sockets of the listeners.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Which listeners have one for each worker.
    are_open: Vec<bool>,
    /// Why others that should have some have none.
    refused: Vec<Error>,
    /// Whether several datagrams leave and come in one call: of the first that are open.
    offloads: Option<(bool, bool)>,
}

impl Sockets {
    /// Opens those that are wanted, as far as possible.
    pub(super) fn open(listeners: &mut Listeners, wanted: &[bool]) -> Self {
        let mut sockets = Self::default();
        for (index, wanted) in wanted.iter().enumerate() {
            let opened = wanted.then(|| listeners.bind_datagrams(index)).transpose();
            sockets.are_open.push(matches!(opened, Ok(Some(_))));
            match opened {
                Ok(offloads) => sockets.offloads = sockets.offloads.or(offloads),
                Err(failed) => sockets.refused.push(Error::Listen(failed)),
            }
        }
        sockets
    }

    /// Which listeners serve HTTP/3.
    pub(super) fn are_open(&self) -> Vec<bool> {
        self.are_open.clone()
    }

    /// Says once what is not possible here.
    pub(super) fn tell(&self, server: &'static str) {
        for error in &self.refused {
            let why = error.to_string();
            tracing::warn!(target: "bolide::server", server, why, "HTTP/3 is not served: its UDP port can't be had");
        }
        if let Some((gso, gro)) = self.offloads.filter(|offloads| *offloads != (true, true)) {
            let what = "HTTP/3 datagrams pass one by one: the system does not take several at once";
            tracing::info!(target: "bolide::server", server, gso, gro, what);
        }
    }

    /// What the workers, of this number, make of them.
    pub(super) fn plan(self, addresses: &[Address], workers: usize) -> Plan {
        let served = addresses.iter().zip(&self.are_open).filter(|(_, is_open)| **is_open);
        let advertised = served.filter_map(|(address, _)| match address {
            Address::Inet(address) => Some(Advertised::new(address.port())),
            Address::Unix => None,
        });
        Plan { advertised: advertised.collect(), are_open: self.are_open, workers }
    }
}

/// What each worker begins with.
#[derive(Debug)]
pub(super) struct Plan {
    are_open: Vec<bool>,
    advertised: Vec<Advertised>,
    workers: usize,
}

impl Plan {
    /// The endpoints of one worker, and what its responses over TLS say of them.
    pub(super) fn of_worker(
        &self,
        worker: usize,
        tls: &[Option<ServerTls>],
        wall_clock: fn() -> SystemTime,
    ) -> (Endpoints, Vec<Advertised>) {
        let worker = (worker, self.workers);
        (Endpoints::new(tls, &self.are_open, wall_clock, worker), self.advertised.clone())
    }
}

impl Server {
    /// Which of its listeners are to have UDP sockets.
    pub(super) fn wants_http3(&self, sources: &[Listener], tls: &[Option<ServerTls>]) -> Vec<bool> {
        let wants = |(index, source): (usize, &Listener)| {
            let proxy_protocol = self.proxy_protocols.get(index).copied().unwrap_or_default();
            let is_own = matches!(source, Listener::Tcp(_) | Listener::OpenTcp(_));
            let is_direct = proxy_protocol == ProxyProtocol::Off;
            self.http3
                && is_own
                && is_direct
                && tls[index].as_ref().is_some_and(ServerTls::allows_quic)
        };
        sources.iter().enumerate().map(wants).collect()
    }
}
