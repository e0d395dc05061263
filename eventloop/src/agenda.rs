//! Orders of a service to its worker: connections outward, turns for its sessions, a precise alarm.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::slots::Token;

/// The address that a connection is made to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// TCP, to an IP address and a port.
    Inet(SocketAddr),
    /// UDP, to an IP address and a port: the connection has a share in one of the worker's sockets of datagrams.
    Datagrams(SocketAddr),
    /// A Unix socket.
    Unix(Arc<Path>),
}

/// A connection that this worker makes, from the moment it is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outbound {
    /// The name of the connection for as long as it lives.
    pub token: Token,
    /// The tag that [`Agenda::connect`] was given.
    pub tag: u64,
    /// Destination, if it is a connection of datagrams.
    pub datagrams_to: Option<SocketAddr>,
}

/// Orders of a service to its worker. It is lent to every call, and carried out in the same turn of the
/// loop, after the calls that were due.
#[derive(Debug, Default)]
pub struct Agenda {
    pub(crate) connects: Vec<(Destination, u64)>,
    pub(crate) calls: Vec<Token>,
    pub(crate) alarm: Option<Instant>,
}

impl Agenda {
    /// Makes a connection. [`Service::connecting`](crate::Service::connecting) gets `tag` when it has
    /// begun, [`Service::connect_failed`](crate::Service::connect_failed) when it has failed at once.
    pub fn connect(&mut self, to: Destination, tag: u64) {
        self.connects.push((to, tag));
    }

    /// Gives a session its [`turn`](crate::Service::turn): for what another session of the same worker,
    /// or the service, has for it. A token of a connection that is gone is ignored.
    #[inline]
    pub fn call(&mut self, token: Token) {
        self.calls.push(token);
    }

    /// Begins a turn of the loop at this time, to the microsecond where the system can
    /// ([`Service::turn_started`](crate::Service::turn_started) is called). The earliest of several
    /// counts, and once only. At a time that has passed, the loop goes on without sleeping.
    #[inline]
    pub fn alarm(&mut self, at: Instant) {
        self.alarm = Some(self.alarm.map_or(at, |alarm| alarm.min(at)));
    }

    /// Returns whether something waits to be carried out.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.calls.is_empty() || !self.connects.is_empty()
    }
}
