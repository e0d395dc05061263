//! RFC 8446 §4.6.1: the tickets that servers have given a client, each of which resumes one session.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

use crate::limits::{TICKETS_COUNT, TICKETS_SERVERS_COUNT};

/// Those of each server, the oldest first.
type Tickets = Vec<(ServerName<'static>, VecDeque<Tls13ClientSessionValue>)>;

/// Tickets for as many connections as are begun at once: rustls' own cache keeps eight of a server, so that of fifty connections most
/// would begin in full.
#[derive(Debug)]
pub(crate) struct ClientSessions {
    tickets: Mutex<Tickets>,
    /// Everything else.
    others: ClientSessionMemoryCache,
}

impl Default for ClientSessions {
    fn default() -> Self {
        let others = ClientSessionMemoryCache::new(TICKETS_SERVERS_COUNT);
        Self { tickets: Mutex::default(), others }
    }
}

impl ClientSessions {
    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for ClientSessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.others.set_kx_hint(server, group);
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        self.others.kx_hint(server)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.others.set_tls12_session(server, value);
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.others.tls12_session(server)
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        self.others.remove_tls12_session(server);
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut tickets = self.tickets();
        let known = tickets.iter().position(|(own, _)| *own == server);
        let at = known.unwrap_or_else(|| {
            if tickets.len() >= TICKETS_SERVERS_COUNT {
                tickets.remove(0);
            }
            tickets.push((server, VecDeque::new()));
            tickets.len() - 1
        });
        let own = &mut tickets[at].1;
        if own.len() >= TICKETS_COUNT {
            own.pop_front();
        }
        own.push_back(value);
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.tickets().iter_mut().find(|(own, _)| own == server)?.1.pop_back()
    }
}
