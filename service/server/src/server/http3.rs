//! RFC 9114 §3: which listeners have UDP sockets, and what each worker makes of them.

use std::net::SocketAddr;
use std::time::SystemTime;

use bolide_connection::{Congestion, ServerTls};
use bolide_eventloop::{Address, Offloads};

use super::{Listener, Server};
use crate::advertised::Advertised;
use crate::quic::{Endpoints, Lineage};
use crate::{Error, ProxyProtocol};

/// The UDP sockets of the listeners.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Which listeners have one for each worker.
    are_open: Vec<bool>,
    /// Why others that should have some have none.
    refused: Vec<Error>,
    /// Work on datagrams that the system takes over: of the first that are open.
    offloads: Option<Offloads>,
}

impl Sockets {
    /// Adds those of the next listener, or why it has none; `None`: it is to have none.
    pub(super) fn add(&mut self, opened: Option<Result<Offloads, Error>>) {
        self.are_open.push(matches!(opened, Some(Ok(_))));
        match opened.transpose() {
            Ok(offloads) => self.offloads = self.offloads.or(offloads),
            Err(refused) => self.refused.push(refused),
        }
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
        let Some(offloads) = self.offloads else { return };
        let (gso, gro) = (offloads.sends_several, offloads.receives_several);
        if !gso || !gro {
            let what = "HTTP/3 datagrams pass one by one: the system does not take several at once";
            tracing::info!(target: "bolide::server", server, gso, gro, what);
        }
        if !offloads.is_steered {
            let what = "the system does not take a program that finds the worker of an HTTP/3 connection: datagrams of a client \
                        that changes its address are passed on";
            tracing::info!(target: "bolide::server", server, what);
        }
    }

    /// Returns what the workers, of this number, make of them.
    pub(super) fn plan(
        self,
        addresses: &[Address],
        workers: usize,
        lineage: Lineage,
        congestion: Congestion,
    ) -> Plan {
        let socket = |(address, is_open): (&Address, &bool)| match address {
            Address::Inet(address) => is_open.then_some(*address),
            Address::Unix => None,
        };
        let sockets: Vec<_> = addresses.iter().zip(&self.are_open).map(socket).collect();
        let advertised = sockets.iter().flatten().map(|address| Advertised::new(address.port()));
        Plan { advertised: advertised.collect(), sockets, workers, lineage, congestion }
    }
}

/// Values that each worker begins with.
#[derive(Debug)]
pub(super) struct Plan {
    /// The addresses of the UDP sockets, by the listeners' indexes.
    sockets: Vec<Option<SocketAddr>>,
    advertised: Vec<Advertised>,
    workers: usize,
    lineage: Lineage,
    congestion: Congestion,
}

impl Plan {
    /// The endpoints of one worker, and what its responses over TLS say of them.
    pub(super) fn of_worker(
        &self,
        worker: usize,
        tls: &[Option<ServerTls>],
        wall_clock: fn() -> SystemTime,
    ) -> (Endpoints, Vec<Advertised>) {
        let member = ((worker, self.workers), &self.lineage);
        let endpoints = Endpoints::new(tls, &self.sockets, wall_clock, member, self.congestion);
        (endpoints, self.advertised.clone())
    }
}

impl Server {
    /// Which of its listeners are to have UDP sockets.
    pub(super) fn wants_http3(&self, sources: &[Listener], tls: &[Option<ServerTls>]) -> Vec<bool> {
        let wants = |(index, source): (usize, &Listener)| {
            let proxy_protocol = self.proxy_protocols.get(index).copied().unwrap_or_default();
            let has_port = !matches!(source, Listener::Unix(_) | Listener::OpenUnix(_));
            let is_direct = proxy_protocol == ProxyProtocol::Off;
            self.http3
                && has_port
                && is_direct
                && tls[index].as_ref().is_some_and(ServerTls::allows_quic)
        };
        sources.iter().enumerate().map(wants).collect()
    }
}
