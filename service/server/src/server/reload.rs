//! Settings that change while a server runs.

use std::sync::Arc;

use super::Running;
use crate::changes::Change;
use crate::{Error, Ingress, Limits, Router};

impl Running {
    /// Gives each worker new routes, and returns when all have them. No connection ends: exchanges that are
    /// under way stay with the handlers that began them, and requests that come later find the new routes.
    ///
    /// # Errors
    ///
    /// When a route can't be: the old ones stay.
    pub fn reload(&self, routes: impl Fn() -> Router + Send + Sync + 'static) -> Result<(), Error> {
        routes().check()?;
        self.change(Change::Routes(Arc::new(routes)));
        Ok(())
    }

    /// Gives each worker other limits, and returns when all have them. What the limits say of requests counts
    /// for those that come later; connections that are open keep what was said of connections.
    pub fn set_limits(&self, limits: Limits) {
        self.change(Change::Limits(Box::new(limits)));
    }

    /// Sets whether responses tell their times, as [`Server::server_timing`](crate::Server::server_timing) says, from here on. Returns when each worker
    /// knows.
    pub fn set_server_timing(&self, tells: bool) {
        self.change(Change::ServerTiming(tells));
    }

    /// Which peers are trusted from here on, and with what. Connections whose PROXY header was read keep what it
    /// said. Returns when each worker knows.
    pub fn set_ingress(&self, ingress: Ingress) {
        self.change(Change::Ingress(Box::new(ingress)));
    }

    fn change(&self, change: Change) {
        self.changes.make(change, self.handle.mailboxes());
    }
}
