//! The connections that each client may have.

use super::HttpService;
use crate::ends::Ends;

impl HttpService {
    /// Counts a connection among its client's. `None`: it is one too many; else whether it was counted.
    pub(super) fn count(&mut self, ends: &Ends) -> Option<bool> {
        let most = self.shared.limits.client_connections_count;
        let Some(peer) = ends.peer().filter(|_| most > 0) else { return Some(false) };
        let gate = self.shared.gate.as_ref();
        if gate.is_some_and(|gate| gate.settings.trusted.contains(Some(peer.ip()))) {
            return Some(false);
        }
        if self.of_server.clients.begin(peer.ip(), most) {
            return Some(true);
        }
        self.observer.turned_away(Some(peer), "client-connections-count");
        None
    }

    /// A connection that was counted is over.
    pub(super) fn uncount(&self, ends: &Ends, is_counted: bool) {
        if let Some(peer) = ends.peer().filter(|_| is_counted) {
            self.of_server.clients.end(peer.ip());
        }
    }
}
